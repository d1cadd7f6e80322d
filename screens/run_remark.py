"""A line that a person writes to a run: why it was started, what came of it."""

from __future__ import annotations

from textual.screen import Screen

from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.screens.base import services
from cockpit.screens.dialogs import TextPrompt

MOST_CHARS = 200


async def write_remark(screen: Screen[None], view: RunView) -> None:
    """Ask for the line and keep it. To be run in a worker."""
    from cockpit.screens.run_actions import show_error

    typed = await screen.app.push_screen_wait(
        TextPrompt(
            _("About {name}").format(name=safe_line(view.profile)),
            body=_("Run {run}. One line, kept on this computer; the filter finds it.").format(
                run=view.run
            ),
            value=view.remark,
            check=_check,
        )
    )
    if typed is None or typed.strip() == view.remark:
        return
    try:
        await services(screen).engine.set_remark(view.run, typed.strip())
    except CockpitError as error:
        show_error(screen.app, _("The line was not kept"), error)


def _check(typed: str) -> tuple[bool, str]:
    left = MOST_CHARS - len(typed)
    if left < 0:
        return False, _("{count} characters too long").format(count=-left)
    return True, "" if typed else _("empty takes it away")
