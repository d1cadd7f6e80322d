"""What goes along with a host on this computer: its forwarded ports, and what it costs while it stands still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.screen import Screen

from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.screens.run_facts import port_words
from cockpit.widgets.drawing import padded
from cockpit.widgets.host_words import idle_text
from cockpit.widgets.text_pane import Para, Role, code

if TYPE_CHECKING:
    from cockpit.domain.models import HostName
    from cockpit.engine.api import EngineApi, Forwarded

_NAME_CELLS = 11


def around_paras(engine: EngineApi, host: HostName) -> list[Para]:
    """Nothing for a host that works and forwards no port."""
    paras = []
    spec, state = engine.hosts.get(host), engine.fleet.hosts[host]
    now_s = engine.now_s()
    idle_s = state.idle_s(now_s)
    if (words := idle_text(state, now_s)) and idle_s is not None:
        if spec is not None and spec.price_per_h is not None:
            spent = f"{spec.price_per_h * idle_s / 3600:.2f} {spec.currency or ''}".rstrip()
            words = _("{idle}: {spent} for nothing").format(idle=words, spent=spent)
        paras.append(_fact(_("cards"), words, "warn"))
    for one in engine.host_forwards(host):
        paras.append(_fact(_("port"), port_words(one), "text" if one.is_open else "warn"))
    return paras


def open_port(screen: Screen[None], forwards: Sequence[Forwarded], name: str) -> None:
    """The first open port in the browser; in words why there is none."""
    opened = next((one for one in forwards if one.is_open), None)
    if opened is not None:
        screen.app.open_url(f"http://localhost:{opened.local_port}/")
    elif forwards:
        words = _("Port {port} is not forwarded now").format(port=forwards[0].local_port)
        screen.notify(words, severity="warning", markup=False)
    else:
        screen.notify(_("{name} forwards no port").format(name=safe_line(name)), markup=False)


def _fact(name: str, value: str, role: Role) -> Para:
    return code((padded(name, _NAME_CELLS), "muted"), (safe_line(value, 300), role))
