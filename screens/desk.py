"""The desk: what one does beside watching. Its parts that are not there yet are named as such."""

from __future__ import annotations

from textual.app import ComposeResult

from cockpit.i18n import _
from cockpit.screens.base import CockpitScreen
from cockpit.widgets.text_pane import BLANK, Para, TextPane, code, heading, para


class DeskScreen(CockpitScreen):
    """One page of text: which command answers which question today."""

    MODE = "desk"
    HINTS = ("palette",)

    def compose_body(self) -> ComposeResult:
        yield TextPane(_("desk"), id="desk")

    def on_mount(self) -> None:
        pane = self.query_one(TextPane)
        pane.show(desk_paras())
        pane.focus()


def desk_paras() -> list[Para]:
    later = _("Doctor, fit, cost and journal are not in this version.")
    plans = [
        (_("doctor"), _("is this host fit for that profile: driver, disk, Python, network")),
        (_("fit"), _("does this model fit on that card, and with which settings")),
        (_("cost"), _("what the fleet took today, and what stood idle")),
        (_("journal"), _("what happened on a host, hour by hour")),
    ]
    works = [
        ("cockpit scan FILE", _("why a run died, read from any log file")),
        ("cockpit status --json", _("every host and card, for a script")),
        ("cockpit profile check FILE", _("every mistake of a profile, with its line")),
        ("cockpit hosts list", _("the hosts as they are resolved, ssh_config included")),
        ("cockpit help CODE", _("what a code at the end of a message means")),
    ]
    rows = [heading(_("In a shell, today")), BLANK]
    rows += [_pair(command, words) for command, words in works]
    rows += [BLANK, heading(_("Later, on this screen")), BLANK]
    rows += [_pair(name, words) for name, words in plans]
    return [*rows, BLANK, para(later, "muted")]


def _pair(left: str, words: str) -> Para:
    return code((left.ljust(28), "ok"), (words, "text"), indent=2)
