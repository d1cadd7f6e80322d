"""The flight recorder: the last ten minutes of every host in memory, written out when an incident opens.

It hears samplers' lines, log pieces and events as they come; what it does with each is an append.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from cockpit import __version__
from cockpit.config.paths import Home
from cockpit.domain.incident_kin import OPEN_STATES
from cockpit.domain.incidents import SEVERITIES, Incident, Severity
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.recording import RecordedHost
from cockpit.domain.runs import RunView
from cockpit.domain.sample_record import sample_record
from cockpit.domain.wire import Decoded, Hello
from cockpit.engine.clock import Clock
from cockpit.engine.events import (
    Event,
    EventBus,
    HostRestarted,
    IncidentChanged,
    LaunchStep,
    LinkChanged,
    OwnTrouble,
    RunChanged,
    RunNoted,
)
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.keyframes import Keyframes
from cockpit.engine.recorded_sampler import RecordedSampler
from cockpit.engine.recording_rows import (
    incident_fields,
    line_of,
    link_fields,
    note_fields,
    run_fields,
)
from cockpit.engine.sampler import Cadence, Sampler, StartSampler
from cockpit.engine.tape import HostTape
from cockpit.engine.writing_out import Occasions, WritingOut
from cockpit.errors import Fact

if TYPE_CHECKING:
    from cockpit.config.hosts import HostSpec
    from cockpit.engine.api import RunStore
    from cockpit.engine.follow import RunFollower
    from cockpit.transport.base import HostTransport

log = logging.getLogger(__name__)

TOTAL_BYTES: Final = 32 << 20
MOST_SHARE_BYTES: Final = 2 << 20
LEAST_SHARE_BYTES: Final = 32 << 10
RUNS_EVERY_S: Final = 5.0

Names = Mapping[HostName, "HostSpec"]


class Recorder:
    """One for an engine. Everything is called on its loop and returns at once."""

    def __init__(
        self,
        home: Home,
        hosts: Names,
        clock: Clock,
        bus: EventBus,
        fleet: FleetStore,
        desk: IncidentDesk,
        *,
        least: Severity | None = "warning",
        room_mib: int = 512,
    ) -> None:
        """`least`: what an incident must be to be recorded; None keeps nothing on disk."""
        self._hosts = hosts
        self._clock = clock
        self._bus = bus
        self._fleet = fleet
        self._keyframes = Keyframes(fleet, clock)
        self._least = least
        self._tapes: dict[HostName | None, HostTape] = {}
        self._runs: RunStore | None = None
        self._told_runs: dict[RunId, RunView] = {}
        self._runs_version = -1
        self._runs_looked_s = 0.0
        self._maskers: Mapping[RunId, Masker] = {}
        self._followed: dict[RunId, Masker] = {}
        self._has_told_trouble = False
        self._out = WritingOut(
            home.recordings,
            room_mib << 20,
            clock,
            Occasions(
                self._snapshots, self._masker, self._hosts_of, desk.note_recording, self._trouble
            ),
            __version__,
        )
        bus.subscribe(self.heard)

    @property
    def size_bytes(self) -> int:
        return sum(tape.size_bytes for tape in self._tapes.values())

    def kept_s(self) -> float:
        """How far back the host goes of which the least is kept."""
        now_s = self._clock.wall_s()
        return min((now_s - tape.begun_s for tape in self._tapes.values()), default=0.0)

    @property
    def is_writing(self) -> bool:
        """Whether what follows an incident is still being taken down."""
        return self._out.is_busy

    def watches(self, runs: RunStore) -> None:
        """Whose runs these are."""
        self._runs = self._keyframes.runs = runs

    def knows(self, maskers: Mapping[RunId, Masker]) -> None:
        """What covers the secrets of runs; the mapping grows by itself."""
        self._maskers = maskers

    def recording(self, start: StartSampler) -> StartSampler:
        """The same samplers, each of which lets its lines be heard here."""

        async def started(
            transport: HostTransport, python: str | None, cadence: Cadence
        ) -> Sampler:
            sampler = await start(transport, python, cadence)
            return RecordedSampler(sampler, transport.host, self.took)

        return started

    def listens(self, host: HostName, follower: RunFollower) -> None:
        """From now on what this follower shows is heard here, secrets covered."""
        run = follower.run

        def shown(offset: int, number: int, data: bytes) -> None:
            self._followed[run] = follower.masker
            at_s = self._clock.wall_s()
            self._tape(host).add_log(at_s, run, offset, number, data)
            if self._out.is_busy:
                self._out.log(at_s, host, run, offset, number, data)

        follower.on_shown = shown

    # -- what is heard ----------------------------------------------------------------------

    def took(self, host: HostName, line: bytes, decoded: Decoded) -> None:
        """A sampler's line and what it was read as."""
        if isinstance(decoded, HostSample):
            self._keyframes.took(host, line, decoded)
            if line.startswith(b"{"):
                self._wire("wire", host, line)
            else:
                self._wire("full", host, _whole(decoded))
            self._look_at_runs()
        elif isinstance(decoded, Hello) and line.startswith(b"{"):
            self._wire("wire", host, line)

    def heard(self, event: Event) -> None:
        """Edges: each is a frame, and an incident may be an occasion to write."""
        if isinstance(event, IncidentChanged):
            one = event.incident
            self._keyframes.heard(one)
            self._frame("incident", one.host, incident_fields(one))
            if self._is_occasion(event):
                self._out.begin(one)
        elif isinstance(event, LinkChanged):
            state = self._fleet.hosts.get(event.host)
            if state is not None:
                self._frame("link", event.host, link_fields(state, self._clock.now_s()))
        elif isinstance(event, RunChanged):
            self._told_runs[event.view.run] = event.view
            self._frame("run", event.view.host, run_fields(event.view))
        elif isinstance(event, RunNoted):
            self._frame("note", event.host, note_fields(event.run, event.event))
        elif isinstance(event, LaunchStep):
            told = {"run": event.run, "code": event.code, "text": event.text[:4096]}
            self._frame("step", event.host, told)
        elif isinstance(event, HostRestarted):
            self._frame("restarted", event.host, {})

    def note(self, kind: str, host: HostName, fields: Mapping[str, object]) -> None:
        """Something else of a host that goes along, such as a server's metrics."""
        self._frame(kind, host, fields)

    def forget(self, host: HostName) -> None:
        self._tapes.pop(host, None)
        self._keyframes.forget(host)
        self._share()

    async def close(self) -> None:
        """What is being written is finished early."""
        await self._out.close()

    # -- frames -----------------------------------------------------------------------------

    def _wire(self, kind: str, host: HostName, line: bytes) -> None:
        at_s = self._clock.wall_s()
        names = kind.encode(), json.dumps(host).encode()
        head = b'{"t":%.3f,"k":"%s","host":%s,"line":' % (at_s, *names)
        self._put(at_s, host, head + line.strip() + b"}")

    def _frame(self, kind: str, host: HostName | None, fields: Mapping[str, object]) -> None:
        at_s = self._clock.wall_s()
        self._put(at_s, host, line_of(at_s, kind, host, fields))

    def _put(self, at_s: float, host: HostName | None, line: bytes) -> None:
        self._tape(host).add(at_s, line)
        if self._out.is_busy:
            self._out.line(host, line)

    def _tape(self, host: HostName | None) -> HostTape:
        tape = self._tapes.get(host)
        if tape is None:
            tape = self._tapes[host] = HostTape(lambda at_s: self._keyframes.of(host, at_s))
            self._share()
        return tape

    def _share(self) -> None:
        share = TOTAL_BYTES // max(1, len(self._tapes))
        for tape in self._tapes.values():
            tape.limit_bytes = min(MOST_SHARE_BYTES, max(LEAST_SHARE_BYTES, share))

    def _look_at_runs(self) -> None:
        """Progress is a level: it is looked at now and then."""
        runs, now_s = self._runs, self._clock.now_s()
        if runs is None or now_s - self._runs_looked_s < RUNS_EVERY_S:
            return
        self._runs_looked_s = now_s
        if runs.version == self._runs_version:
            return
        self._runs_version, before = runs.version, self._told_runs
        self._told_runs = {view.run: view for view in runs.all()}
        for run, view in self._told_runs.items():
            if before.get(run) is not view and not view.ended and view.host in self._hosts:
                self._frame("run", view.host, run_fields(view))

    # -- what writing out asks --------------------------------------------------------------

    def _is_occasion(self, event: IncidentChanged) -> bool:
        """It opened before our eyes, or grew as bad as that; what stood in a log already has no proof."""
        one, before = event.incident, event.before
        if self._least is None or one.state != "open" or one.mute or one.proof is None:
            return False
        least = SEVERITIES.index(self._least)
        was_open = before is not None and before.state in OPEN_STATES
        if was_open and before is not None and SEVERITIES.index(before.severity) <= least:
            return False
        return SEVERITIES.index(one.severity) <= least

    def _snapshots(
        self, hosts: Iterable[HostName | None]
    ) -> list[tuple[HostName | None, HostTape]]:
        return [(host, self._tapes[host]) for host in (*hosts, None) if host in self._tapes]

    def _hosts_of(self, incident: Incident) -> list[RecordedHost]:
        """Every host, the incident's own first."""
        names = sorted(self._hosts, key=lambda name: name != incident.host)
        return [recorded_host(self._hosts[name]) for name in names]

    def _masker(self) -> Masker:
        return Masker.of_all((*self._maskers.values(), *self._followed.values()))

    def _trouble(self, code: str, facts: Mapping[str, Fact]) -> None:
        log.warning("%s %s", code, dict(facts))
        if not self._has_told_trouble:
            self._has_told_trouble = True
            self._bus.publish(OwnTrouble(code, facts, self._clock.wall_s()))


def recorded_host(spec: HostSpec) -> RecordedHost:
    return RecordedHost(
        spec.name, spec.user, spec.platform, spec.price_per_h, spec.currency, spec.tags, spec.local
    )


def _whole(sample: HostSample) -> bytes:
    """Of a host whose lines are no JSON."""
    return json.dumps(sample_record(sample), separators=(",", ":")).encode()
