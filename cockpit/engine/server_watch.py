"""Reads the metrics of servers that are up, through their host's connection, and reports what they say.

One task a run; it ends with the run or with the link. No port of this computer is opened.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from cockpit.domain.detectors import Signal
from cockpit.domain.incident_book import Place, key_of
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.domain.server_json import LoadedModel, read_iterations, read_models
from cockpit.domain.server_sample import ServerMeter, ServerSample
from cockpit.domain.server_text import MOST_BYTES, ServerReading, read_metrics
from cockpit.domain.server_watch import ServerWatch
from cockpit.engine.bounds import end
from cockpit.engine.http_get import Answer, NotHttp, http_get
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError
from cockpit.transport.base import HostTransport

CLOSE_LIMIT_S: Final = 3.0
HEALTH_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a server is asked, and how patiently."""

    every_s: float = 3.0
    slow_s: float = 30.0
    """A server without metrics, or with none that we know."""
    health_every_s: float = 6.0
    answer_s: float = 5.0


CADENCE: Final = Cadence()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a server tells how it does."""

    port: int
    path: str
    health: str | None = None
    also: str | None = None
    """A second page, of JSON, for what the first does not tell."""


@dataclass(slots=True)
class _Server:
    view: RunView
    source: Source
    transport: HostTransport
    meter: ServerMeter = field(default_factory=ServerMeter)
    watch: ServerWatch = field(default_factory=ServerWatch)
    asked_health_s: float = float("-inf")
    was_up: bool = False
    failures: int = 0


Look = Literal["ok", "unknown", "errors", "silent", "away"]


class ServerWatcher:
    def __init__(self, parts: EngineParts, book: RunBook, cadence: Cadence | None = None) -> None:
        self._parts = parts
        self._book = book
        self._cadence = cadence or CADENCE
        self._servers: dict[RunId, _Server] = {}
        self._out_of_reach: dict[RunId, ServerWatch] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}

    def begin(self, view: RunView, transport: HostTransport, source: Source | None) -> None:
        """Its metrics are read from now on; a second call for the same run changes nothing."""
        if source is None or view.run in self._tasks:
            return
        watch = self._out_of_reach.pop(view.run, None) or ServerWatch()
        server = self._servers[view.run] = _Server(view, source, transport, watch=watch)
        self._tasks[view.run] = asyncio.ensure_future(self._keep(server))

    def leave(self, run: RunId, *, is_over: bool = True) -> None:
        """Over, what was wrong with how it served is no more; out of reach, nobody knows."""
        task = self._tasks.pop(run, None)
        if task is not None:
            task.cancel()
        server = self._servers.pop(run, None)
        if server is None:
            watch = self._out_of_reach.pop(run, None) if is_over else None
            view = self._book.get(run)
            if watch is not None and view is not None:
                self._hear(view, watch.end())
            return
        self._book.served(run, None)
        if is_over:
            self._hear(server.view, server.watch.end())
        else:
            self._out_of_reach[run] = server.watch

    async def close(self) -> None:
        await end(*self._tasks.values(), limit_s=CLOSE_LIMIT_S)

    # -- one server -------------------------------------------------------------------------

    async def _keep(self, server: _Server) -> None:
        await asyncio.to_thread(load_parser)
        while server.transport.connected:
            look = await self._look(server)
            if look == "ok":
                server.failures = 0
            elif look != "away":
                server.failures += 1
            await asyncio.sleep(self._pause_s(server, look))

    def _pause_s(self, server: _Server, look: Look) -> float:
        """Twice as long after each look in vain, unless it is about to be found dead."""
        cadence = self._cadence
        if look == "unknown":
            return cadence.slow_s
        if look == "away" or (look in ("errors", "silent") and server.was_up):
            return cadence.every_s
        return min(cadence.slow_s, cadence.every_s * 2.0 ** min(server.failures, 8))

    async def _look(self, server: _Server) -> Look:
        look = await self._metrics(server)
        server.was_up = server.was_up or look == "ok"
        if look != "ok" or self._now_s() - server.asked_health_s >= self._cadence.health_every_s:
            server.asked_health_s = self._now_s()
            health = await self._health(server)
            if health in ("errors", "silent"):
                look = health
            elif look == "errors" and health == "ok":
                look = "unknown"  # it lives, and has no metrics for us
        server.was_up = server.was_up or look == "unknown"
        if server.was_up and (look == "errors" or look == "silent"):
            why: Literal["errors", "silent"] = "errors" if look == "errors" else "silent"
            self._hear(server.view, server.watch.failed(self._now_s(), why))
        elif look == "unknown":
            self._hear(server.view, server.watch.lives())
        return look

    async def _metrics(self, server: _Server) -> Look:
        answer = await self._ask(server, server.source.path, MOST_BYTES)
        if not isinstance(answer, Answer):
            return answer
        if answer.status >= 500:
            return "errors"
        if not answer.is_ok:
            return "unknown"
        models = await asyncio.to_thread(read_models, answer.body)
        if models is not None:
            self._take_models(server, models)
            return "ok"
        reading = await asyncio.to_thread(_read, answer.body, self._now_s())
        reading = await self._with_second_page(server, reading)
        if reading.is_empty:
            return "unknown"
        self._take(server, server.meter.feed(reading))
        return "ok"

    async def _with_second_page(self, server: _Server, reading: ServerReading) -> ServerReading:
        if server.source.also is None or "running" in reading.gauges:
            return reading
        answer = await self._ask(server, server.source.also, MOST_BYTES)
        if not isinstance(answer, Answer) or not answer.is_ok:
            return reading
        told = await asyncio.to_thread(read_iterations, answer.body, reading.at_s)
        return (
            reading if told is None else replace(reading, gauges={**told.gauges, **reading.gauges})
        )

    async def _health(self, server: _Server) -> Look:
        path = server.source.health
        if path is None:
            return "away"
        answer = await self._ask(server, path, HEALTH_BYTES)
        if not isinstance(answer, Answer):
            return answer
        return "errors" if answer.status >= 500 else "ok"

    async def _ask(self, server: _Server, path: str, limit_bytes: int) -> Answer | Look:
        """Its answer, or why there is none."""
        try:
            return await http_get(
                server.transport,
                server.source.port,
                path,
                limit_bytes=limit_bytes,
                limit_s=self._cadence.answer_s,
            )
        except (asyncio.TimeoutError, NotHttp):
            return "silent"
        except CockpitError:
            return (
                "away"  # the link went, or nothing listens: the run's own end is told by its host
            )

    # -- what is told -----------------------------------------------------------------------

    def _take(self, server: _Server, sample: ServerSample) -> None:
        self._book.served(server.view.run, sample)
        self._hear(server.view, server.watch.feed(sample))

    def _take_models(self, server: _Server, models: tuple[LoadedModel, ...]) -> None:
        sample = ServerSample(self._now_s(), models=models)
        self._book.served(server.view.run, sample)
        loaded = frozenset(one.name for one in models)
        signals = [*server.watch.feed(sample), *server.watch.models(sample.at_s, loaded)]
        self._hear(server.view, signals)

    def _hear(self, view: RunView, signals: list[Signal]) -> None:
        desk = self._parts.incidents
        card = view.gpus[0] if len(view.gpus) == 1 else None
        for signal in signals:
            if signal.action == "open":
                if not self._is_wanted(view.run, signal):
                    continue
                at_s = self._parts.clock.wall_s()
                desk.report(
                    signal.finding,
                    host=view.host,
                    gpu=card,
                    run=view.run,
                    profile=view.profile,
                    evidence=[replace(one, at_s=at_s) for one in signal.evidence],
                )
            else:
                place = Place(view.host, card, view.run, view.profile)
                now = self._book.get(view.run)
                is_over = now is None or now.ended
                desk.settle(key_of(signal.finding, place), "closed" if is_over else "recovered")

    def _is_wanted(self, run: RunId, signal: Signal) -> bool:
        """By `[watch]` of its profile."""
        wishes = self._parts.wishes.of(run)
        if signal.finding.family == "hang" and wishes.stall_s is None:
            return False
        return wishes.wants(signal.finding)

    def _now_s(self) -> float:
        return self._parts.clock.now_s()


def _read(page: bytes, at_s: float) -> ServerReading:
    if page.lstrip()[:1] == b"[":
        return read_iterations(page, at_s) or ServerReading(at_s)
    return read_metrics(page, at_s)


def load_parser() -> None:
    """Import it off the loop, once there is a server to read."""
    import prometheus_client.parser  # noqa: F401


DEFAULT_PATHS: Final[dict[str, str]] = {
    "vllm": "/metrics",
    "sglang": "/metrics",
    "tgi": "/metrics",
    "trtllm": "/prometheus/metrics",
    "ollama": "/api/ps",
}
SECOND_PATHS: Final[dict[str, str]] = {"trtllm": "/metrics"}


def source_of(
    kind: str, metrics: tuple[int, str] | None, port: int | None, http: tuple[str, ...]
) -> Source | None:
    """By what its launch says, or for a run of another computer by its kind and port; None for no server."""
    health = next((path for path in http if path != "/v1/models"), None)
    default = DEFAULT_PATHS.get(kind)
    if metrics is None:
        if default is None or port is None:
            return None
        metrics = (port, default)
    also = SECOND_PATHS.get(kind) if metrics[1] == default else None
    return Source(*metrics, health if metrics[0] == port else None, also)
