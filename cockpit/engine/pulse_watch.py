"""Runs the watch over every living run's progress, and over hosts whose cards nobody uses.

Fed once a sample: what the log has told is pulled from the run's follower, so that a flood costs nothing here.
A host without a link has no samples, and nothing is said of its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cockpit.domain.episode import INHIBITS
from cockpit.domain.gang import member_of
from cockpit.domain.incident_book import OPEN_STATES, Place, key_of
from cockpit.domain.incident_kin import ALSO_INHIBITS
from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.pulse import PulseSignal, RunPulse
from cockpit.domain.pulse_beat import SERVING_KINDS, Beat
from cockpit.domain.pulse_idle import HostIdle
from cockpit.domain.pulse_levels import LEVELS, Levels
from cockpit.domain.readiness import Readiness
from cockpit.domain.runs import RunView
from cockpit.engine.companions import can_tell
from cockpit.engine.follow import RunFollower
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_watch import RunWatch
from cockpit.engine.wiring import EngineParts

EVERY_S: Final = 0.9
"""A focused host is sampled more often than this needs."""
LIVING: Final = frozenset({"running", "ready"})
HERE: Final = frozenset({"queued", "starting", "running", "ready", "stopping"})


@dataclass(slots=True)
class _Living:
    """A run that lives, and who hears its log."""

    attempt: int
    pulse: RunPulse
    fed_s: float = float("-inf")


@dataclass(slots=True)
class _Ears:
    follower: RunFollower
    watch: RunWatch


@dataclass(slots=True)
class PulseWatch:
    parts: EngineParts
    book: RunBook
    readiness: Callable[[RunId], Readiness | None]
    """How the run shows that it is ready, where that is known."""
    _living: dict[HostName, dict[RunId, _Living]] = field(default_factory=dict)
    _ears: dict[RunId, _Ears] = field(default_factory=dict)
    _hosts: dict[HostName, HostIdle] = field(default_factory=dict)

    def listens(self, run: RunId, watch: RunWatch, follower: RunFollower) -> None:
        """This follower has the run's log from now on."""
        self._ears[run] = _Ears(follower, watch)

    def changed(self, view: RunView) -> None:
        """A run began, goes on in another attempt, or is over. What is merely out of reach is neither."""
        runs = self._living.setdefault(view.host, {})
        known = runs.get(view.run)
        if known is not None and (known.attempt != view.attempt or view.ended):
            del runs[view.run]
            for signal in known.pulse.end():
                self._settle(signal, view)
        if view.state in LIVING and view.run not in runs:
            runs[view.run] = _Living(view.attempt, RunPulse(self._levels(view.run)))
        if view.ended:
            self._ears.pop(view.run, None)

    def wished(self, run: RunId) -> None:
        """Its profile became known after it was begun."""
        for runs in self._living.values():
            known = runs.get(run)
            if known is not None and known.pulse.levels != self._levels(run):
                view = self.book.get(run)
                if view is not None:
                    for signal in known.pulse.end():
                        self._settle(signal, view)
                known.pulse = RunPulse(self._levels(run))

    def sampled(self, sample: HostSample) -> None:
        now_s = self.parts.clock.now_s()
        for run, living in list(self._living.get(sample.host, {}).items()):
            view = self.book.get(run)
            if view is None or view.state not in LIVING or now_s - living.fed_s < EVERY_S:
                continue
            ears = self._ears.get(run)
            if ears is None or ears.watch.is_deaf:
                continue
            living.fed_s = now_s
            for signal in living.pulse.feed(self._beat(now_s, sample, view, ears)):
                self._hear(signal, view, living)
        self._watch_host(now_s, sample)

    def forget(self, host: HostName) -> None:
        for run in self._living.pop(host, {}):
            self._ears.pop(run, None)
        self._hosts.pop(host, None)

    # -- what is fed -----------------------------------------------------------------------

    def _levels(self, run: RunId) -> Levels:
        wishes = self.parts.wishes.of(run)
        return LEVELS.for_run(wishes.stall_s, wishes.idle_s)

    def _beat(self, now_s: float, sample: HostSample, view: RunView, ears: _Ears) -> Beat:
        reader = ears.follower.reader
        spec = self.parts.hosts.get(view.host)
        readiness = self.readiness(view.run)
        served = reader.progress.requests_running is not None
        is_serving = served or view.kind in SERVING_KINDS or _by_port(readiness)
        waits = can_tell(readiness) or (is_serving and not served)
        return Beat(
            at_s=now_s,
            sample=sample,
            run=view.run,
            gpus=view.gpus,
            log_bytes=ears.watch.heard_bytes + (view.log_bytes or 0),
            progress=reader.progress,
            marks=reader.marks,
            stepped=reader.stepped,
            is_starting=view.state == "running" and waits,
            is_serving=is_serving,
            price_per_h=None if spec is None else spec.price_per_h,
            currency=None if spec is None else spec.currency,
        )

    def _watch_host(self, now_s: float, sample: HostSample) -> None:
        """A host that costs money, by its price or because a platform rents it out."""
        spec = self.parts.hosts.get(sample.host)
        is_paid = spec is not None and (spec.price_per_h or sample.facts.platform)
        if spec is None or spec.local or not is_paid or not sample.gpus:
            return
        watch = self._hosts.setdefault(sample.host, HostIdle())
        has_runs = any(view.state in HERE for view in self.book.of_host(sample.host))
        finding = watch.feed(
            now_s,
            sample,
            has_runs=has_runs,
            price_per_h=spec.price_per_h,
            currency=spec.currency,
        )
        before, watch.opened = watch.opened, finding or None
        if finding is not None and before is None:
            self.parts.incidents.report(finding, host=sample.host)
        elif finding is None and before is not None:
            self.parts.incidents.settle(key_of(before, Place(sample.host)), "recovered")

    # -- what is told ----------------------------------------------------------------------

    def _hear(self, signal: PulseSignal, view: RunView, living: _Living) -> None:
        if signal.action != "open":
            self._settle(signal, view)
        elif not self._is_explained(signal.finding, view, living):
            self.parts.incidents.report(
                signal.finding,
                host=view.host,
                gpu=view.gpus[0] if len(view.gpus) == 1 else None,
                run=view.run,
                profile=view.profile,
                evidence=signal.evidence,
            )

    def _settle(self, signal: PulseSignal, view: RunView) -> None:
        key = key_of(signal.finding, _place(view))
        if signal.to is not None:
            why = f"explained_by:{key_of(signal.to, _place(view))}"
            self.parts.incidents.settle(key, "closed", why)
        elif view.ended:
            self.parts.incidents.settle(key, "closed")
        else:
            self.parts.incidents.settle(key, "recovered")

    def _is_explained(self, finding: Finding, view: RunView, living: _Living) -> bool:
        """Whether something that is open already says why, however long ago it began: an Xid, a full disk,
        the log's own words about a loss that is none.
        """
        key, member = key_of(finding, _place(view)), member_of(view)
        mates = frozenset(member.ids if member is not None else ()) - {view.run}
        return any(
            one.key != key
            and one.state in OPEN_STATES
            and (_explains(one, finding, view) or (one.run in mates and _tells(one, finding)))
            for one in self.parts.incidents.all()
        )


def _place(view: RunView) -> Place:
    return Place(view.host, view.gpus[0] if len(view.gpus) == 1 else None, view.run, view.profile)


def _by_port(readiness: Readiness | None) -> bool:
    return readiness is not None and readiness.port is not None


def _tells(one: Incident, finding: Finding) -> bool:
    """Ranks wait for one another: what one of a run on several hosts says goes for all."""
    return one.family == finding.family or (one.family, finding.family) in INHIBITS | ALSO_INHIBITS


def _explains(one: Incident, finding: Finding, view: RunView) -> bool:
    if one.run is not None and one.run != view.run:
        return False
    if one.host != view.host or (one.gpu is not None and view.gpus and one.gpu not in view.gpus):
        return False
    if one.family == finding.family:
        return finding.family == "nan" and one.run == view.run
    return (one.family, finding.family) in INHIBITS | ALSO_INHIBITS and one.severity != "notice"
