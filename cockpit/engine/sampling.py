"""Keeps a sampler running on one connection: starts it, hears its silence, replaces it when it dies or hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostFacts, HostSample
from cockpit.engine.backoff import Backoff
from cockpit.engine.bounds import attempt, end, within
from cockpit.engine.clock import Clock
from cockpit.engine.freshness import Freshness, Verdict
from cockpit.engine.link_state import Reason, reason_of_death
from cockpit.engine.sampler import (
    CLOSE_LIMIT_S,
    TELL_LIMIT_S,
    Cadence,
    Sampler,
    SamplerReader,
    StartSampler,
)
from cockpit.errors import LinkLost, ProbeError
from cockpit.transport.base import HostTransport

START_LIMIT_S = 30.0
RESTART_LEAST_S = 4.0
RESTART_FACTOR = 3.0
"""A sampler that went silent gets this many times what its first start took: slow is not dead."""
RESTART_MOST_S = 30.0
FAST_DEATHS = 3
"""Deaths in a row, each soon after its start, before the host is called degraded."""


class Sampling:
    """One for each link; `run` is called for each connection."""

    def __init__(
        self,
        spec: HostSpec,
        cadence: Cadence,
        clock: Clock,
        start_sampler: StartSampler,
        jitter: Callable[[], float],
        *,
        on_sample: Callable[[HostSample], None],
        on_facts: Callable[[HostFacts], None],
        on_fault: Callable[[], None],
        on_noise: Callable[[bytes], None],
        on_dying: Callable[[Reason], None],
    ) -> None:
        self._spec = spec
        self._cadence = cadence
        self._clock = clock
        self._start_sampler = start_sampler
        self._on_sample = on_sample
        self._on_facts = on_facts
        self._on_fault = on_fault
        self._on_noise = on_noise
        self._on_dying = on_dying
        self._backoff = Backoff(jitter, limit_s=RESTART_MOST_S)
        self._freshness = Freshness(clock.now_s(), cadence.interval_s)
        self._sampler: Sampler | None = None
        self._stream: asyncio.Task[float] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._went_silent = False
        self._start_took_s = 0.0

    @property
    def has_python(self) -> bool:
        return self._sampler is None or self._sampler.has_python

    # -- what the link asks -------------------------------------------------------------

    def judge(self, now_s: float) -> tuple[Verdict, float | None]:
        """How fresh the samples are, and when that may change. Ends a sampler that hangs."""
        verdict = self._freshness.verdict(now_s)
        if verdict != "silent":
            return verdict, self._freshness.next_deadline_s(now_s)
        self.doubt()
        return verdict, None

    def doubt(self) -> None:
        """Start the sampler anew with little patience: a dead connection shows itself within seconds."""
        if self._sampler is not None:
            self._went_silent = True
            self._end_stream()

    def set_cadence(self, cadence: Cadence) -> None:
        if cadence != self._cadence:
            self._cadence = cadence
            self._freshness.retimed(self._clock.now_s(), cadence.interval_s)
            self._tell(now=False)

    def sample_now(self) -> None:
        """A sample at once; a host without Python is looked at again, since someone may have put one there."""
        self._hurry.set()
        if self.has_python:
            self._tell(now=True)
        else:
            self._end_stream()

    # -- one connection -----------------------------------------------------------------

    async def run(self, transport: HostTransport) -> None:
        """Sample until the connection is gone. Always raises: LinkLost, ProtocolError, another TransportError."""
        self._backoff.reset()
        self._went_silent = False
        lost = asyncio.ensure_future(transport.wait_closed())
        try:
            while True:
                self._stream = asyncio.ensure_future(self._one_sampler(transport))
                either: set[asyncio.Future[Any]] = {self._stream, lost}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if lost.done():
                    raise LinkLost(host=self._spec.name, why=lost.result())
                await self._pause(self._delay_after(self._stream), lost)
        finally:
            left = [task for task in (lost, self._stream, self._telling) if task is not None]
            self._stream = self._telling = None
            await end(*left)

    def _delay_after(self, stream: asyncio.Task[float]) -> float:
        """Seconds until the next start; a sampler that was ended by us is replaced at once."""
        return 0.0 if stream.cancelled() else stream.result()

    async def _pause(self, delay_s: float, lost: asyncio.Future[str]) -> None:
        if delay_s <= 0.0:
            return
        self._hurry.clear()
        hurried = asyncio.ensure_future(self._hurry.wait())
        either: set[asyncio.Future[Any]] = {lost, hurried}
        try:
            await asyncio.wait(either, timeout=delay_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(hurried)

    async def _one_sampler(self, transport: HostTransport) -> float:
        """One sampler from start to end; returns seconds to wait before the next."""
        try:
            sampler = await self._start(transport)
        except ProbeError as error:
            return self._died(0.0, str(error.facts.get("words") or error.code))
        started_s = self._clock.now_s()
        self._freshness.restarted(started_s)
        self._on_noise(sampler.noise)
        self._sampler = sampler
        try:
            await SamplerReader(
                self._spec.name, sampler, self._clock, self._take, self._on_facts, self._on_fault
            ).read_to_end()
            return self._died(self._clock.now_s() - started_s, sampler.last_words())
        finally:
            self._sampler = None
            await attempt(CLOSE_LIMIT_S, sampler.close())

    def _died(self, lived_s: float, words: str) -> float:
        self._backoff.ended_after(lived_s)
        delay_s = self._backoff.next_s()
        if self._backoff.failures >= FAST_DEATHS:
            self._on_dying(reason_of_death(words))
        return delay_s

    async def _start(self, transport: HostTransport) -> Sampler:
        """Raises ProbeError, TransportError; LinkLost when it takes too long."""
        begun_s = self._clock.now_s()
        limit_s = START_LIMIT_S
        if self._went_silent:
            limit_s = max(RESTART_LEAST_S, RESTART_FACTOR * self._start_took_s)
        try:
            sampler = await within(
                limit_s,
                self._start_sampler(transport, self._spec.python, self._cadence),
            )
        except asyncio.TimeoutError:
            raise LinkLost(host=self._spec.name, why="timeout", timeout_s=limit_s) from None
        self._went_silent = False
        self._start_took_s = self._clock.now_s() - begun_s
        return sampler

    def _take(self, sample: HostSample) -> None:
        self._freshness.sampled(self._clock.now_s(), sample.interval_s)
        self._on_sample(sample)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()

    def _tell(self, *, now: bool) -> None:
        """Pass the newest cadence on; an older message that still waits is overtaken."""
        if self._sampler is None:
            return
        if self._telling is not None:
            self._telling.cancel()
        self._telling = asyncio.ensure_future(
            attempt(TELL_LIMIT_S, self._sampler.tell(self._cadence, now=now))
        )
