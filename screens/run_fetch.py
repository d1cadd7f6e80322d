"""A run's results to this computer, because somebody asks: what comes of it is told as it happens."""

from __future__ import annotations

from textual.screen import Screen

from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.screens.base import services


def fetch_results(screen: Screen[None], view: RunView) -> None:
    """While it runs too: what is there by now comes, and the rest at its end."""
    from cockpit.i18n.messages import explain

    name = safe_line(view.profile)
    try:
        is_begun = services(screen).engine.fetch(view.run)
    except CockpitError as error:
        screen.notify(explain(error.code, error.facts).headline, severity="warning", markup=False)
        return
    if is_begun:
        words = _("Fetching the results of {name} ...").format(name=name)
        screen.notify(words, markup=False)
    else:
        words = explain("fetch_none", {"profile": name}).headline
        screen.notify(words, severity="warning", markup=False)
