"""Dialogs that every screen uses: confirm, prompt, secret, message, menu. Enter held down is always safe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from cockpit.i18n import _
from cockpit.widgets.look import look_of

Answer = TypeVar("Answer")
Check = Callable[[str], "tuple[bool, str]"]
"""Says of a text whether it may be taken, and what was understood or what is wrong with it."""


def plain(text: str | Content) -> Content:
    """Text that is never read as markup, wherever it came from."""
    return text if isinstance(text, Content) else Content(text)


class Dialog(ModalScreen[Answer]):
    """The frame: a titled box in the middle, closed by escape without an answer."""

    CSS_PATH = "dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", _("Cancel"), id="dialog.cancel", tooltip=_("Change nothing")),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._dialog_title = title

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as frame:
            frame.border_title = Content(self._dialog_title).markup
            yield from self.compose_body()

    def compose_body(self) -> ComposeResult:
        yield from ()

    def on_mount(self) -> None:
        self.set_class(look_of(self).glyphs.css_border == "ascii", "-ascii")

    def action_cancel(self) -> None:
        self.dismiss(None)


class ConfirmDialog(Dialog[bool]):
    """Asks before anything ends, sends or spends: names what follows, and Cancel has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up", "app.focus_previous", show=False, id="dialog.previous"),
        Binding("right,down", "app.focus_next", show=False, id="dialog.next"),
    ]

    def __init__(
        self,
        title: str,
        body: str | Content,
        *,
        confirm: str,
        cancel: str | None = None,
        follows: Sequence[str] = (),
        danger: bool = False,
    ) -> None:
        """`follows` are the consequences, one a line; `danger` marks what cannot be taken back."""
        super().__init__(title)
        self._body = plain(body)
        self._follows = follows
        self._confirm = confirm
        self._cancel = cancel or _("Cancel")
        self._danger = danger

    def compose_body(self) -> ComposeResult:
        self.set_class(self._danger, "-danger")
        with VerticalScroll(id="dialog-text", can_focus=False):
            yield Static(self._body, markup=False, id="dialog-body")
            for line in self._follows:
                yield Static(Content(f"- {line}"), markup=False, classes="follows")
        with Horizontal(id="dialog-buttons"):
            yield Button(Content(self._cancel), id="cancel")
            yield Button(Content(self._confirm), id="confirm")
        yield Static(_("tab other button   enter press   esc cancel"), markup=False, classes="keys")

    def on_mount(self) -> None:
        self.query_one("#cancel", Button).focus()

    @on(Button.Pressed)
    def _answer(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "confirm")

    def action_cancel(self) -> None:
        self.dismiss(False)


class TextPrompt(Dialog[str]):
    """Asks for one line. With `check` it says while one types what was understood, and takes no wrong answer."""

    def __init__(
        self,
        title: str,
        *,
        body: str | Content = "",
        value: str = "",
        placeholder: str = "",
        check: Check | None = None,
        secret: bool = False,
    ) -> None:
        super().__init__(title)
        self._body = plain(body)
        self._value = value
        self._placeholder = placeholder
        self._check = check
        self._secret = secret

    def compose_body(self) -> ComposeResult:
        if self._body:
            yield Static(self._body, markup=False, id="dialog-text")
        yield Input(
            self._value,
            placeholder=self._placeholder,
            password=self._secret,
            id="dialog-input",
            select_on_focus=False,
        )
        yield Static("", markup=False, id="dialog-note")
        yield Static(_("enter take it   esc cancel"), markup=False, classes="keys")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._say(self._value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._say(event.value)

    def _say(self, value: str) -> None:
        if self._check is None:
            return
        good, words = self._check(value)
        note = self.query_one("#dialog-note", Static)
        note.set_class(not good, "-wrong")
        note.update(Content(words))

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        event.stop()
        if self._check is None or self._check(event.value)[0]:
            self.dismiss(event.value)


class PasswordPrompt(TextPrompt):
    """Asks for a secret. It lives in this dialog and in the answer, and is stored nowhere."""

    def __init__(self, title: str, *, body: str | Content = "") -> None:
        super().__init__(title, body=body, secret=True)


class MessageDialog(Dialog[str]):
    """One message in the house's voice: what happened, why, what to do; its code in grey at the end."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "cancel", _("Close"), show=False, id="dialog.close"),
        Binding("y", "copy", _("Copy"), show=False, id="dialog.copy"),
    ]

    def __init__(
        self,
        title: str,
        headline: str,
        body: str | Content = "",
        *,
        actions: Sequence[str] = (),
        code: str = "",
    ) -> None:
        super().__init__(title)
        self._headline = headline
        self._body = plain(body)
        self._actions = actions
        self._code = code

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="dialog-text"):
            yield Static(Content(self._headline), markup=False, classes="headline")
            if self._body:
                yield Static(self._body, markup=False)
            for action in self._actions:
                yield Static(Content(f"- {action}"), markup=False, classes="follows")
            if self._code:
                yield Static(Content(self._code), markup=False, classes="code")
        yield Static(_("enter close   y copy"), markup=False, classes="keys")

    def on_mount(self) -> None:
        self.query_one("#dialog-text").focus()

    def action_copy(self) -> None:
        parts = [self._headline, self._body.plain, *(f"- {line}" for line in self._actions)]
        self.app.copy_to_clipboard("\n".join(part for part in [*parts, self._code] if part))
        self.notify(_("Copied the message with its code"), markup=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a menu. `key` is the answer; a single letter or digit picks it at once."""

    key: str
    label: str
    hint: str = ""
    disabled: bool = False


class ChoiceMenu(Dialog[str]):
    """A short menu: arrows and enter, or the letter itself. The same list serves sorting, muting, stamps."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move(1)", show=False, id="dialog.down"),
        Binding("k", "move(-1)", show=False, id="dialog.up"),
    ]

    def __init__(
        self, title: str, choices: Sequence[Choice], *, current: str | None = None, body: str = ""
    ) -> None:
        super().__init__(title)
        self._choices = choices
        self._current = current
        self._body = body

    def compose_body(self) -> ComposeResult:
        if self._body:
            yield Static(Content(self._body), markup=False, id="dialog-text")
        yield OptionList(*(self._option(choice) for choice in self._choices), id="dialog-menu")
        yield Static(_("enter choose   esc leave it"), markup=False, classes="keys")

    def _option(self, choice: Choice) -> Option:
        width = max(len(entry.key) for entry in self._choices)
        row = Content.assemble(
            (choice.key.ljust(width) + "  ", "bold"),
            choice.label,
            (f"  {choice.hint}" if choice.hint else "", "$text-muted"),
            ("  " + _("now") if choice.key == self._current else "", "$text-muted"),
        )
        return Option(row, id=f"choice-{self._choices.index(choice)}", disabled=choice.disabled)

    def on_mount(self) -> None:
        menu = self.query_one(OptionList)
        menu.highlighted = next(
            (n for n, choice in enumerate(self._choices) if choice.key == self._current), 0
        )
        menu.focus()

    def on_key(self, event: Key) -> None:
        for choice in self._choices:
            if event.character == choice.key and not choice.disabled:
                event.stop()
                event.prevent_default()
                self.dismiss(choice.key)
                return

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._choices[event.option_index].key)

    def action_move(self, step: int) -> None:
        menu = self.query_one(OptionList)
        menu.action_cursor_down() if step > 0 else menu.action_cursor_up()
