"""Utilisation and memory of every card of a host, one under the other on one axis of time."""

from __future__ import annotations

from dataclasses import dataclass

from textual.geometry import Region
from textual.strip import Strip

from cockpit.domain.cells import cut_end
from cockpit.domain.incidents import Severity
from cockpit.domain.models import GpuSample
from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_pair_text
from cockpit.engine.fleet import GpuHistory
from cockpit.i18n import _
from cockpit.widgets.chart import area, binned, place_of
from cockpit.widgets.drawing import Line, padded_left
from cockpit.widgets.framed import FramedPane
from cockpit.widgets.kept_lines import KeptLines
from cockpit.widgets.look import Look, look_of

SPANS_S = (60.0, 300.0, 900.0)
"""What `+` and `-` choose from; the store keeps fifteen minutes."""
_LABEL = 5
_LEAST_CHART = 12


@dataclass(frozen=True, slots=True)
class CardSeries:
    """One card with its past. `version` differs when there is something new to draw."""

    gpu: GpuSample
    history: GpuHistory | None
    version: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment worth finding on the axis: an incident, or where a run began."""

    at_s: float
    severity: Severity | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A run's life on the axis."""

    start_s: float
    end_s: float | None
    name: str


@dataclass(frozen=True, slots=True)
class ChartData:
    """Everything that the charts show at one moment."""

    cards: tuple[CardSeries, ...] = ()
    end_s: float = 0.0
    marks: tuple[Mark, ...] = ()
    spans: tuple[Span, ...] = ()
    old: bool = False
    braille: bool = False


