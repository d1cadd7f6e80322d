"""What one can do with the host under the cursor, the same on every screen that shows hosts."""

from __future__ import annotations

import os
import shlex
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.i18n.messages import explain
from cockpit.screens.base import services
from cockpit.screens.dialogs import MessageDialog
from cockpit.screens.host_key import ask_trust
from cockpit.screens.navigation import open_launch
from cockpit.screens.terminal import lend_terminal


class HostActions(Screen[None]):
    """Mixed into a screen that knows the place of its cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "visit", _("shell"), id="host.visit", tooltip=_("ssh in this terminal")),
        Binding("t", "trust", _("trust"), id="host.trust", tooltip=_("Show the host's key")),
        Binding("L", "launch", _("launch here"), id="host.launch", tooltip=_("On this host and card")),
        Binding("e", "edit", _("edit"), id="host.edit", tooltip=_("hosts.toml in your editor")),
        Binding("y", "copy", _("copy"), id="copy", tooltip=_("The card's uuid or the ssh line")),
        Binding("f5", "probe_here", _("probe now"), id="host.probe", tooltip=_("This host again, at once")),
    ]  # fmt: skip

    def cursor_place(self) -> tuple[HostName, int | None] | None:
        """The host and card that an action is about."""
        raise NotImplementedError

    def _host(self) -> HostName | None:
        place = self.cursor_place()
        return None if place is None else place[0]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "trust":
            host = self._host()
            state = services(self).engine.fleet.hosts.get(host) if host is not None else None
            return state is not None and state.link == "host_key"
        return True

    def open_trouble(self, host: HostName) -> bool:
        """Where enter leads when a host cannot be looked at: its key, or why it does not answer."""
        state = services(self).engine.fleet.hosts.get(host)
        if (
            state is None
            or state.link not in ("host_key", "auth_failed")
            or state.latest is not None
        ):
            return False
        if state.link == "host_key":
            ask_trust(self.app, host)
        else:
            facts: dict[str, object] = {"host": host, **state.why}
            self._explain(state.code or state.link, facts, title=safe_line(host))
        return True

    def _explain(self, code: str, facts: dict[str, object], *, title: str) -> None:
        message = explain(code, facts)  # type: ignore[arg-type]
        self.app.push_screen(
            MessageDialog(
                title, message.headline, message.body, actions=message.actions, code=message.code
            )
        )

    def action_visit(self) -> None:
        host = self._host()
        if host is None:
            return
        try:
            why = lend_terminal(self.app, services(self).engine.shell_argv(host))
        except CockpitError as error:
            self._explain(error.code, dict(error.facts), title=safe_line(host))
            return
        if why is not None:
            self.app.notify(safe_line(why), severity="warning", markup=False)

    def action_trust(self) -> None:
        host = self._host()
        if host is not None:
            ask_trust(self.app, host)

    def action_launch(self) -> None:
        place = self.cursor_place()
        if place is not None:
            open_launch(self.app, *place)

    async def action_edit(self) -> None:
        file = services(self).options.hosts_file
        if file is None:
            self.app.notify(_("there is no hosts.toml to edit here"), markup=False)
            return
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        why = lend_terminal(self.app, [*shlex.split(editor), str(file)])
        if why is not None:
            self.app.notify(safe_line(why), severity="warning", markup=False)
            return
        try:
            await services(self).engine.reload_hosts()
        except CockpitError as error:
            self._explain(error.code, dict(error.facts), title="hosts.toml")

    def action_copy(self) -> None:
        place = self.cursor_place()
        if place is None:
            return
        host, card = place
        state = services(self).engine.fleet.hosts.get(host)
        cards = state.latest.gpus if state is not None and state.latest is not None else ()
        uuid = next((gpu.uuid for gpu in cards if gpu.index == card), "")
        try:
            text = uuid or " ".join(map(shlex.quote, services(self).engine.shell_argv(host)))
        except CockpitError as error:
            self._explain(error.code, dict(error.facts), title=safe_line(host))
            return
        self.app.copy_to_clipboard(safe_line(text))
        self.app.notify(_("copied {text}").format(text=safe_line(text)), timeout=3, markup=False)

    def action_probe_here(self) -> None:
        host = self._host()
        services(self).engine.probe_now(() if host is None else (host,))
