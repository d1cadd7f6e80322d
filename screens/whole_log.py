"""A run's whole log where it lies: any place of it, the lines around a hit, and the way on from there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from cockpit.domain.models import RunId
from cockpit.domain.text import safe_line
from cockpit.domain.units import bytes_text
from cockpit.engine.api import LogLine, LogPart
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.i18n.messages import explain
from cockpit.screens.base import CockpitScreen
from cockpit.screens.dialogs import TextPrompt
from cockpit.screens.run_actions import save_log
from cockpit.widgets.log_pane import LogPane
from cockpit.widgets.log_places import END, ByteAt, LineNumber, line_of_byte
from cockpit.widgets.log_search import Pattern
from cockpit.widgets.log_view import LogView
from cockpit.widgets.part_log import PartLog

MOST_PAGES = 8
"""Read for one page of the screen: a progress bar may fill many of them with one line."""


async def search_whole_log(screen: Screen[None], run: RunId, typed: str) -> None:
    """Ask what to look for, and go there. To be run in a worker."""
    text = await screen.app.push_screen_wait(
        TextPrompt(
            _("Search the whole log"),
            body=_(
                "On its host, from the end. Lower case finds any case; ~ begins a regular expression."
            ),
            value=typed,
            check=_checked,
        )
    )
    if text:
        screen.app.push_screen(WholeLogScreen(run, text))


def _checked(typed: str) -> tuple[bool, str]:
    try:
        Pattern.parse(typed)
    except re.error as error:
        return False, _("not a regular expression: {why}").format(why=error.msg)
    return True, ""


class WholeLogScreen(CockpitScreen):
    """Nothing is fetched but the lines around a place, and pages where one scrolls on."""

    MODE = "runs"
    HINTS = ("log.next", "log.search", "log.time", "log.start", "log.follow", "log.save", "back")
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self, run: RunId, text: str = "", *, place: ByteAt | LineNumber | None = None
    ) -> None:
        """With a text, its last hit; else the place, or the end."""
        super().__init__()
        self._run_id = run
        self._wanted = text
        self._place = place
        self._part: PartLog | None = None
        self._here = END.offset
        """From where the next hit is looked for."""
        self._busy: asyncio.Event | None = None

    def compose_body(self) -> ComposeResult:
        title = _("{run}: the whole log").format(run=safe_line(self._run_id))
        yield LogPane(title, id="whole-log", now_s=self.engine.wall_s)

    @property
    def _view(self) -> LogView:
        return self.query_one(LogView)

    def on_mount(self) -> None:
        self._view.place_words = self._where
        self._view.focus()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """Once there are rows, of which a place lands in a third."""
        if self._wanted:
            self._work(self._search(-1))
        else:
            self._work(self._go(self._place or END))

    # Work: one thing at a time, and esc stops it.

    def _work(self, work: Coroutine[None, None, None]) -> None:
        self.run_worker(self._told(work), exclusive=True, group="whole-log")

    async def _told(self, work: Coroutine[None, None, None]) -> None:
        self._busy = busy = asyncio.Event()
        try:
            await work
        except CockpitError as error:
            self._say(explain(error.code, dict(error.facts)).headline)
        except asyncio.TimeoutError:
            self._say(_("no answer"))
        finally:
            if self._busy is busy:
                self._busy = None

    def undo_layer(self) -> bool:
        """What is asked, what is under way, a filter: then the screen itself."""
        if self.query_one(LogPane).leave_prompt():
            return True
        if self._busy is not None:
            self.workers.cancel_group(self, "whole-log")
            self._say(_("stopped"))
            return self._part is not None
        state = self._view.state
        return state is not None and state.filtered and self._view.undo_filter()

    # Searching.

    @on(LogView.FarHitAsked)
    def _next_hit(self, event: LogView.FarHitAsked) -> None:
        if self._wanted:
            self._work(self._search(event.step))
        else:
            self._say(_("nothing is searched for; / asks what"))

    @on(LogView.TextAsked)
    def _search_for(self, event: LogView.TextAsked) -> None:
        self._wanted = event.typed
        self._work(self._search(-1))

    async def _search(self, step: int) -> None:
        """From where the cursor is, else from the end."""
        here = self._cursor_byte()
        self._say(_("searching"))
        is_regex = self._wanted.startswith("~")
        found = await self.engine.search_log(
            self._run_id,
            self._wanted[is_regex:],
            here + 1 if step > 0 else here,
            backward=step < 0,
            on_progress=self._progress,
            is_regex=is_regex,
        )
        if found is not None:
            await self._show(found.offset)
        else:
            self._say(_("no more hits this way") if self._part is not None else _("not found"))

    def _cursor_byte(self) -> int:
        """The hit that was shown last, while the cursor is on its line; else where the cursor is."""
        state = self._view.state
        line = None if state is None else state.line(state.window.cursor)
        if line is None or self._part is None:
            return END.offset
        on_line = line_of_byte(self._part, self._here) == line.number
        return self._here if on_line else line.offset

    def _progress(self, share: float) -> None:
        words = _("searching, {pct:.0f}% looked through   esc stops")
        self._say(words.format(pct=100 * share))

    # Going to places.

    @on(LogView.PlaceAsked)
    def _go_to_place(self, event: LogView.PlaceAsked) -> None:
        self._work(self._go(event.place))

    async def _go(self, place: ByteAt | LineNumber) -> None:
        if isinstance(place, ByteAt):
            await self._show(place.offset)
            return
        self._say(_("counting lines"))
        found = await self.engine.line_place(
            self._run_id, place.number, on_progress=self._count_progress
        )
        first = place.number if not found.missing and not found.uncounted_bytes else None
        await self._show(found.offset, number=first)
        if found.missing:
            lines = place.number - found.missing
            self._say(_("the log has {n:,} lines").format(n=lines))
        elif found.uncounted_bytes:
            size = bytes_text(found.uncounted_bytes)
            self._say(_("not counting those in {size} that the host dropped").format(size=size))

    def _count_progress(self, share: float) -> None:
        words = _("counting lines, {pct:.0f}% of the log   esc stops")
        self._say(words.format(pct=100 * share))

    async def _show(self, offset: int, *, number: int | None = None) -> None:
        """The lines around a byte; `number` is that of its line, when it is known."""
        if self._part is None:
            self._say(_("asking the host"))
        part = await self.engine.log_around(self._run_id, offset)
        self._part = PartLog(part)
        line = line_of_byte(self._part, offset)
        if number is not None and line is not None:
            self._part.count_from(self._part.first_number + number - line)
            line = number
        self._here = min(offset, max(0, part.size - 1))
        view = self._view
        view.show(self._part)
        if view.state is not None:
            view.state.search(Pattern.parse(self._wanted))
        if line is not None:
            view.go_to_line(line)
        if offset < END.offset and part.excerpt and self._wanted:
            self._say_hidden_hit(part, line)

    def _say_hidden_hit(self, part: LogPart, number: int | None) -> None:
        """A hit in a state of a progress bar that later states have overwritten."""
        state = self._view.state
        line = None if state is None or number is None else state.line(number)
        pattern = Pattern.parse(self._wanted)
        if line is not None and pattern is not None and not pattern.matches(line.text):
            self._say(_("overwritten here: {text}").format(text=safe_line(part.excerpt, 60)))

    @on(LogView.EdgeReached)
    def _turn_page(self, event: LogView.EdgeReached) -> None:
        if self._part is not None and self._busy is None:
            self._work(self._turn(self._part, event.step, event.rows))

    async def _turn(self, part: PartLog, step: int, rows: int) -> None:
        """As many pages as it takes to move so far, and then the move."""
        added = 0
        for _page in range(MOST_PAGES):
            if added >= abs(rows) or (step < 0 and part.start == 0):
                break
            at = part.start if step < 0 else part.end
            page = await self.engine.log_page(self._run_id, at, older=step < 0)
            if not page.lines:
                break
            self._hold()
            part.add(page, older=step < 0)
            self._view.grown()
            added += len(page.lines)
        self._view.scroll_rows(rows)

    def _hold(self) -> None:
        """What comes behind the last line must not pull the view along."""
        state = self._view.state
        if state is not None and state.window.follow:
            state.window.point_at(state.window.cursor)

    # What is said.

    def _say(self, words: str) -> None:
        """Lines that are shown stay; the words are below them."""
        view = self._view
        if self._part is None or view.state is None:
            view.set_words(empty=words)
        else:
            view.state.note = safe_line(words, 200)
        view.repaint()

    def _where(self, line: LogLine) -> str:
        part = self._part
        if part is None:
            return ""
        share = 100 * line.offset / part.size if part.size else 100.0
        words = _("byte {offset:,} of {size}, {pct:.0f}%").format(
            offset=line.offset, size=bytes_text(part.size), pct=share
        )
        if not part.is_counted:
            return words
        return _("line {number:,}").format(number=line.number) + "  " + words

    @on(LogView.SaveAsked)
    def _save(self) -> None:
        view = self.engine.runs.get(self._run_id)
        if view is not None:
            self.run_worker(save_log(self, view), group="save", exclusive=True)
