"""The filter's input line with the line under it: what was understood, or where it cannot be read."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from cockpit.i18n import _

HISTORY = 20


class FilterInput(Input):
    """An input of one row whose escape and arrows mean what they mean in a filter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave_filter", _("clear"), id="filter.clear", show=False),
        Binding("up", "recall(-1)", _("earlier"), id="filter.earlier", show=False),
        Binding("down", "recall(1)", _("later"), id="filter.later", show=False),
        Binding("tab", "take", _("take"), id="filter.take", show=False),
    ]

    def action_leave_filter(self) -> None:
        self.post_message(FilterBar.Left())

    def action_recall(self, step: int) -> None:
        self.post_message(FilterBar.Recalled(step))

    def action_take(self) -> None:
        self.post_message(FilterBar.FixTaken())


class FilterBar(Vertical):
    """Hidden until asked for. It reports what is typed and knows nothing of the grammar."""

    DEFAULT_CSS = """
    FilterBar { height: auto; display: none; background: $panel; padding: 0 1; }
    FilterBar.-open { display: block; }
    FilterBar Input { height: 1; border: none; padding: 0; background: $panel; }
    FilterBar Input:focus { border: none; background-tint: $panel 0%; }
    FilterBar #filter-note { height: 1; color: $text-muted; }
    FilterBar #filter-note.-wrong { color: $warning; }
    """

    class Typed(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Accepted(Message):
        """Enter: keep the filter and go back to the list."""

    class Left(Message):
        """Escape: close, without a filter."""

    class Recalled(Message):
        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class FixTaken(Message):
        """Tab: take the offered correction."""

    def __init__(self) -> None:
        super().__init__()
        self._history: deque[str] = deque(maxlen=HISTORY)
        self._position = 0

    def compose(self) -> ComposeResult:
        yield FilterInput(
            placeholder=_("words, or free>20GiB, host:h100, !incident"), id="filter-text"
        )
        yield Static("", id="filter-note", markup=False)

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    @property
    def text(self) -> str:
        return self.query_one(FilterInput).value

    @text.setter
    def text(self, value: str) -> None:
        box = self.query_one(FilterInput)
        box.value = value
        box.cursor_position = len(value)

    def open(self) -> None:
        self.add_class("-open")
        self._position = len(self._history)
        self.query_one(FilterInput).focus()

    def close(self) -> None:
        self.remove_class("-open")

    def say(self, words: str, *, wrong: bool) -> None:
        note = self.query_one("#filter-note", Static)
        note.set_class(wrong, "-wrong")
        note.update(words)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Typed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value and (not self._history or self._history[-1] != event.value):
            self._history.append(event.value)
        self.post_message(self.Accepted())

    def on_filter_bar_recalled(self, event: FilterBar.Recalled) -> None:
        event.stop()
        self._position = max(0, min(len(self._history), self._position + event.step))
        past = list(self._history)
        self.text = past[self._position] if self._position < len(past) else ""
