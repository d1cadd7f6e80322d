"""The client of remote/supervisor.py's `serve` mode: every question about a host's runs, on one channel.

One task reads frames and hands them out; a tail that nobody reads stops at its window and costs the
others nothing. When the link goes, every wait ends with LinkLost and the agent is of no more use:
whoever owns it makes a new one and resumes its tails by offset.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypeAlias

from cockpit.domain.models import RunId
from cockpit.domain.run_record import (
    NotARecord,
    RunRecord,
    decode_leftovers,
    decode_record,
    number_of,
)
from cockpit.domain.run_spec import Json, RunSpec, encode_spec
from cockpit.engine.agent_frames import (
    Data,
    End,
    Frame,
    Hole,
    TailFrame,
    Truncated,
    decode_object,
    decode_tail,
    next_offset,
)
from cockpit.engine.agent_link import AgentLink, Mailbox
from cockpit.engine.agent_refusals import refusal
from cockpit.engine.agent_replies import (
    AgentHello,
    DiskSpace,
    LogBytes,
    StartReply,
    StopOutcome,
    decode_held,
    decode_hello,
)
from cockpit.engine.bounds import attempt
from cockpit.engine.shipping import load_program, start_program
from cockpit.errors import CockpitError, LinkLost, ProtocolError
from cockpit.transport.base import ByteChannel, HostTransport

__all__ = [
    "AgentHello", "Data", "DiskSpace", "End", "Hole", "LogBytes", "RunAgent", "StartReply",
    "StopOutcome", "TailFrame", "Truncated",
]  # fmt: skip

OpenAgent: TypeAlias = Callable[[HostTransport, str], Awaitable[ByteChannel]]
"""Ships remote/supervisor.py and runs its `serve` mode by the given Python."""

SignalName: TypeAlias = Literal["INT", "TERM", "KILL"]

ANSWER_S = 30.0
START_S = 90.0
STOP_S = 7200.0
"""A run may have hours to end in; that the host still answers is seen by the link's own pings."""
MAX_PAGES = 100
MAX_RECORDS = 5000
MAX_JUMPS = 5000
"""Holes and new beginnings in one tail: each costs a file operation here and nothing there."""
WINDOW_BYTES = 2 << 20
"""What a tail may have under way: more than bandwidth times delay of a far host, less than memory minds."""
READ_BYTES = 256 * 1024


async def open_shipped_agent(transport: HostTransport, python: str) -> ByteChannel:
    """The agent of this version, shipped to the host if it is not there."""
    program = load_program("supervisor")
    started = await start_program(transport, program, ("serve",), python=python or None)
    return started.channel


