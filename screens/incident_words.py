"""What the list of incidents says of itself: its title, and why it is empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text
from cockpit.i18n import _, ngettext
from cockpit.i18n.sentences import join, listed
from cockpit.screens.incident_list import Entry

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi


def quiet_words(engine: EngineApi, everyone: Sequence[Entry], since_s: float) -> str:
    hosts = engine.fleet.hosts
    cards = sum(len(state.latest.gpus) for state in hosts.values() if state.latest is not None)
    runs = sum(not view.ended for view in engine.runs.all())
    away = [name for name, state in hosts.items() if state.link not in ("live", "degraded")]
    watched = _("{hosts} hosts, {cards} cards and {runs} runs are watched.").format(
        hosts=len(hosts), cards=cards, runs=runs
    )
    if away:
        first = _("Nothing open on what we can see; {hosts} does not answer.").format(
            hosts=", ".join(safe_line(name) for name in away[:3])
        )
    else:
        first = _("All quiet for {time}.").format(time=duration_text(int(since_s)))
    muted = sum(one.is_muted for one in everyone)
    if muted:
        words = ngettext(
            "Nothing open but {n} that is muted.", "Nothing open but {n} that are muted.", muted
        )
        first = words.format(n=muted)
    hidden = sum(one.is_hidden for one in everyone)
    more = _("H shows {n} more.").format(n=hidden) if hidden else ""
    return join(tuple(part for part in (first, watched, more) if part))


def title_words(listed_count: int, shown: Sequence[Entry], order: str, filter_text: str) -> str:
    """ "2 incidents, newest first"."""
    if filter_text:
        words = _("{shown} of {total} incidents fit {filter}").format(
            shown=len(shown), total=listed_count, filter=filter_text[:30]
        )
    else:
        words = ngettext("{n} incident", "{n} incidents", len(shown)).format(n=len(shown))
    return f"{words}, {order}" if shown else words


def hidden_words(everyone: Sequence[Entry], shown: Sequence[Entry]) -> str:
    """ "H: 2 settled, 1 muted, 4 earlier"; empty when nothing is hidden."""
    hidden = {one.key for one in everyone} - {one.key for one in shown}
    left = [one for one in everyone if one.key in hidden and one.is_hidden]
    muted = sum(one.is_muted for one in left)
    earlier = sum(one.is_earlier for one in left)
    settled = len(left) - muted - earlier
    parts = []
    if settled:
        parts.append(_("{n} settled").format(n=settled))
    if muted:
        parts.append(_("{n} muted").format(n=muted))
    if earlier:
        parts.append(_("{n} earlier").format(n=earlier))
    return "H: " + listed(parts) if parts else ""
