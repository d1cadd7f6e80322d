"""The host key dialogs: first contact and a changed key. A key held down accepts nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button, Static

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.engine.fleet import HostState
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.i18n.messages import explain
from cockpit.screens.base import services
from cockpit.screens.dialogs import Dialog, MessageDialog

STILL_S = 0.7
"""`t` counts only after this long without a `t`: the one that opened the dialog may be held down."""


class HostKeyDialog(Dialog[bool]):
    """Shows whose key it is, in full, and what to compare it with. Not now is the default."""

    CSS_PATH: ClassVar[list[str]] = ["dialogs.tcss", "host_key.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "trust", _("trust"), id="key.trust", tooltip=_("Record this key and connect")),
        Binding("left,up", "app.focus_previous", show=False, id="key.previous"),
        Binding("right,down", "app.focus_next", show=False, id="key.next"),
    ]

    def __init__(self, state: HostState, clock: Callable[[], float] = time.monotonic) -> None:
        self._changed = state.known_fingerprint is not None
        super().__init__(_("the host key changed") if self._changed else _("a new host"))
        self._state = state
        self._clock = clock
        self._last_t_s = clock()

    def compose_body(self) -> ComposeResult:
        host = safe_line(self._state.host, 80)
        self.set_class(self._changed, "-danger")
        if self._changed:
            yield from self._changed_words(host)
        else:
            yield from self._new_words(host)
        with Horizontal(id="dialog-buttons"):
            yield Button(Content(_("Not now")), id="cancel")
            label = _("t  Replace the old key") if self._changed else _("t  Trust and connect")
            yield Button(Content(label), id="trust", disabled=not self._state.fingerprint)
        command = f"cockpit hosts trust {host} --fingerprint {self._offered}"
        yield Static(_("shell: {command}").format(command=command), markup=False, classes="keys")

    @property
    def _offered(self) -> str:
        return safe_line(self._state.fingerprint or "", 100)

    def _new_words(self, host: str) -> ComposeResult:
        yield _line(_("{host} is new to cockpit. Its key is").format(host=host), "headline")
        yield _line(self._key_text(self._offered), "key")
        yield from self._hop_words()
        yield _line(_("No password or key of yours was used yet."))
        yield _line(
            _(
                "Compare it with the platform's page, or run this in the platform's web terminal:\n"
                "  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
            )
        )

    def _changed_words(self, host: str) -> ComposeResult:
        words = _("{host} answers with a different key than before; we did not connect.")
        yield _line(words.format(host=host), "headline")
        yield _line(_("known  ") + safe_line(self._state.known_fingerprint or "", 100), "key")
        yield _line(_("now    ") + self._key_text(self._offered), "key")
        yield from self._hop_words()
        yield _line(
            _(
                "On a rented box the usual reason is a new machine behind the same address, or a "
                "reinstall; the other reason is someone in between. If you re-rented or reset it, "
                "check the new fingerprint on the platform's page, then t. If you did not, do not "
                "connect. Runs on it are not touched."
            )
        )

    def _key_text(self, fingerprint: str) -> str:
        return f"{safe_line(self._state.key_type or '', 20)} {fingerprint}".strip()

    def _hop_words(self) -> ComposeResult:
        hop = self._state.why.get("hop_name") or self._state.why.get("hop")
        if hop:
            words = _("It is the key of the jump host {hop}.").format(hop=safe_line(str(hop), 80))
            yield _line(words)

    def on_mount(self) -> None:
        self.query_one("#cancel", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "trust")

    def action_trust(self) -> None:
        now_s = self._clock()
        still_s, self._last_t_s = now_s - self._last_t_s, now_s
        if still_s >= STILL_S and self._state.fingerprint:
            self.dismiss(True)

    def action_cancel(self) -> None:
        self.dismiss(False)


def _line(text: str, classes: str = "words") -> Static:
    return Static(Content(text), markup=False, classes=classes)


def ask_trust(app: App[Any], host: HostName) -> None:
    """Show the key that `host` offers and take the person's answer."""
    state = services(app.screen).engine.fleet.hosts.get(host)
    if state is None or state.link != "host_key":
        return
    offered = state.fingerprint

    async def take(answer: bool | None) -> None:
        if answer and offered:
            await _trust(app, host, offered)

    app.push_screen(HostKeyDialog(state), take)


async def _trust(app: App[Any], host: HostName, fingerprint: str) -> None:
    """Accept exactly the key that was shown; another one by now is refused by the engine."""
    try:
        await services(app.screen).engine.trust(host, fingerprint)
    except CockpitError as error:
        message = explain(error.code, dict(error.facts))
        await app.push_screen(
            MessageDialog(
                safe_line(host, 80),
                message.headline,
                message.body,
                actions=message.actions,
                code=message.code,
            )
        )
        return
    words = _("the key of {host} is recorded; connecting").format(host=safe_line(host, 80))
    app.notify(words, markup=False)
