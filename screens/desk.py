"""The desk: every link with its facts, how this session looks, and what a shell can do beside it."""

from __future__ import annotations

from textual.app import ComposeResult

from cockpit.domain.text import cut_end, safe_line
from cockpit.engine.fleet import HostState
from cockpit.i18n import _
from cockpit.screens.base import CockpitScreen, services
from cockpit.widgets.drawing import padded
from cockpit.widgets.host_words import reason
from cockpit.widgets.text_pane import BLANK, Para, Role, TextPane, code, heading


class DeskScreen(CockpitScreen):
    """One page of facts, brought up to date while it is looked at."""

    MODE = "desk"
    HINTS = ("theme.next", "probe", "palette")

    def compose_body(self) -> ComposeResult:
        yield TextPane(_("desk"), id="desk")

    def on_mount(self) -> None:
        self.query_one(TextPane).focus()

    def pull(self) -> None:
        now_s = self.engine.now_s()
        self.query_one(TextPane).show(
            [
                heading(_("Links")),
                *(_link_para(state, now_s) for state in self.engine.fleet.hosts.values()),
                BLANK,
                heading(_("This session")),
                *self._session(),
                BLANK,
                heading(_("In a shell")),
                *shell_paras(),
            ]
        )

    def _session(self) -> list[Para]:
        look, options = self.look, services(self).options
        pairs = [
            (_("theme"), _("{title}  (T changes it)").format(title=look.palette.title)),
            (_("glyphs"), look.glyphs.name),
            (_("charts"), options.charts),
            (_("hosts"), str(options.hosts_file or "n/a")),
            (_("own keys"), str(len(options.keys))),
            (_("saved filters"), ", ".join(f"/{name}" for name in options.filters) or "-"),
        ]
        return [_pair(name, safe_line(value, 200)) for name, value in pairs]


def _pair(name: str, value: str) -> Para:
    return code((padded(name, 16), "muted"), (value, "text"), indent=2)


def _link_para(state: HostState, now_s: float) -> Para:
    words = reason(state, now_s) or state.link
    quiet: Role = "text" if state.link == "live" else "muted"
    role: Role = quiet if state.link in ("live", "connecting") else "warn"
    latency = "" if state.latency_s is None else f"{state.latency_s * 1000:.0f} ms"
    return code(
        (padded(cut_end(safe_line(state.host), 20), 21), "text"),
        (padded(cut_end(safe_line(state.address or ""), 26), 27), "muted"),
        (f"{latency:>7}  ", "muted"),
        (words, role),
        indent=2,
    )


def shell_paras() -> list[Para]:
    """Commands that answer what no screen does."""
    commands = [
        ("cockpit scan FILE", _("why a run died, read from any log file")),
        ("cockpit status --json", _("every host and card, for a script")),
        ("cockpit profile check FILE", _("every mistake of a profile, with its line")),
        ("cockpit hosts list", _("the hosts as they are resolved, ssh_config included")),
        ("cockpit help CODE", _("what a code at the end of a message means")),
    ]
    return [code((padded(name, 30), "ok"), (words, "text"), indent=2) for name, words in commands]
