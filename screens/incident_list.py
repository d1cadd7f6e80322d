"""Which incidents the screen lists, in which order, and whether a filter lets them through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.domain.filter_fields import FilterRow
from cockpit.domain.filter_nodes import Filter
from cockpit.domain.incidents import Incident
from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.i18n.describe import title_of
from cockpit.i18n.incident_texts import TITLES
from cockpit.widgets.incident_row import SETTLED, IncidentRow, moment, state_words
from cockpit.widgets.incident_strip import where

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

ORDERS: dict[str, tuple[str, Callable[[Entry], tuple[object, ...]] | None]] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: of this session, or as an earlier one left it."""

    incident: Incident
    is_earlier: bool = False

    @property
    def key(self) -> str:
        one = self.incident
        return f"{one.key}@{one.opened_s}" if self.is_earlier else one.key

    @property
    def is_muted(self) -> bool:
        """It would be heard if it were not for a rule."""
        one = self.incident
        return bool(one.mute) and not self.is_earlier and one.state not in SETTLED

    @property
    def is_hidden(self) -> bool:
        """Shown only when everything is."""
        one = self.incident
        return self.is_earlier or one.state in SETTLED or bool(one.mute)

    def row(self, now_s: float, *, is_timeline: bool = False) -> IncidentRow:
        title = safe_line(title_of(self.incident.finding))
        when = moment(self.incident.opened_s, now_s)
        when = when[:5] if when.count(":") == 2 else when
        until = self._over(now_s) if is_timeline else ""
        name = self.key if self.is_earlier else ""
        return IncidentRow(self.incident, title, when, name, until)

    def _over(self, now_s: float) -> str:
        """When it was over, as far as that is known."""
        one = self.incident
        if one.state not in SETTLED or not one.steps or one.steps[-1].what != one.state:
            return ""
        at = moment(one.steps[-1].at_s, now_s)
        return at[:5] if at.count(":") == 2 else at


ORDERS.update(
    u=(_("by urgency"), None),
    t=(_("newest first"), lambda entry: (-entry.incident.opened_s,)),
    h=(_("by host"), lambda entry: (entry.incident.host or "~", entry.incident.gpu or 0, -entry.incident.opened_s)),
    f=(_("by kind"), lambda entry: (entry.incident.family, -entry.incident.opened_s)),
)  # fmt: skip


def entries_of(session: Sequence[Incident], remembered: Sequence[Incident]) -> list[Entry]:
    """Muted ones after what is loud, earlier sessions' after this one's."""
    known = {one.key: one for one in session}
    quiet_last = sorted(session, key=lambda one: bool(one.mute))
    earlier = [one for one in remembered if not _is_same(one, known.get(one.key))]
    return [Entry(one) for one in quiet_last] + [Entry(one, is_earlier=True) for one in earlier]


def _is_same(remembered: Incident, known: Incident | None) -> bool:
    """A run's incident is one and the same for ever; a host's, each time it opens."""
    if known is None:
        return False
    return known.run is not None or known.opened_s == remembered.opened_s


def in_order(entries: Sequence[Entry], order: str) -> list[Entry]:
    key = ORDERS[order][1]
    return list(entries) if key is None else sorted(entries, key=key)  # type: ignore[arg-type]


def passes(engine: EngineApi, entry: Entry, wanted: Filter) -> bool:
    if wanted.node is None:
        return True
    return wanted.truth(_filter_row(engine, entry)) is True


def _filter_row(engine: EngineApi, entry: Entry) -> FilterRow:
    """Plain words are looked for in its title, place, signature, state and evidence."""
    one = entry.incident
    state = None if one.host is None else engine.fleet.hosts.get(one.host)
    spec = None if one.host is None else engine.hosts.get(one.host)
    words = (
        title_of(one.finding), _(TITLES[one.family]), one.family, one.finding.signature,
        where(one), one.state, state_words(one), one.finding.text, one.state_why,
    )  # fmt: skip
    return FilterRow(
        host=one.host or "",
        link="connecting" if state is None else state.link,
        tags=spec.tags if spec else (),
        run=one.profile or one.run,
        incidents=(one.family,),
        severity=one.severity,
        words=words,
        rank=one.finding.rank,
        card_index=one.gpu,
        own_state=one.state,
        muted=bool(one.mute),
        opened_s=max(0.0, engine.wall_s() - one.opened_s),
    )
