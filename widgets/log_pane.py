"""The log with its scrollbar and its prompt: one line at the bottom for `/`, `&` and `@`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from cockpit.i18n import _
from cockpit.widgets.log_bar import LogBar
from cockpit.widgets.log_keys import Asking
from cockpit.widgets.log_places import EXAMPLES, parse_spot
from cockpit.widgets.log_search import Pattern
from cockpit.widgets.log_time import Step, parse_place
from cockpit.widgets.log_view import LogView

_SIGNS: dict[Asking, str] = {"search": "/", "filter": "&", "time": "@"}


class LogPrompt(Horizontal):
    """One line that appears when something is asked and leaves with the answer."""

    DEFAULT_CSS = """
    LogPrompt { height: 1; display: none; background: $panel; }
    LogPrompt.-asking { display: block; }
    LogPrompt Static { width: auto; padding: 0 1; color: $accent; background: $panel; }
    LogPrompt Input { width: 1fr; border: none; height: 1; padding: 0; background: $panel; }
    LogPrompt Input:focus { border: none; background-tint: $panel 0%; }
    LogPrompt #log-prompt-note { color: $text-muted; max-width: 60%; }
    """

    def compose(self) -> ComposeResult:
        yield Static("/", markup=False, id="log-prompt-sign")
        yield Input(id="log-prompt-input", select_on_focus=False)
        yield Static("", markup=False, id="log-prompt-note")

    def say(self, words: str) -> None:
        self.query_one("#log-prompt-note", Static).update(Content(words))

    def ask(self, what: Asking) -> None:
        self.query_one("#log-prompt-sign", Static).update(Content(_SIGNS[what]))
        self.say({
            "search": _("~ regular expression   enter keeps it   esc leaves it"),
            "filter": _("only matching lines   < > context"),
            "time": f"12:04  -10m  +41:12  step 812  {EXAMPLES}",
        }[what])  # fmt: skip
        self.add_class("-asking")
        field = self.query_one(Input)
        field.value = ""
        self.screen.set_focus(field)

    def close(self) -> None:
        self.remove_class("-asking")


class LogPane(Vertical):
    """Use `view` for the rest; this only wires prompt and scrollbar to it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave_prompt", _("Leave it"), show=False, id="log.prompt.leave"),
    ]

    DEFAULT_CSS = """
    LogPane { height: 1fr; width: 1fr; }
    LogPane > Horizontal.log-body { height: 1fr; }
    """

    def __init__(
        self, title: str = "", *, id: str | None = None, now_s: Callable[[], float] = time.time
    ) -> None:
        super().__init__(id=id)
        self._now_s = now_s
        self.view = LogView(title, id="log-view")
        self._bar = LogBar()
        self._prompt = LogPrompt()
        self._asking: Asking = "search"
        self._was_only: Pattern | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(classes="log-body"):
            yield self.view
            yield self._bar
        yield self._prompt

    @on(LogView.BarChanged)
    def _show_bar(self, event: LogView.BarChanged) -> None:
        event.stop()
        self._bar.show(event.facts)

    @on(LogBar.Moved)
    def _bar_moved(self, event: LogBar.Moved) -> None:
        event.stop()
        self.view.to_share(event.share)

    @on(LogView.Asked)
    def _ask(self, event: LogView.Asked) -> None:
        event.stop()
        self._asking = event.what
        self._was_only = None if self.view.state is None else self.view.state.only
        self._prompt.ask(event.what)

    @on(LogView.TypedAhead)
    def _typed_ahead(self, event: LogView.TypedAhead) -> None:
        """It came before all that the prompt has got by now."""
        event.stop()
        field = self._prompt.query_one(Input)
        text, enter, _rest = event.text.partition("\n")
        field.value = text + field.value
        field.cursor_position = len(field.value)
        if enter:
            field.post_message(Input.Submitted(field, field.value))

    @on(Input.Changed, "#log-prompt-input")
    def _typed(self, event: Input.Changed) -> None:
        """Search and filter are live; a time waits for enter."""
        event.stop()
        if self._prompt.has_class("-asking") and self._asking != "time":
            self._try(event.value)

    def _try(self, typed: str) -> bool:
        state = self.view.state
        if state is None:
            return False
        try:
            pattern = Pattern.parse(typed)
        except re.error as error:
            self._prompt.say(_("not a regular expression: {why}").format(why=error.msg))
            return False
        if self._asking == "search":
            state.search(pattern)
        else:
            state.filter_by(pattern, state.floor, state.context)
        self.view.repaint()
        return True

    @on(Input.Submitted, "#log-prompt-input")
    def _take(self, event: Input.Submitted) -> None:
        event.stop()
        if self._asking == "time":
            if not self._go_to(event.value):
                return
        elif not self._try(event.value):
            return
        elif self._asking == "search" and self.view.state is not None:
            self._find(event.value)
        self._close()

    def _find(self, typed: str) -> None:
        if self.view.state is None or not self.view.state.is_part:
            self._first_hit()
        elif typed:
            self.post_message(LogView.TextAsked(typed))

    def _first_hit(self) -> None:
        """Upwards from where one is: in a log, what one looks for has been."""
        state = self.view.state
        if state is not None and state.hits is not None:
            while not state.hits.complete:
                state.hits.advance()
            state.next_hit(-1)
            state.note = "" if state.note == _("from the end") else state.note
            self.view.repaint()

    def _go_to(self, typed: str) -> bool:
        state = self.view.state
        if state is None or not typed.strip():
            return True
        if (spot := parse_spot(typed, state.log.total_bytes)) is not None:
            if not state.go_to_spot(spot):
                self.post_message(LogView.PlaceAsked(spot))
            self.view.repaint()
            return True
        place = parse_place(typed, self._now_s(), state.started_s)
        if place is None:
            self._prompt.say(f"12:04  -10m  +41:12  step 812  {EXAMPLES}")
            return False
        if state.is_part and isinstance(place, Step):
            self.post_message(LogView.TextAsked(place.regex))
        else:
            state.go_to(place)
        self.view.repaint()
        return True

    def _close(self) -> None:
        self._prompt.close()
        self.view.focus()

    def action_leave_prompt(self) -> None:
        if not self.leave_prompt():
            raise SkipAction

    def leave_prompt(self) -> bool:
        """Close the prompt and take back what it tried; False when it was not open."""
        if not self._prompt.has_class("-asking"):
            return False
        state = self.view.state
        if state is not None and self._asking == "search":
            state.search(None)
        elif state is not None and self._asking == "filter":
            state.filter_by(self._was_only, state.floor, state.context)
        self._close()
        self.view.repaint()
        return True
