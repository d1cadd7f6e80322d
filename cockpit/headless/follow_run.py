"""One run from here to its end: its log, its events, its incidents, and what ctrl+c means meanwhile."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from cockpit.domain.incidents import Finding
from cockpit.domain.lines import Line
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress, RunView
from cockpit.domain.text import LineAssembler
from cockpit.engine.bounds import end
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, IncidentChanged, LaunchStep, LinkChanged, RunChanged
from cockpit.engine.follow import RunFollower
from cockpit.errors import CockpitError, ExitCode
from cockpit.headless.incident_line import incident_fields, incident_text
from cockpit.headless.run_report import JsonReport, RunReport, words_for
from cockpit.headless.session import runs_of

PIECE_BYTES = 256 * 1024
TALK_EVERY_S = 5.0
"""A progress bar's state, the metrics and a sample are told at most this often."""
_LIVE = ("live", "degraded", "stale")
_LOST = ("unreachable", "auth_failed", "host_key")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Wishes:
    """What the person asked for by signals."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    leave: asyncio.Event = field(default_factory=asyncio.Event)

    def interrupted(self) -> None:
        """The first one stops the run, the second one leaves it to its end."""
        if self.stop.is_set():
            self.leave.set()
        self.stop.set()


class RunFollowing:
    """Prints one run, from its first byte, until it has ended or is left."""

    def __init__(
        self,
        engine: Engine,
        report: RunReport,
        run: RunId,
        host: HostName,
        earlier: Sequence[Event] = (),
    ) -> None:
        """`earlier` are events that came before there was someone to tell them to."""
        self._engine = engine
        self._report = report
        self._run = run
        self._host = host
        self._follower: RunFollower = runs_of(engine).follower(run)
        self._assembler = LineAssembler()
        self._masked = self._follower.masker.stream()
        self._earlier = list(earlier)
        self._position = 0
        """Offset of the log's next byte to print."""
        self._progress: Progress | None = None
        self._told_progress: Progress | None = None
        self._told_open = ""
        self._told_states: set[str] = set()

    async def to_end(self, wishes: Wishes) -> int:
        """The exit code that the command ends with; OK when the run was left."""
        with ExitStack() as stack:
            stack.callback(self._engine.subscribe(self._heard))
            for event in self._earlier:
                self._heard(event)
            await self._print_what_is_here()
            stack.callback(self._follower.listen(self))
            await self._until_end_or_left(wishes)
        if self._follower.record is not None:
            return self._ended(self._follower.record)
        self._event("run.left", {}, words_for("run_left", {"run": self._run}))
        return ExitCode.OK

    async def _until_end_or_left(self, wishes: Wishes) -> None:
        ended = asyncio.ensure_future(self._follower.ended.wait())
        left = asyncio.ensure_future(wishes.leave.wait())
        helpers = [
            asyncio.ensure_future(self._talk()),
            asyncio.ensure_future(self._stop_when_asked(wishes)),
        ]
        waits: set[asyncio.Future[Any]] = {ended, left}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(*helpers, ended, left)

    async def _print_what_is_here(self) -> None:
        """The mirror's bytes; on return there is none that the listener would not hear of."""
        mirror = self._follower.mirror
        while self._position < mirror.size:
            self._print(mirror.read(self._position, PIECE_BYTES))
            await asyncio.sleep(0)

    def _print(self, data: bytes) -> None:
        self._position += len(data)
        self._report.log_bytes(data)
        self._print_lines(self._assembler.feed(self._masked.feed(data)))

    def _print_lines(self, lines: list[Line]) -> None:
        if lines:
            self._stamp()
            self._report.log_lines(lines)
            self._told_open = ""

    # -- FollowListener -------------------------------------------------------------------

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        if offset > self._position:  # the host has dropped what was between
            self._assembler = LineAssembler(offset=offset, number=self._assembler.number)
            self._position = offset
        fresh = data[self._position - offset :]
        if fresh:
            self._print(fresh)

    def log_lines(self, lines: list[Line]) -> None:
        """The bytes were taken already."""

    def finding(self, finding: Finding) -> None:
        """The engine makes an incident of it, and that is told."""

    def progress(self, progress: Progress) -> None:
        self._progress = progress

    # -- what is told -----------------------------------------------------------------------

    def _heard(self, event: Event) -> None:
        if isinstance(event, IncidentChanged):
            if event.incident.run == self._run or event.incident.host == self._host:
                self._incident(event)
        elif isinstance(event, RunChanged) and event.view.run == self._run:
            self._state(event.view)
        elif isinstance(event, LinkChanged) and event.host == self._host:
            self._link(event)
        elif isinstance(event, LaunchStep) and event.run == self._run and event.text:
            self._event("run.step", {"step": event.code, "text": event.text}, event.text)

    def _incident(self, event: IncidentChanged) -> None:
        words = incident_text(event.incident, self._follower.masker)
        self._event("incident", incident_fields(event.incident), words)

    def _state(self, view: RunView) -> None:
        name = {"queued": "run.queued", "running": "run.started", "ready": "run.ready"}.get(
            view.state, "run.stopping" if view.state == "stopping" else ""
        )
        if name and name not in self._told_states:
            self._told_states.add(name)
            self._event(
                name, {"gpus": list(view.gpus)}, words_for(name.replace(".", "_"), _facts(view))
            )

    def _link(self, event: LinkChanged) -> None:
        if event.after in _LOST and event.before in _LIVE:
            self._event(
                "link.lost", {"code": event.code}, words_for("link_lost", {"host": self._host})
            )
        elif event.after in _LIVE and event.before not in _LIVE and "lost" in self._told_states:
            self._event("link.restored", {}, words_for("link_restored", {"host": self._host}))
        if event.after in _LOST:
            self._told_states.add("lost")
        elif event.after in _LIVE:
            self._told_states.discard("lost")

    def _ended(self, record: RunRecord) -> int:
        self._print_lines(self._assembler.feed(self._masked.finish()))
        self._print_lines(self._assembler.finish())
        self._report.finish()
        view = record.view(self._host)
        if "run.started" not in self._told_states and view.started_s is not None:
            self._event("run.started", {"gpus": list(view.gpus)})
        self._tell_metrics()
        fields = {
            "code": view.code,
            "signal": view.signal,
            "reason": view.reason,
            "by": view.by,
            "state": view.state,
            "left": list(view.leftover_pids),
        }
        self._event("run.exited", fields, words_for("run_exited", _facts(view)))
        status = view.exit_status
        return ExitCode.NOT_NOW if status is None else status

    async def _talk(self) -> None:
        """Now and then: the bar's present state, the metrics, the cards."""
        plain_terminal = not isinstance(self._report, JsonReport)
        while True:
            await asyncio.sleep(0.2 if plain_terminal else TALK_EVERY_S)
            text = self._assembler.open_text
            if text and text != self._told_open:
                self._told_open = text
                self._stamp()
                self._report.open_line(self._assembler.open_offset, text)
            if not plain_terminal:
                self._tell_metrics()
                self._tell_sample()

    def _tell_metrics(self) -> None:
        progress = self._progress
        if progress is None or progress == self._told_progress:
            return
        self._told_progress = progress
        names = ("step", "total_steps", "epoch", "loss", "step_s", "tokens_s", "eta_s")
        self._event("metric", {name: getattr(progress, name) for name in names})

    def _tell_sample(self) -> None:
        state = self._engine.fleet.hosts.get(self._host)
        view = self._engine.runs.get(self._run)
        if state is None or state.latest is None or view is None:
            return
        cards = [
            {
                "index": gpu.index,
                "util_pct": gpu.util_pct,
                "mem_used_mib": gpu.mem_used_mib,
                "mem_total_mib": gpu.mem_total_mib,
                "temp_c": gpu.temp_c,
                "power_w": gpu.power_w,
            }
            for gpu in state.latest.gpus
            if gpu.index in view.gpus
        ]
        host = {
            "cpu_pct": state.latest.cpu_pct,
            "mem_used_mib": state.latest.mem_used_mib,
            "mem_total_mib": state.latest.mem_total_mib,
        }
        self._event("sample", {"gpus": cards, **host})

    async def _stop_when_asked(self, wishes: Wishes) -> None:
        await wishes.stop.wait()
        self._told_states.add("run.stopping")
        self._event("run.stopping", {}, words_for("run_stopping", {"run": self._run}))
        try:
            await self._engine.stop(self._run)
        except CockpitError as error:
            self._event("run.stop_failed", {"code": error.code}, words_for(error.code, error.facts))

    def _event(self, name: str, fields: Mapping[str, object], words: str = "") -> None:
        self._stamp()
        self._report.event(name, fields, words)

    def _stamp(self) -> None:
        if isinstance(self._report, JsonReport):
            self._report.at_s = self._engine.wall_s()


def _facts(view: RunView) -> dict[str, object]:
    return {
        "run": view.run,
        "host": view.host,
        "gpus": ", ".join(map(str, view.gpus)),
        "exitcode": view.code,
        "signal": view.signal,
        "reason": view.reason,
        "left": len(view.leftover_pids),
    }


def listen_to_signals(wishes: Wishes) -> Callable[[], None]:
    """ctrl+c and TERM stop the run, a second one leaves it; a vanished terminal leaves it at once."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, wishes.interrupted)
    loop.add_signal_handler(signal.SIGHUP, wishes.leave.set)

    def stop_listening() -> None:
        for number in (*STOP_SIGNALS, signal.SIGHUP):
            loop.remove_signal_handler(number)

    return stop_listening