class ChartLines(FramedPane):
    """One row of charts a card, as high as the space allows; the time axis stays at the bottom."""

    def __init__(self) -> None:
        super().__init__(id="charts")
        self._data = ChartData()
        self._span_s = SPANS_S[1]
        self._drawn: dict[tuple[int, int, int], list[Strip]] = {}

    @property
    def span_s(self) -> float:
        return self._span_s

    # -- geometry --------------------------------------------------------------------------------

    @property
    def _axis_rows(self) -> int:
        return 2 if self._data.spans else 1

    @property
    def card_rows(self) -> int:
        """Rows of one card's charts."""
        room = self.size.height - 2 - self._axis_rows
        return max(1, min(20, room // max(1, len(self._data.cards))))

    @property
    def row_count(self) -> int:
        return len(self._data.cards) * self.card_rows

    @property
    def rows_shown(self) -> int:
        return max(1, self.size.height - 2 - self._axis_rows)

    def _chart_cells(self, width: int) -> tuple[int, int]:
        """Cells of the utilisation and of the memory chart."""
        memory = self._memory_cells()
        room = width - 2 * _LABEL - 3 - memory
        left = max(_LEAST_CHART, room // 2)
        return left, max(_LEAST_CHART, room - left)

    def _memory_cells(self) -> int:
        totals = [one.gpu.mem_total_mib for one in self._data.cards]
        return max((len(mib_pair_text(total, total)) for total in totals), default=10)

    # -- drawing ---------------------------------------------------------------------------------

    def row_strip(self, row: int, look: Look, width: int) -> Strip:
        card, inside = divmod(row, self.card_rows)
        key = (card, width, id(look))
        if key not in self._drawn:
            self._drawn[key] = self._card_strips(self._data.cards[card], look, width)
        return self._drawn[key][inside]

    def render_line(self, y: int) -> Strip:
        first_axis = self.size.height - 1 - self._axis_rows
        if not first_axis <= y < self.size.height - 1:
            return super().render_line(y)
        look, width = look_of(self), self.inner_width
        is_spans = self._data.spans and y == first_axis
        inner = self._spans_strip(look, width) if is_spans else self._axis_strip(look, width)
        border = look.ok if self.has_focus else look.faint
        side = Line(border).add(look.glyphs.vertical).strip(1)
        blank = Line(look.text).add(" ").strip(1)
        return Strip.join([side, blank, inner, blank, side])

    def _card_strips(self, series: CardSeries, look: Look, width: int) -> list[Strip]:
        tone = look.old if self._data.old else look.fresh
        gap = 1 if self.card_rows >= 3 else 0
        rows = self.card_rows - gap
        left, right = self._chart_cells(width)
        gpu = series.gpu
        if gpu.error is not None and gpu.util_pct is None:
            line = Line(look.text).add(f"{gpu.index:>2} ", tone.muted)
            line.add(look.glyphs.lost + " ", look.fatal).add(safe_line(gpu.error, 200), look.fatal)
            return [line.strip(width)] + [Strip.blank(width, look.text)] * (self.card_rows - 1)
        utils = self._area(series, left, rows, look, memory=False)
        mems = self._area(series, right, rows, look, memory=True)
        util = "n/a" if gpu.util_pct is None else f"{gpu.util_pct}%"
        strips = []
        for row in range(rows):
            line = Line(look.text)
            line.add(f"{gpu.index:>2} " if row == 0 else "   ", tone.muted)
            line.add(self._left_label(row, rows, util), tone.text if row == 0 else tone.muted)
            line.add(" ").add(utils[row], tone.graph).add("  ")
            memory = self._right_label(gpu, row, rows)
            line.add(memory, tone.text if row == 0 else tone.muted).add(" ")
            line.add(mems[row], tone.fill)
            strips.append(line.strip(width))
        return strips + [Strip.blank(width, look.text)] * gap

    def _left_label(self, row: int, rows: int, util: str) -> str:
        if row == 0:
            return f"{util:>4}"
        return f"{'0':>4}" if row == rows - 1 and rows > 2 else " " * 4

    def _right_label(self, gpu: GpuSample, row: int, rows: int) -> str:
        cells = self._memory_cells()
        if row == 0:
            return f"{mib_pair_text(gpu.mem_used_mib, gpu.mem_total_mib):>{cells}}"
        return f"{'0':>{cells}}" if row == rows - 1 and rows > 2 else " " * cells

    def _area(
        self, series: CardSeries, cells: int, rows: int, look: Look, *, memory: bool
    ) -> list[str]:
        history = series.history
        top = float(series.gpu.mem_total_mib or 0) if memory else 100.0
        bins = cells * (2 if self._data.braille else 1)
        if history is None:
            return [" " * cells] * rows
        column = history.mem_used_mib if memory else history.util_pct
        points = zip(reversed(history.at_s), reversed(column), strict=True)
        values = binned(points, self._data.end_s, self._span_s, bins)
        return area(values, top, rows, look.glyphs, braille=self._data.braille)

    def _axis_strip(self, look: Look, width: int) -> Strip:
        """Two axes of the same stretch of time, with incidents where they happened."""
        left, right = self._chart_cells(width)
        line = Line(look.text).pad_to(3 + _LABEL)
        self._axis(line, left, look)
        line.pad_to(3 + _LABEL + left + 2 + self._memory_cells() + 1)
        self._axis(line, right, look)
        return line.strip(width)

    def _axis(self, line: Line, cells: int, look: Look) -> None:
        begin = line.cells
        minutes = self._span_s / 60
        start, end = f"-{minutes:g} min ", " " + _("now")
        places = {
            place: mark
            for mark in self._data.marks
            if (place := place_of(mark.at_s, self._data.end_s, self._span_s, cells)) is not None
        }
        line.add(start, look.muted)
        for place in range(len(start), cells - len(end)):
            mark = places.get(place)
            if mark is None or mark.severity is None:
                line.add(look.glyphs.horizontal, look.faint)
            else:
                line.add(look.glyphs.severity(mark.severity), look.severity(mark.severity))
        line.pad_to(begin + cells - len(end)).add(end, look.muted)

    def _spans_strip(self, look: Look, width: int) -> Strip:
        left, _right = self._chart_cells(width)
        line = Line(look.text).add(padded_left(_("runs"), 3 + _LABEL - 1) + " ", look.muted)
        begin, end_s = line.cells, self._data.end_s
        for span in sorted(self._data.spans, key=lambda one: one.start_s):
            start = place_of(span.start_s, end_s, self._span_s, left)
            if start is None:
                start = 0 if span.start_s < end_s else left - 1
            stop = place_of(span.end_s, end_s, self._span_s, left) if span.end_s else left - 1
            if stop is None or begin + start < line.cells or stop - start < 3:
                continue
            line.pad_to(begin + start)
            name = cut_end(safe_line(span.name, 60), stop - start - 1, look.glyphs.cut)
            line.add(look.glyphs.tee_left, look.faint).add(name, look.ok)
            line.fill_to(begin + stop, look.glyphs.horizontal, look.faint)
            line.add(look.glyphs.tee_right, look.faint)
        return line.strip(width)


class ChartGrid(ChartLines):
    """The charts with a memory of their lines: most of a chart stands still most of the time."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = KeptLines(self, super().render_line)

    def render_line(self, y: int) -> Strip:
        return self._lines.line(y)

    def refresh(self, *regions: Region, **how: bool) -> ChartGrid:
        if not regions:
            self._lines.forget()
        super().refresh(*regions, **how)
        return self

    def show(self, data: ChartData) -> None:
        if data == self._data:
            return
        moved = len(data.cards) != len(self._data.cards) or bool(data.spans) != bool(
            self._data.spans
        )
        self._data = data
        self._drawn.clear()
        self.refresh() if moved else self._lines.redraw_changed()

    def zoom(self, step: int) -> None:
        place = SPANS_S.index(self._span_s) - step
        self._span_s = SPANS_S[max(0, min(len(SPANS_S) - 1, place))]
        self._drawn.clear()
        self.refresh()

    def on_resize(self) -> None:
        self._drawn.clear()
