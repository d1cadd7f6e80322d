"""Remedies of the run that has the incident: fitted to its profile, tried against the schema, ready to be applied."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cockpit.domain.gang import member_of
from cockpit.domain.incident_book import Place
from cockpit.domain.incidents import Finding, Incident, Remedy
from cockpit.domain.models import GpuSample, HostName, RunId
from cockpit.domain.remedy_case import Room
from cockpit.engine.around import AroundRuns
from cockpit.engine.incidents_api import Mend
from cockpit.engine.past_runs import PastRuns
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import RunUnknown

if TYPE_CHECKING:
    from cockpit.config.profile import Profile

_MOST_TRIED: Final = 256
_UNEXPLAINED_MIB: Final = 1024
"""The driver's own part and rounding stay below it."""


class Mender:
    """Knows the profile of each run that was started from here."""

    def __init__(
        self, parts: EngineParts, book: RunBook, around: AroundRuns, past: PastRuns
    ) -> None:
        self._parts = parts
        self._book = book
        self._around = around
        self._past = past
        self._asked: set[RunId] = set()
        self._tried: dict[tuple[RunId | None, str], bool] = {}

    def fit(self, finding: Finding, place: Place) -> Finding:
        """The finding with its run's own remedies; as it is while its profile is not known."""
        run = place.run
        if run is None or not finding.remedies:
            return finding
        profile = self._around.known_profile(run)
        if profile is not None:
            return self._fitted(finding, profile, place)
        past = self._past.get(run)
        if past is not None and past.has_origin and run not in self._asked:
            self._asked.add(run)
            self._around.spawn(run, self._later(run))
        return finding

    async def _later(self, run: RunId) -> None:
        """An earlier session started it: once its profile is read, its incidents are told anew."""
        if await self._around.profile_of(run) is not None:
            self._parts.incidents.refit(run)

    def _fitted(self, finding: Finding, profile: Profile, place: Place) -> Finding:
        from cockpit.domain.remedy_fit import fitted

        made = fitted(finding, profile.document, self._room(place))
        remedies = tuple(self._offered(remedy, profile, place.run) for remedy in made.remedies)
        return replace(made, remedies=remedies)

    def _offered(self, remedy: Remedy, profile: Profile, run: RunId | None) -> Remedy:
        """Without its change where the profile's schema would not take it, or a secret's value stands in it."""
        if not remedy.patch:
            return remedy
        from cockpit.config.profile import takes

        texts = overrides_of(remedy)
        known = (run, "\0".join(texts))
        if known not in self._tried:
            if len(self._tried) >= _MOST_TRIED:
                self._tried.clear()
            self._tried[known] = takes(profile, texts) and not self._tells_a_secret(run, texts)
        return remedy if self._tried[known] else replace(remedy, patch=None)

    def _tells_a_secret(self, run: RunId | None, texts: Sequence[str]) -> bool:
        """A list of arguments may hold what somebody wrote into it; changes are shown, printed and kept."""
        masker = self._past.maskers.get(run) if run is not None else None
        return masker is not None and any(masker.text(text) != text for text in texts)

    def _room(self, place: Place) -> Room:
        state = self._parts.fleet.hosts.get(place.host) if place.host is not None else None
        if state is None or state.latest is None:
            return Room()
        sample, view = state.latest, None if place.run is None else self._book.get(place.run)
        index = place.gpu if place.gpu is not None or view is None else next(iter(view.gpus), None)
        card = next((gpu for gpu in sample.gpus if gpu.index == index), None)
        total = None if card is None else card.mem_total_mib
        others = None if card is None else _others_mib(card, place.run)
        cores = _least(sample.facts.cores, sample.cpu_quota_cores)
        return Room(total, others, len(sample.gpus) or None, cores)

    # -- applying ---------------------------------------------------------------------------

    async def mend(self, incident: Incident) -> Mend:
        """The first remedy that changes the profile. Raises ProfileError, UsageError, StorageError."""
        run = incident.run
        past = None if run is None else self._past.get(run)
        is_again = run is not None and past is not None and past.has_origin
        if is_again:
            assert run is not None
            profile, gpus, is_edited = await self._of_then(run)
        elif incident.profile is not None:
            profile, gpus = await asyncio.to_thread(self._of_now, incident.profile), None
            is_edited = False
        else:
            return Mend(None, note="nothing")
        place = Place(incident.host, incident.gpu, run, incident.profile)
        finding = self._fitted(incident.finding, profile, place)
        remedy = _first_change(finding)
        if remedy is None:
            had_one = _first_change(incident.finding) is not None
            return Mend(None, before=profile.document, note="gone" if had_one else "nothing")
        return Mend(
            remedy, tuple(overrides_of(remedy)), profile.document, self._hosts_of(incident), gpus,
            run if is_again else None, "edited" if is_edited else "",
        )  # fmt: skip

    async def _of_then(self, run: RunId) -> tuple[Profile, tuple[int, ...] | None, bool]:
        """As `plan_again` will have it."""
        from cockpit.engine.origins import is_edited, profile_again

        origin = await self._past.history.origin(run)
        if origin is None:
            raise RunUnknown("run_not_from_here", run=run)
        profile = await asyncio.to_thread(profile_again, origin, self._parts.home)
        return profile, origin.gpus, await asyncio.to_thread(is_edited, origin)

    def _of_now(self, name: str) -> Profile:
        from cockpit.config.profile import load_profile

        return load_profile(name, self._parts.home)

    def _hosts_of(self, incident: Incident) -> tuple[HostName, ...]:
        """A run on several hosts takes those of its profile."""
        view = None if incident.run is None else self._book.get(incident.run)
        if incident.host is None or (view is not None and member_of(view) is not None):
            return ()
        return (incident.host,)


def overrides_of(remedy: Remedy) -> Sequence[str]:
    """A remedy's change as `--set` strings."""
    from cockpit.config.overrides import override_text

    return [override_text(key, value) for key, value in (remedy.patch or {}).items()]


def _first_change(finding: Finding) -> Remedy | None:
    return next((remedy for remedy in finding.remedies if remedy.patch), None)


def _others_mib(card: GpuSample, run: RunId | None) -> float | None:
    """Held on the card by others than the run; None where that cannot be told.

    The list of processes is older than the card's own number: what none of it explains may be the run's.
    """
    used = card.mem_used_mib
    known = [one for one in card.processes if one.mem_used_mib is not None]
    if used is None or len(known) < len(card.processes):
        return None
    own = sum(one.mem_used_mib or 0 for one in known if one.run == run)
    others = sum(one.mem_used_mib or 0 for one in known if one.run != run)
    is_explained = used - own - others < _UNEXPLAINED_MIB
    return max(0.0, used - own) if is_explained else None


def _least(cores: int | None, quota: float | None) -> int | None:
    """The cores that the run may use: a container's quota is what counts."""
    known = [number for number in (cores, quota) if number is not None]
    return max(1, int(min(known))) if known else None
