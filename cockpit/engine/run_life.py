"""What goes along with each run: who listens to its log, its readiness and ports, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.domain.models import HostName, RunId
from cockpit.domain.readiness import Readiness
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.engine.api import Around
from cockpit.engine.around import AroundRuns
from cockpit.engine.card_memory import memory_of_cards
from cockpit.engine.companions import CompanionParts, Companions, Wanted, can_tell
from cockpit.engine.events import Event, LaunchStep, RunChanged
from cockpit.engine.follow import RunFollower
from cockpit.engine.mending import Mender
from cockpit.engine.past_runs import PastRuns
from cockpit.engine.pulse_watch import PulseWatch
from cockpit.engine.readiness import READY_NOTE, decode_ready
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_watch import RunFinding, RunWatch
from cockpit.engine.server_watch import ServerWatcher, source_of
from cockpit.engine.watch_wishes import Wishes
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError
from cockpit.transport.base import HostTransport

if TYPE_CHECKING:
    from cockpit.config.profile import Profile
    from cockpit.launchers.base import Launch

MODELS_PATH = "/v1/models"
KEEP_LIMIT_S = 0.6


class RunLife:
    """Owns the book of runs; whatever changes in it is told here."""

    def __init__(self, parts: EngineParts, transports: dict[HostName, HostTransport]) -> None:
        """`transports` are the open connections, as they come and go."""
        self.book = RunBook(self._changed)
        self.past = PastRuns(parts, self.book)
        self.around_runs = AroundRuns(parts, self.book, self.past)
        self.mender = Mender(parts, self.book, self.around_runs, self.past)
        parts.incidents.fit = self.mender.fit
        self._parts = parts
        self._transports = transports
        self._watches: dict[RunId, RunWatch] = {}
        self._launches: dict[RunId, Launch] = {}
        self.pulses = PulseWatch(parts, self.book, self._readiness)
        self._servers = ServerWatcher(parts, self.book)
        self._restored: set[RunId] = set()
        self._companions = Companions(
            CompanionParts(
                parts.clock.now_s,
                forwarded=self._forwarded,
                is_ready=self.book.ready,
                signs_of_life=self._signs_of_life,
                is_stuck=lambda run: self._watches[run].start_is_stuck(),
            )
        )

    def launched(self, run: RunId, launch: Launch | None) -> None:
        """It starts from here: how it shows that it is ready is known, a pattern for its log included."""
        if launch is None:
            self._launches.pop(run, None)
        else:
            self._launches[run] = launch

    def adopt(self, run: RunId, profile: Profile | None = None) -> None:
        """Do for this run what its profile wants beside it."""
        self.around_runs.adopt(run, profile)
        if profile is not None:
            self._wish(run, profile)
        view = self.book.get(run)
        if view is not None and view.state == "running":
            self._began(view)

    def listener(self, host: HostName, follower: RunFollower) -> RunWatch:
        watch = self._watch_of(host, follower.run)
        self.pulses.listens(follower.run, watch, follower)
        if self._parts.recorder is not None:
            self._parts.recorder.listens(host, follower)
        return watch

    def ended(self, host: HostName, record: RunRecord) -> None:
        """A run's end was heard, with its log to the last byte."""
        view = self.book.record(record.view(host))
        self.past.told(host, record, view)
        self._watch_of(host, record.run).ended(record)

    def heard(self, event: Event) -> None:
        self.past.heard(event)
        self.around_runs.heard(event)

    def step(self, run: RunId, host: HostName, code: str, text: str = "") -> None:
        self._parts.bus.publish(LaunchStep(run, host, code, self._parts.clock.wall_s(), text))

    def around(self, run: RunId) -> Around:
        companions, steps = self._companions, self.around_runs.steps(run)
        return Around(companions.forwards(run), companions.model(run), steps)

    async def close(self) -> None:
        await self._companions.close()
        await self._servers.close()
        await self.around_runs.close()
        await self.past.close(KEEP_LIMIT_S)

    # -- states -----------------------------------------------------------------------------

    def _changed(self, view: RunView, before: RunView | None) -> None:
        if before is not None and before.attempt != view.attempt:
            self._companions.leave(view.run)  # what is ready was the attempt before
            self._servers.leave(view.run)
        if view.state == "running":
            self._began(view)
        elif view.ended or view.state == "unreachable":
            self._companions.leave(view.run)
        if view.state not in ("running", "ready"):
            self._servers.leave(view.run, is_over=view.state != "unreachable")
        elif view.state == "ready":
            self._serves(view)
        self.pulses.changed(view)
        self._parts.bus.publish(RunChanged(view, before, self._parts.clock.wall_s()))

    def _began(self, view: RunView) -> None:
        transport = self._transports.get(view.host)
        if transport is None:
            return
        launch = self._launches.get(view.run)
        if launch is None and view.run not in self._restored and self._is_ours(view.run):
            self._restored.add(view.run)
            self.around_runs.spawn(view.run, self._restore(view))
            return
        ready = self._readiness(view.run)
        wanted = Wanted(
            ready,
            self._watch_of(view.host, view.run).log_says_ready,
            launch.forwards if launch else (),
            serves=ready is not None and MODELS_PATH in ready.http,
        )
        self._companions.begin(view.run, transport, wanted)
        if not can_tell(ready):
            self._serves(view)  # nothing says when it is ready: its metrics do

    def _serves(self, view: RunView) -> None:
        """A server that is up says how it does."""
        transport, launch = self._transports.get(view.host), self._launches.get(view.run)
        ready = self._readiness(view.run)
        port, http = (None, ()) if ready is None else (ready.port, ready.http)
        source = source_of(view.kind, launch.metrics if launch else None, port, http)
        if transport is not None:
            self._servers.begin(view, transport, source)

    def _readiness(self, run: RunId) -> Readiness | None:
        """By its profile, or by what was noted with it on its host."""
        launch, view = self._launches.get(run), self.book.get(run)
        if launch is not None:
            return launch.ready
        return None if view is None else decode_ready(dict(view.notes).get(READY_NOTE, ""))

    def _wish(self, run: RunId, profile: Profile) -> None:
        """`[watch]` of its profile."""
        if (watch := profile.watch) is not None:
            wishes = Wishes(watch.oom, watch.leak, watch.stall_s, watch.idle_s)
            self._parts.wishes.put(run, wishes)
            self.pulses.wished(run)

    def _is_ours(self, run: RunId) -> bool:
        past = self.past.get(run)
        return past is not None and past.has_origin and self.around_runs.acts_for(run)

    async def _restore(self, view: RunView) -> None:
        """An earlier cockpit started it: what its profile says of ports and readiness is known from then."""
        profile = await self.around_runs.profile_of(view.run)
        if profile is not None:
            self._wish(view.run, profile)
            from cockpit.launchers import build
            from cockpit.launchers.base import LaunchFacts

            launch = self._launches[view.run] = build(profile, LaunchFacts(gpus=view.gpus))
            remembered = self.past.history.known.get(view.run)
            was_ready = remembered is not None and remembered.view.state == "ready"
            if launch.ready is not None and launch.ready.log is not None and not was_ready:
                self._watch_of(view.host, view.run).ready_when(launch.ready.log)
        now = self.book.get(view.run)
        if now is not None and now.state == "running":
            self._began(now)

    def _watch_of(self, host: HostName, run: RunId) -> RunWatch:
        watch = self._watches.get(run)
        if watch is None:
            watch = self._watches[run] = RunWatch(host, run, self.book, self._report)
            launch = self._launches.get(run)
            ready = launch.ready if launch is not None else None
            watch.ready_when(ready.log if ready is not None else None)
        return watch

    def _signs_of_life(self, run: RunId) -> object:
        view = self.book.get(run)
        if view is None:
            return None
        heard = self._watch_of(view.host, run).heard_bytes
        return view.log_bytes, heard, memory_of_cards(self._parts.fleet, view.host, view.gpus)

    # -- what is told -----------------------------------------------------------------------

    def _report(self, found: RunFinding) -> None:
        if not found.is_end and not self._parts.wishes.of(found.run).wants(found.finding):
            return
        self._parts.incidents.report(
            found.finding,
            host=found.host,
            gpu=found.gpu,
            run=found.run,
            profile=found.profile,
            evidence=found.evidence,
            is_live=found.is_live,
        )

    def _forwarded(
        self, run: RunId, local_port: int, remote_port: int, error: CockpitError | None
    ) -> None:
        if error is None:
            self._step_of(run, "forwarded", f"127.0.0.1:{local_port} -> {remote_port}")
        else:
            self._step_of(run, error.code, str(local_port))

    def _step_of(self, run: RunId, code: str, text: str) -> None:
        view = self.book.get(run)
        if view is not None:
            self.step(run, view.host, code, text)
