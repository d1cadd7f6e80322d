"""First start and `A`: paste an ssh command, see what it means while typing, accept the key, done."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.engine.events import LinkChanged
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.i18n.messages import explain
from cockpit.screens.base import CockpitScreen
from cockpit.screens.host_key import ask_trust
from cockpit.screens.pasted_words import suggested_name, understood
from cockpit.widgets.host_words import sentence

if TYPE_CHECKING:
    from cockpit.engine.events import Event

EXAMPLE = "ssh -p 41234 root@203.0.113.5 -i ~/.ssh/id_ed25519"


KEPT_KEYS = frozenset("d?:q")
"""Demo, help, palette, leave: everything else that can be typed begins the command."""


class FirstStartScreen(CockpitScreen):
    """Two inputs and what came of them. Nothing connects before the second enter."""

    MODE = "fleet"
    AUTO_FOCUS = ""
    CSS_PATH = "first_start.tcss"
    HINTS = ("first.demo", "first.type", "back")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "demo", _("demo fleet"), id="first.demo", tooltip=_("Nothing leaves this computer")),
        Binding("enter", "type", _("type"), id="first.type", tooltip=_("Write the command by hand")),
    ]  # fmt: skip

    def __init__(self, *, first: bool = False) -> None:
        super().__init__()
        self._first = first
        self._added: HostName | None = None

    def compose_body(self) -> ComposeResult:
        with Vertical(id="first-box") as box:
            box.border_title = _("no hosts yet") if self._first else _("add a host")
            yield Static(self._lead_words(), markup=False, id="first-lead")
            yield Input(placeholder=EXAMPLE, select_on_focus=False, id="first-line")
            yield Static("", markup=False, id="first-understood")
            yield Static("", markup=False, id="first-dropped")
            yield Static(_("Name in cockpit"), markup=False, id="first-name-label")
            yield Input(placeholder="vast-a", id="first-name")
            yield Static("", markup=False, id="first-state")
            yield Static(self._key_words(), markup=False, id="first-keys")

    def _lead_words(self) -> str:
        lead = _("Paste the ssh command from your provider's page; it is only read, never run.")
        if self._first:
            lead += "\n" + _("Or press d for the demo fleet: nothing leaves this computer.")
        return lead

    def _key_words(self) -> str:
        return _(
            "enter: on to the name, then connect.   esc: leave.   Nothing is sent before that."
        )

    def on_mount(self) -> None:
        if not self._first:
            self.query_one("#first-line", Input).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._first if action == "demo" else True

    # -- typing ----------------------------------------------------------------------------------

    def on_paste(self, event: events.Paste) -> None:
        """A paste lands in the input, wherever the focus is."""
        if self.focused is None:
            line = self.query_one("#first-line", Input)
            line.value = event.text.strip().split("\n")[0]
            line.focus()

    def on_key(self, event: events.Key) -> None:
        """What one types goes into the line; only the keys that this screen names keep their meaning."""
        if self.focused is not None or event.character is None or not event.is_printable:
            return
        if event.character in KEPT_KEYS:
            return
        event.stop()
        event.prevent_default()
        line = self.query_one("#first-line", Input)
        line.focus()
        line.insert_text_at_cursor(event.character)

    def action_type(self) -> None:
        self.query_one("#first-line", Input).focus()

    @on(Input.Changed, "#first-line")
    def _typed(self, event: Input.Changed) -> None:
        words, second, fine = understood(event.value)
        self.query_one("#first-understood", Static).update(words)
        dropped = self.query_one("#first-dropped", Static)
        dropped.update(second)
        dropped.set_class(not fine, "-wrong")
        if fine:
            self.query_one("#first-name", Input).value = suggested_name(
                event.value, self.engine.hosts
            )

    @on(Input.Submitted, "#first-line")
    def _line_done(self, event: Input.Submitted) -> None:
        if understood(event.value)[2]:
            self.query_one("#first-name", Input).focus()

    @on(Input.Submitted, "#first-name")
    async def _add(self) -> None:
        line = self.query_one("#first-line", Input).value
        name = self.query_one("#first-name", Input).value.strip()
        try:
            spec = await self.engine.add_host(name, line)
        except CockpitError as error:
            self._say(explain(error.code, dict(error.facts)).headline, wrong=True)
            return
        self._added = spec.name
        self._follow()

    def _say(self, words: str, *, wrong: bool = False) -> None:
        state = self.query_one("#first-state", Static)
        state.update(safe_line(words))
        state.set_class(wrong, "-wrong")

    # -- what comes of it ------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        if isinstance(event, LinkChanged) and event.host == self._added:
            self._follow()

    def pull(self) -> None:
        if self._added is not None:
            self._follow()

    def _follow(self) -> None:
        """Show how far the new host is; its key is asked for at once, the fleet comes when it lives."""
        assert self._added is not None
        state = self.engine.fleet.hosts.get(self._added)
        if state is None or not self.is_top:
            return
        if state.latest is not None:
            self._added = None
            self.app.notify(_("enter opens a host, l launches, ? helps"), markup=False)
            self.app.pop_screen()
        elif state.link == "host_key":
            self._added, host = None, self._added
            self.app.pop_screen()
            ask_trust(self.app, host)
        else:
            self._say(f"{safe_line(state.host)}: {sentence(state, self.engine.now_s())}")

    def action_demo(self) -> None:
        self.app.exit("demo")