class RunAgent:
    """Asks one host about its runs. Every method raises LinkLost, ProtocolError or RunError."""

    def __init__(
        self,
        transport: HostTransport,
        python: str = "",
        *,
        run_root: str | None = None,
        open_agent: OpenAgent = open_shipped_agent,
    ) -> None:
        self._transport = transport
        self._python = python
        self._run_root = run_root
        self._open_agent = open_agent
        self._link: AgentLink | None = None
        self._known: dict[RunId, RunRecord] = {}
        self._knows_all = False
        """False until a list came to its end: one that was cut short may have lost a change."""
        self._listing = asyncio.Lock()

    async def open(self) -> AgentHello:
        """Start the program on the host and wait for its hello. Raises what starting it raises."""
        channel = await self._open_agent(self._transport, self._python)
        self._link = AgentLink(channel, self._transport.host)
        try:
            hello = await self._link.hello()
            host = await self.ask("open", {"run_root": self._run_root})
        except BaseException:
            await self.close()
            raise
        return decode_hello(hello, host)

    async def close(self) -> None:
        """End the agent. Runs go on."""
        if self._link is not None:
            await self._link.close()

    async def closed(self) -> CockpitError:
        """Return when the agent is of no more use, with the reason."""
        return await self._wire.closed()

    async def start(self, spec: RunSpec) -> StartReply:
        """Start a run, or find that it exists. Raises LaunchFailed, NotNow (no card and no wait)."""
        fields: dict[str, Json] = {"spec": encode_spec(spec), "secrets": dict(spec.secrets)}
        answer = await self.ask("start", fields, limit_s=START_S)
        return StartReply(self.record_of(answer, spec.run), answer.get("existed") is True)

    async def list(self) -> list[RunRecord]:
        """Every run of this host, the newest first. A record that makes no sense is left out."""
        async with self._listing:
            now_s = await self._hear_of_changes()
        records = [replace(record, now_s=now_s) for record in self._known.values()]
        return sorted(records, key=lambda record: record.claimed_s or 0.0, reverse=True)

    async def _hear_of_changes(self) -> float:
        """Bring what we know of the runs up to date: the host tells what changed since it was asked."""
        fresh, self._knows_all = not self._knows_all, False
        if fresh:
            self._known.clear()
        for _page in range(MAX_PAGES):
            answer = await self.ask("list", {"fresh": fresh})
            fresh = False
            self._take_changes(answer)
            if answer.get("more") is not True:
                break
        self._knows_all = True
        return number_of(answer, "now_s") or 0.0

    def _take_changes(self, answer: Mapping[str, object]) -> None:
        gone, runs = answer.get("gone"), answer.get("runs")
        for run in gone if isinstance(gone, list) else []:
            if isinstance(run, str):
                self._known.pop(RunId(run), None)
        for item in runs if isinstance(runs, list) else []:
            with suppress(NotARecord):
                record = decode_record(item)
                self._known[record.run] = record
        if len(self._known) > MAX_RECORDS:
            raise ProtocolError(host=self._transport.host, why="runs", count=len(self._known))

    async def status(self, run: RunId) -> RunRecord:
        """Raises RunUnknown."""
        return self.record_of(await self.ask("status", {"run": run}), run)

    async def stop(
        self, run: RunId, *, int_s: float | None = None, term_s: float | None = None
    ) -> StopOutcome:
        """The stop ladder to its end; None means the grace of the run's spec. Raises RunUnknown."""
        fields: dict[str, Json] = {"run": run, "int_s": int_s, "term_s": term_s}
        answer = await self.ask("stop", fields, limit_s=STOP_S)
        sent = answer.get("sent")
        return StopOutcome(
            record=self.record_of(answer, run),
            signals=tuple(
                name for name in (sent if isinstance(sent, list) else []) if name in _SIGNALS
            ),
            left=decode_leftovers(answer.get("left")),
            held_mib=decode_held(answer.get("held")),
        )

    async def tail(
        self,
        run: RunId,
        offset: int = 0,
        *,
        budget_bytes_s: int | None = None,
        keep_up_bytes: int | None = None,
    ) -> AsyncGenerator[TailFrame, None]:
        """Follow a log from a byte offset to the run's end. Raises RunUnknown.

        `budget_bytes_s` slows it down; with `keep_up_bytes` it skips (a Hole says what) rather than
        be further behind than that. Close the iterator (`aclosing`) to stop early.
        """
        box = self._wire.open_mailbox(WINDOW_BYTES)
        fields: dict[str, Json] = {
            "run": run,
            "offset": offset,
            "window": WINDOW_BYTES,
            "budget": budget_bytes_s,
            "keep_up": keep_up_bytes,
        }
        try:
            await self.ask("tail", fields, number=box.number)
            async for frame in self._frames(box, run, offset):
                yield frame
        finally:
            self._wire.close_mailbox(box)
            await attempt(5.0, self._untail(box))

    async def _frames(self, box: Mailbox, run: RunId, offset: int) -> AsyncIterator[TailFrame]:
        """The tail's frames, each beginning where the one before it ended."""
        taken, jumps = 0, 0
        while True:
            frame = await box.take()
            if frame.kind == b"R":
                raise self._refusal("tail", decode_object(frame.payload))
            told = decode_tail(frame)
            offset = next_offset(told, offset)
            jumps += isinstance(told, Hole | Truncated)
            if jumps > MAX_JUMPS or (isinstance(told, End) and told.record.run != run):
                raise ProtocolError(host=self._transport.host, why="tail")
            yield told
            if isinstance(told, End):
                return
            taken += len(told.data) if isinstance(told, Data) else 0
            if taken >= WINDOW_BYTES // 4:
                fields: dict[str, Json] = {"tail": box.number, "bytes": taken}
                await self._wire.tell("acknowledge", fields, number=self._wire.next_number())
                taken = 0

    async def _untail(self, box: Mailbox) -> None:
        with suppress(LinkLost):  # so is the tail
            await self._wire.tell("untail", {"tail": box.number}, number=self._wire.next_number())

    async def read(self, run: RunId, offset: int, length: int) -> LogBytes:
        """At most `length` bytes of a log, 256 KiB at a time. Raises RunUnknown."""
        length = min(length, READ_BYTES)
        fields: dict[str, Json] = {"run": run, "offset": offset, "length": length}
        frame = await self._wire.ask("read", fields, limit_s=ANSWER_S)
        if frame.kind != b"B":
            raise self._refusal("read", decode_object(frame.payload))
        data = frame.payload[16:]
        if len(frame.payload) < 16 or len(data) > length:
            raise ProtocolError(host=self._transport.host, why="read")
        start, size = struct.unpack_from(">QQ", frame.payload)
        return LogBytes(start, data, size)

    async def search(self, fields: Mapping[str, Json]) -> dict[str, object]:
        """A short while of work on a whole log. Raises RunUnknown."""
        number = self._wire.next_number()
        try:
            return await self.ask("search", fields, number=number)
        except asyncio.CancelledError:
            await attempt(5.0, self._cancel(number))
            raise

    async def _cancel(self, number: int) -> None:
        with suppress(LinkLost):  # so is the search
            await self._wire.tell("cancel", {"search": number}, number=self._wire.next_number())

    async def signal(self, pid: int, started_ticks: int, name: SignalName) -> bool:
        """Send a signal to the process that still is the one meant; False when it is gone."""
        fields: dict[str, Json] = {"pid": pid, "started_ticks": started_ticks, "name": name}
        return (await self.ask("signal", fields)).get("sent") is True

    async def disk(self, path: str) -> DiskSpace:
        """Room for a folder that need not exist yet."""
        answer = await self.ask("disk", {"path": path})
        free, total = number_of(answer, "free_mib"), number_of(answer, "total_mib")
        return DiskSpace(
            free_mib=None if free is None else int(free),
            total_mib=None if total is None else int(total),
            inodes_free_pct=number_of(answer, "inodes_free_pct"),
        )

    @property
    def _wire(self) -> AgentLink:
        if self._link is None:
            raise LinkLost(host=self._transport.host, why="not open")
        return self._link

    async def ask(
        self, op: str, fields: Mapping[str, Json], *, limit_s: float = ANSWER_S, number: int = 0
    ) -> dict[str, object]:
        answer = await self._wire.ask(op, fields, limit_s=limit_s, number=number)
        told = self._object(answer)
        if "error" in told:
            raise self._refusal(op, told)
        return told

    def _object(self, frame: Frame) -> dict[str, object]:
        if frame.kind != b"R":
            raise ProtocolError(host=self._transport.host, why="answer")
        return decode_object(frame.payload)

    def record_of(self, answer: Mapping[str, object], run: RunId) -> RunRecord:
        """The answer's record, which must be about the run that was asked about."""
        try:
            record = decode_record(answer.get("record"))
        except NotARecord as error:
            raise ProtocolError(host=self._transport.host, why="record") from error
        if record.run != run:
            raise ProtocolError(host=self._transport.host, why="another run", run=record.run)
        return record

    def _refusal(self, op: str, answer: Mapping[str, object]) -> CockpitError:
        return refusal(op, self._transport.host, answer)


_SIGNALS = ("INT", "TERM", "KILL")
