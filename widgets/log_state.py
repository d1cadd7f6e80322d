"""Everything one has set in a log view: place, filter, search, marks, stamps. No drawing in here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from cockpit.domain.incidents import Severity
from cockpit.domain.text import ansi_spans
from cockpit.engine.api import LogLine, RunLog
from cockpit.i18n import _, ngettext
from cockpit.i18n.sentences import listed
from cockpit.widgets.log_bar import Tick
from cockpit.widgets.log_index import AllLines, FilteredLines, Hits
from cockpit.widgets.log_lines import drawn_text, wrap_places
from cockpit.widgets.log_places import ByteAt, LineNumber, line_of_byte
from cockpit.widgets.log_search import Level, Pattern
from cockpit.widgets.log_time import STAMP_MODES, Moment, StampMode, Step, line_at
from cockpit.widgets.log_window import LogWindow
from cockpit.widgets.part_log import PartLog

_ROWS_KEPT = 4096
COLUMN_STEP = 8
MOST_CONTEXT = 9


class LogState:
    """One person's view of one log. Nothing in it moves by itself but what follows the end."""

    def __init__(self, log: RunLog, started_s: float | None = None) -> None:
        self.log = log
        self.started_s = started_s
        self.wrap = False
        self.column = 0
        self.stamps: StampMode = "off"
        self.floor = Level.ALL
        self.context = 0
        self.only: Pattern | None = None
        self.hits: Hits | None = None
        self.marks: set[int] = set()
        self.note = ""
        """One thing to say once about the last key: "from the top"."""
        self.text_cells = 80
        self._severities: dict[int, Severity] = {}
        self._trouble: list[int] = []
        self._rows: dict[int, int] = {}
        self._left_at = 0
        self.lines: AllLines | FilteredLines = AllLines(log)
        self.is_part = isinstance(log, PartLog)
        """Whether it begins and ends somewhere in a longer log."""
        self.window = LogWindow(self.lines, self.rows_of)

    @property
    def filtered(self) -> bool:
        return isinstance(self.lines, FilteredLines)

    def advance(self) -> bool:
        """Give filter and search their slice of work; True when what is shown may differ."""
        changed = False
        if isinstance(self.lines, FilteredLines):
            changed = self.lines.advance()
        if self.hits is not None:
            before = (len(self.hits), self.hits.complete)
            self.hits.advance()
            changed |= before != (len(self.hits), self.hits.complete)
        return changed

    def line(self, number: int) -> LogLine | None:
        """A line that is kept, or the unterminated last one; None when it is gone by now."""
        position = number - self.log.first_number
        if 0 <= position < len(self.log):
            return self.log.line(position)
        if number == self.log.total_lines + 1 and self.log.open_text:
            text, spans = ansi_spans(self.log.open_text)
            return LogLine(number, self.log.total_bytes, text, spans)
        return None

    def rows_of(self, number: int) -> int:
        if not self.wrap:
            return 1
        known = self._rows.get(number)
        if known is None:
            line = self.line(number)
            known = 1 if line is None else len(wrap_places(drawn_text(line), self.text_cells))
            if number <= self.log.total_lines:
                self._rows[number] = known
            if len(self._rows) > _ROWS_KEPT:
                self._rows.clear()
        return known

    def set_text_cells(self, cells: int) -> None:
        if cells != self.text_cells:
            self.text_cells = cells
            self._rows.clear()

    # What our side knows of lines.

    def set_trouble(self, severities: Mapping[int, Severity]) -> bool:
        """Lines that opened an incident; True when they are others than before."""
        if severities == self._severities:
            return False
        self._severities = dict(severities)
        self._trouble = sorted(severities)
        return True

    def severity(self, line: LogLine) -> Severity | None:
        return self._severities.get(line.number, line.severity)

    @property
    def trouble(self) -> Sequence[int]:
        return self._trouble

    def trouble_of(self, severity: Severity) -> list[int]:
        return [number for number in self._trouble if self._severities[number] == severity]

    def found(self) -> list[tuple[Tick, Sequence[int]]]:
        """What the scrollbar shows: incidents, marks and hits, as far as there are any."""
        kinds: list[tuple[Tick, Sequence[int]]] = [
            ("fatal", self.trouble_of("fatal")),
            ("warning", self.trouble_of("warning")),
            ("notice", self.trouble_of("notice")),
            ("mark", sorted(self.marks)),
            ("hit", [] if self.hits is None else self.hits.numbers),
        ]
        return [(kind, numbers) for kind, numbers in kinds if numbers]

    # Moving.

    def moved(self, before_follow: bool) -> None:
        """To be called after each movement: remembers where following stopped."""
        if before_follow and not self.window.follow:
            self._left_at = self.log.total_lines

    def show(self, number: int) -> None:
        before = self.window.follow
        self.window.show(number)
        self.moved(before)

    @property
    def new_below(self) -> int:
        return 0 if self.window.follow else self.log.total_lines - self._left_at

    @property
    def new_trouble_below(self) -> int:
        return len(self._trouble) - bisect_right(self._trouble, self._left_at)

    def edge_line(self, step: int) -> int:
        """Number of the first line here, or of the last one."""
        return self.lines.at(0 if step < 0 else len(self.lines) - 1) if len(self.lines) else 0

    def beyond(self, step: int) -> int | None:
        """A byte that way which is not among the lines here; None when there is none to be shown."""
        log = self.log
        if self.filtered or not len(log):
            return None
        if step < 0:
            first = log.line(0).offset
            return first - 1 if first else None
        return log.line(len(log) - 1).offset if self.is_part else None

    def named(self, line: LogLine) -> str:
        """A line's number, or its byte where nobody counted the lines before it."""
        return str(line.number) if self.named_by_number else f"byte {line.offset}"

    # Filter, search, marks, time.

    def look_again(self) -> None:
        """The lines of a part are others: find anew what is searched and filtered."""
        self.filter_by(self.only, self.floor, self.context)
        self.search(None if self.hits is None else self.hits.pattern)

    def filter_by(self, only: Pattern | None, floor: Level, context: int) -> None:
        self.only, self.floor, self.context = only, floor, context
        if only is None and floor is Level.ALL:
            self.lines = AllLines(self.log)
        else:
            filtered = FilteredLines(self.log, floor, only, context)
            filtered.advance()
            self.lines = filtered
        self.window.use(self.lines)

    def more_context(self, lines: int) -> None:
        self.filter_by(self.only, self.floor, max(0, min(self.context + lines, MOST_CONTEXT)))

    def search(self, pattern: Pattern | None) -> None:
        self.hits = None if pattern is None else Hits(self.log, pattern)
        self.advance()

    def next_hit(self, step: int) -> None:
        """To the next hit, or round the end with a word; without a search to the next incident."""
        here = self.window.cursor
        if self.hits is None:
            self._jump(self._trouble, here, step, _("no incident in this log"))
            return
        first = bisect_left(self.hits.numbers, self.log.first_number)
        none = _("not found yet, still searching")
        if self.hits.complete:
            is_all = self.log.first_number <= 1
            none = _("not found") if is_all else _("not among the lines kept here; O searches all")
        self._jump(self.hits.numbers[first:], here, step, none)

    def has_hit(self, step: int) -> bool:
        """Whether there is one that way among the lines here."""
        if self.hits is None:
            return False
        while not self.hits.complete:
            self.hits.advance()
        here = self.window.cursor
        return (self.hits.after(here) if step > 0 else self.hits.before(here)) is not None

    def toggle_mark(self) -> None:
        self.marks ^= {self.window.cursor}

    def next_mark(self, step: int) -> None:
        self._jump(
            sorted(self.marks), self.window.cursor, step, _("no line is marked; space marks one")
        )

    def _jump(self, numbers: Sequence[int], here: int, step: int, none: str) -> None:
        self.note = ""
        if not numbers:
            self.note = none
            return
        if step > 0:
            place = bisect_right(numbers, here)
            if place == len(numbers):
                place, self.note = 0, _("from the top")
        else:
            place = bisect_left(numbers, here) - 1
            if place < 0:
                place, self.note = len(numbers) - 1, _("from the end")
        self.show(numbers[place])

    def go_to_spot(self, spot: ByteAt | LineNumber) -> bool:
        """False when it is not among the lines here."""
        self.note = ""
        log, number = self.log, None
        if isinstance(spot, LineNumber):
            is_here = self.named_by_number and log.first_number <= spot.number <= log.total_lines
            number = spot.number if is_here else None
        elif not isinstance(log, PartLog) or log.start <= spot.offset < log.end:
            number = line_of_byte(log, spot.offset)
        if number is not None:
            self.show(number)
        return number is not None

    @property
    def named_by_number(self) -> bool:
        return not isinstance(self.log, PartLog) or self.log.is_counted

    def go_to(self, place: Moment | Step) -> None:
        if isinstance(place, Step):
            pattern = Pattern.parse(place.regex)
            self.search(pattern)
            self.next_hit(1)
            return
        number = line_at(self.log, place.at_s)
        if number is None:
            self.note = _("these lines came without a time")
        else:
            self.note = ""
            self.show(number)

    def next_stamps(self) -> None:
        place = STAMP_MODES.index(self.stamps) + 1
        self.stamps = STAMP_MODES[place % len(STAMP_MODES)]

    # Words about it.

    def where(self, ending: str, link: str) -> str:
        """Following or reading, in words; `ending` and `link` are what the run's screen knows."""
        total = self.log.total_lines
        lines = ngettext("{total:,} line", "{total:,} lines", total).format(total=total)
        if not self.window.follow:
            return self._reading(total)
        if self.log.ended:
            return listed((ending or _("ended"), lines))
        return listed((link or _("following"), lines))

    def _reading(self, total: int) -> str:
        new = self.new_below
        if not new and self.log.ended:
            return _("line {number:,} of {total:,}").format(number=self.window.cursor, total=total)
        words = _("reading, {count:,} new below").format(count=new) if new else _("reading")
        if trouble := self.new_trouble_below:
            more = ngettext("{n} incident", "{n} incidents", trouble).format(n=trouble)
            words = listed((words, more))
        return words + "  " + _("G follows")

    def settings(self) -> str:
        """What is switched on, as short as it goes: search, filter, column, what is gone."""
        parts = [self._search_words(), self._filter_words()]
        if self.column and not self.wrap:
            parts.append(_("col {column}").format(column=self.column))
        older = self.log.first_number - 1
        if older > 0 and not self.is_part and not self.window.follow and self.window.at_top:
            parts.append(_("{count:,} older lines: page up").format(count=older))
        return "   ".join(part for part in (*parts, self.note) if part)

    def _search_words(self) -> str:
        if self.hits is None:
            return ""
        if self.is_part:
            return f"/{self.hits.pattern.typed[:40]}"
        rank = self.hits.rank(self.window.cursor)
        more = "" if self.hits.complete else "+"
        found = f"{len(self.hits):,}{more}"
        shown = f"/{self.hits.pattern.typed[:20]} "
        return shown + (
            found if rank is None else _("{rank:,} of {found}").format(rank=rank, found=found)
        )

    def _filter_words(self) -> str:
        if not isinstance(self.lines, FilteredLines):
            return ""
        floor = {Level.ERROR: _("errors"), Level.WARNING: _("warnings")}.get(self.floor, "")
        only = f"&{self.only.typed[:20]}" if self.only else ""
        context = _("context {n}").format(n=self.context) if self.context else ""
        count = _("{count:,} of {total:,}").format(count=len(self.lines), total=len(self.log))
        return " ".join(part for part in (only, floor, context, count) if part)
