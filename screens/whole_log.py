"""A run's whole log where it lies: the lines around a hit, and the way to the next one."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from cockpit.domain.models import RunId
from cockpit.domain.text import safe_line
from cockpit.domain.units import bytes_text
from cockpit.engine.api import LogPart
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.i18n.messages import explain
from cockpit.screens.base import CockpitScreen
from cockpit.screens.dialogs import TextPrompt
from cockpit.widgets.text_pane import Para, Role, TextPane, code, para

END = 1 << 61
"""An offset behind every log."""
LINES_BEFORE = 8
"""Above the hit, so that one sees what led to it."""


async def search_whole_log(screen: Screen[None], run: RunId, typed: str) -> None:
    """Ask what to look for, and go there. To be run in a worker."""
    text = await screen.app.push_screen_wait(
        TextPrompt(
            _("Search the whole log"),
            body=_("On its host, from the end; plain text, lower case finds any case."),
            value=typed,
        )
    )
    if text:
        screen.app.push_screen(WholeLogScreen(run, text))


class WholeLogScreen(CockpitScreen):
    """Searches from the end backwards; nothing is fetched but the lines that are shown."""

    MODE = "runs"
    HINTS = ("whole.older", "whole.newer", "back")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "search(True)", _("older hit"), id="whole.older", tooltip=_("On towards the beginning")),
        Binding("N", "search(False)", _("newer hit"), id="whole.newer", tooltip=_("Back towards the end")),
    ]  # fmt: skip

    def __init__(self, run: RunId, text: str) -> None:
        super().__init__()
        self._run_id = run
        self._wanted = text
        self._hit: int | None = None
        self._log_bytes = 0

    def compose_body(self) -> ComposeResult:
        title = _("{run}: {text} in the whole log").format(
            run=safe_line(self._run_id), text=safe_line(self._wanted, 40)
        )
        yield TextPane(title, id="whole-log")

    def on_mount(self) -> None:
        self.action_search(True)

    def action_search(self, backward: bool) -> None:
        self.run_worker(self._search(backward), exclusive=True, group="search")

    async def _search(self, backward: bool) -> None:
        offset = self._next_offset(backward)
        if self._hit is None:
            self._say(_("searching"))
        try:
            found = await self.engine.search_log(
                self._run_id, self._wanted, offset, backward=backward, on_progress=self._progress
            )
            if found is None:
                self._say(_("no more hits this way") if self._hit is not None else _("not found"))
                return
            part = await self.engine.log_around(self._run_id, found.offset)
        except CockpitError as error:
            self._say(explain(error.code, dict(error.facts)).headline)
            return
        except asyncio.TimeoutError:
            self._say(_("no answer"))
            return
        self._hit, self._log_bytes = found.offset, found.size
        self._show(part)

    def _next_offset(self, backward: bool) -> int:
        if self._hit is None:
            return END if backward else 0
        return self._hit if backward else self._hit + 1

    def _progress(self, share: float) -> None:
        self._say(_("searching, {pct:.0f}% looked through").format(pct=100 * share))

    def _say(self, words: str) -> None:
        """Lines that are shown stay: then the words are a toast."""
        if self._hit is not None:
            self.notify(safe_line(words, 300), markup=False, timeout=3)
            return
        self.query_one(TextPane).show([para(safe_line(words, 300), "muted")], from_top=True)

    def _show(self, part: LogPart) -> None:
        hit = self._hit or 0
        before = sum(line.offset <= hit for line in part.lines)
        first = max(0, before - 1 - LINES_BEFORE)
        place = _("byte {offset:,} of {size}").format(
            offset=hit, size=bytes_text(max(part.size, self._log_bytes))
        )
        rows: list[Para] = [para(place, "muted"), para(safe_line(part.excerpt, 400), "strong")]
        for number, line in enumerate(part.lines[first:], first):
            role: Role = "strong" if number == before - 1 else "text"
            rows.append(code((safe_line(line.text, 2000), role)))
        self.query_one(TextPane).show(rows, from_top=True)
