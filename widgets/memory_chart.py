"""Memory of a run's cards over the last minutes: one band a card, 0 to all of it, moments marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from cockpit.domain.units import mib_text
from cockpit.engine.fleet import GpuHistory
from cockpit.i18n import _
from cockpit.widgets.drawing import Line
from cockpit.widgets.framed import frame_bottom, frame_top
from cockpit.widgets.glyphs import Glyphs
from cockpit.widgets.look import Look, look_of
from cockpit.widgets.run_words import cards_text

SPANS_S = (60, 300, 900)
_AXIS = 6


@dataclass(frozen=True, slots=True)
class Band:
    """One card: its newest reading, and its highest reading in each bin of time, oldest first."""

    index: int
    used_mib: int | None
    total_mib: int | None
    peaks_mib: tuple[int | None, ...]


def binned(history: GpuHistory | None, bins: int, span_s: float) -> tuple[int | None, ...]:
    """The highest reading of each bin; bins stand still on the host's clock."""
    peaks: list[int | None] = [None] * bins
    if history is None or not history.at_s or bins < 1:
        return tuple(peaks)
    bin_s = span_s / bins
    newest = int(history.at_s[-1] // bin_s)
    for at_s, used in zip(reversed(history.at_s), reversed(history.mem_used_mib), strict=True):
        place = bins - 1 - (newest - int(at_s // bin_s))
        if place < 0:
            break
        if used is not None and place < bins:
            known = peaks[place]
            peaks[place] = used if known is None else max(known, used)
    return tuple(peaks)


def column_glyph(fraction: float | None, row: int, rows: int, glyphs: Glyphs) -> str:
    """The sign of one cell of a filled chart; `row` 0 is the top."""
    if fraction is None:
        return " "
    levels = len(glyphs.sparks)
    filled = round(min(1.0, max(0.0, fraction)) * rows * levels) - (rows - 1 - row) * levels
    if filled <= 0:
        return " "
    return glyphs.sparks[min(levels, filled) - 1]


class MemoryChart(Widget):
    """Given bands; draws them under one time axis."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    MemoryChart { width: 100%; height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._bands: tuple[Band, ...] = ()
        self._span_s = SPANS_S[1]
        self._marks: tuple[float, ...] = ()
        self._note = ""

    @property
    def bins(self) -> int:
        return max(1, self.size.width - 3 - _AXIS)

    @property
    def span_s(self) -> int:
        return self._span_s

    def more_time(self, step: int) -> None:
        place = SPANS_S.index(self._span_s) + step
        self._span_s = SPANS_S[max(0, min(place, len(SPANS_S) - 1))]
        self.refresh()

    def show(
        self, bands: Sequence[Band], marks_ago_s: Sequence[float] = (), note: str = ""
    ) -> None:
        """`marks_ago_s`: moments of incidents, in seconds before the newest reading."""
        state = (tuple(bands), tuple(marks_ago_s), note)
        if state != (self._bands, self._marks, self._note):
            self._bands, self._marks, self._note = state
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, (width, height) = look_of(self), self.size
        if y == 0:
            return frame_top(look, width, self._title_words(), look.faint)
        if y == height - 1:
            foot = _("last {minutes} min").format(minutes=self._span_s // 60)
            return frame_bottom(look, width, foot, look.faint)
        line = Line(look.text).add(look.glyphs.vertical, look.faint)
        self._inner(look, line, y - 1, height - 2)
        return line.pad_to(width - 1).add(look.glyphs.vertical, look.faint).strip(width)

    def _title_words(self) -> str:
        if not self._bands:
            return _("memory of this run")
        cards = cards_text(tuple(band.index for band in self._bands))
        return _("memory of GPU {cards}").format(cards=cards)

    def _inner(self, look: Look, line: Line, y: int, rows: int) -> None:
        if not self._bands:
            line.add(" " + (self._note if y == 0 else ""), look.muted)
            return
        per_band = max(1, (rows - 1) // len(self._bands))
        shown = min((rows - 1) // per_band, len(self._bands))
        place, row = divmod(y, per_band)
        if y == shown * per_band:
            self._axis(look, line)
        elif place < shown:
            self._band_row(look, line, self._bands[place], row, per_band)

    def _band_row(self, look: Look, line: Line, band: Band, row: int, rows: int) -> None:
        label = ""
        if row == 0 and band.total_mib is not None:
            label = mib_text(band.total_mib, width=0)[:-3] + "G" if rows > 1 else f"GPU{band.index}"
        elif row == 1 and len(self._bands) > 1:
            label = f"GPU {band.index}"
        line.add(label.rjust(_AXIS - 1), look.muted).add(look.glyphs.axis, look.faint)
        total = band.total_mib
        style = _fill(look, band)
        cells = [
            column_glyph(
                None if peak is None or not total else peak / total, row, rows, look.glyphs
            )
            for peak in band.peaks_mib
        ]
        line.add("".join(cells), style)

    def _axis(self, look: Look, line: Line) -> None:
        line.add("0".rjust(_AXIS - 1), look.muted).add(look.glyphs.axis_corner, look.faint)
        bins = len(self._bands[0].peaks_mib)
        marked = {bins - 1 - int(ago * bins / self._span_s) for ago in self._marks}
        for place in range(bins):
            if place in marked:
                line.add(look.glyphs.lost, look.fatal)
            else:
                line.add(look.glyphs.horizontal, look.faint)


def _fill(look: Look, band: Band) -> Style:
    if band.used_mib is None or not band.total_mib:
        return look.muted
    return look.warn if band.used_mib >= 0.97 * band.total_mib else look.ok
