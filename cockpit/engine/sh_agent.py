"""Runs on a host without Python: the same questions as RunAgent's, answered by remote/runs.sh.

There is no supervisor: the sh between host and job keeps the exit code, a ladder of its own stops a run, and the
states are read here from what the run's files say. One channel carries everything, an answer at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from cockpit.domain.models import RunId
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.run_record import NotARecord, RunRecord, decode_record, number_of
from cockpit.domain.run_spec import Json, RunSpec
from cockpit.engine.agent import SignalName
from cockpit.engine.agent_frames import TailFrame
from cockpit.engine.agent_refusals import refusal
from cockpit.engine.agent_replies import (
    AgentHello,
    DiskSpace,
    LogBytes,
    StartReply,
    StopOutcome,
    decode_hello,
)
from cockpit.engine.sh_facts import HostLife, Record, file_stats, parse, run_answer
from cockpit.engine.sh_growth import Growth, LogState
from cockpit.engine.sh_link import ShAnswer, ShLink
from cockpit.engine.sh_order import order_of
from cockpit.engine.sh_program import runs_script
from cockpit.engine.sh_search import sh_search
from cockpit.engine.sh_tail import ShTail
from cockpit.errors import CockpitError, LaunchFailed, LinkLost, ProtocolError
from cockpit.transport.base import ByteChannel, HostTransport

OpenShell: TypeAlias = Callable[[HostTransport, bytes], Awaitable[ByteChannel]]

ANSWER_S = 30.0
START_S = 90.0
STOP_ASKS = 5
"""A ladder that died on its way is begun again so often."""
STOP_LOOK_S = 0.3
LOST_LOOK_S = 0.3
STOP_START_S = 3.0
"""How long a ladder may take to show itself."""
DEFAULT_INT_S, DEFAULT_TERM_S = 15.0, 10.0
READ_BYTES = 256 * 1024
MAX_SPEC_BYTES = 4 << 20
MAX_RUNS = 500
"""The newest are listed: each takes a few processes of the host to look at, once."""
AT_A_TIME = 8
MAX_ROOTS = 50


async def open_shell(transport: HostTransport, script: bytes) -> ByteChannel:
    return await transport.open(script)


class ShAgent:
    """Implements HostAgent where there is a POSIX sh with coreutils, and no more."""

    def __init__(
        self,
        transport: HostTransport,
        *,
        run_root: str | None = None,
        open_shell: OpenShell = open_shell,
    ) -> None:
        self._transport = transport
        self._run_root = run_root
        self._open_shell = open_shell
        self._link: ShLink | None = None
        self._life = HostLife("", "", "")
        self._noted: list[str] = []
        self._specs: dict[RunId, tuple[int, Record]] = {}
        self._over: dict[RunId, tuple[int, RunRecord]] = {}
        """Runs of which nothing can change, with the inode of their folder."""
        self._growth = Growth(self._log_states)
        self._busy = asyncio.Semaphore(AT_A_TIME)

    async def open(self) -> AgentHello:
        if self._run_root is not None and "\n" in self._run_root:
            raise LaunchFailed(why="run_root", path=self._run_root, host=self._transport.host)
        channel = await self._open_shell(self._transport, runs_script())
        self._link = ShLink(channel, self._transport.host)
        try:
            await self._link.greeted()
            told = await self._ask("open", self._run_root or "")
            await self._add_roots(told)
        except BaseException:
            await self.close()
            raise
        self._life = HostLife(
            *(told.last(key) or "" for key in ("host_id", "boot_id", "pid1_start"))
        )
        host = {"host_id": self._life.host_id, "boot_id": self._life.boot_id}
        host |= {"pid1_start": self._life.pid1_start, "root": told.last("root")}  # type: ignore[dict-item]
        return decode_hello({"version": "1", "python": ""}, {**host, "now_s": _now_s(told)})

    async def _add_roots(self, told: ShAnswer) -> None:
        """Roots that a spec alone named are noted in the default one."""
        roots = parse(told.last("noted")).get("roots")
        for root in roots[:MAX_ROOTS] if isinstance(roots, list) else []:
            if isinstance(root, str) and root.startswith("/") and "\n" not in root:
                self._noted.append(root)
                await self._ask("root", root)

    async def close(self) -> None:
        """Let go of the channel. Runs go on."""
        await self._growth.close()
        if self._link is not None:
            await self._link.close()

    async def closed(self) -> CockpitError:
        return await self._wire.closed()

    async def start(self, spec: RunSpec) -> StartReply:
        roots = None
        if spec.run_root is not None and spec.run_root not in self._noted:
            roots = [*self._noted, spec.run_root][-MAX_ROOTS:]
        order = order_of(spec, self._transport.host, roots)
        if spec.run_root is not None:
            await self._ask("root", spec.run_root)
        answer = await self._ask("start", spec.run, limit_s=START_S, order=order)
        return StartReply(await self.status(spec.run), answer.last("existed") is not None)

    async def list(self) -> list[RunRecord]:
        told = await self._ask("list")
        folders: dict[RunId, tuple[int, int]] = {}
        for words in told.each("run"):
            inode, _, rest = words.partition(" ")
            made, _, rest = rest.partition(" ")
            name = rest.removeprefix("directory ")
            if name != rest and is_run_id(name) and inode.isdigit() and made.isdigit():
                folders.setdefault(RunId(name), (int(inode), int(made)))
        newest = sorted(folders, key=lambda run: folders[run][1], reverse=True)[:MAX_RUNS]
        found = await asyncio.gather(*(self._listed(run, folders[run][0]) for run in newest))
        now_s = _now_s(told)
        records = [replace(record, now_s=now_s) for record in found if record is not None]
        return sorted(records, key=lambda record: record.claimed_s or 0.0, reverse=True)

    async def _listed(self, run: RunId, inode: int) -> RunRecord | None:
        over = self._over.get(run)
        if over is not None and over[0] == inode:
            return over[1]
        async with self._busy:
            try:
                record = await self.status(run)
            except (LinkLost, ProtocolError):
                raise
            except CockpitError:
                return None  # taken away meanwhile
        if record.state == "lost" or (record.state == "exited" and not record.leftovers):
            self._over[run] = (inode, record)
        return record

    async def status(self, run: RunId) -> RunRecord:
        """One that seems lost is looked at twice: its end may have come between the two looks."""
        record = await self._look(run)
        if record.state == "lost" and record.reason == "killed_without_record":
            await asyncio.sleep(LOST_LOOK_S)
            record = await self._look(run)
        return record

    async def _look(self, run: RunId) -> RunRecord:
        told = await self._ask("facts", run)
        spec = await self._spec(run, told)
        try:
            return decode_record(run_answer(run, spec, told, self._life))
        except NotARecord as error:
            raise ProtocolError(host=self._transport.host, why="record") from error

    async def _spec(self, run: RunId, told: ShAnswer) -> Record:
        """It never changes, so it is read once for each folder."""
        inode = max((stat.inode for stat in file_stats(told).values()), default=0)
        kept = self._specs.get(run)
        if kept is not None and kept[0] == inode:
            return kept[1]
        data = b""
        while len(data) < MAX_SPEC_BYTES:
            answer = await self._ask("read", run, "spec.json", str(len(data)), str(READ_BYTES))
            data += answer.data
            if not answer.data:
                break
        spec = parse(data.decode("utf-8", "replace"))
        if spec:
            self._specs[run] = (inode, spec)
        return spec

    async def stop(
        self, run: RunId, *, int_s: float | None = None, term_s: float | None = None
    ) -> StopOutcome:
        record = await self.status(run)
        sent: tuple[str, ...] = ()
        if record.state not in ("lost", "other_host") and not _is_over(record):
            sent = await self._climb(run, self._grace(run, int_s, term_s))
            record = await self.status(run)
        return StopOutcome(record, sent, record.leftovers)

    def _grace(self, run: RunId, int_s: float | None, term_s: float | None) -> tuple[float, float]:
        given = self._specs.get(run, (0, {}))[1].get("stop")
        said = given if isinstance(given, dict) else {}
        return (
            _grace_s(int_s, number_of(said, "int_s"), DEFAULT_INT_S),
            _grace_s(term_s, number_of(said, "term_s"), DEFAULT_TERM_S),
        )

    async def _climb(self, run: RunId, grace_s: tuple[float, float]) -> tuple[str, ...]:
        """The ladder runs on the host and ends by itself; it is watched here."""
        seconds = [f"{value:.2f}" for value in grace_s]
        hundredths = [str(int(value * 100)) for value in grace_s]
        for _ask in range(STOP_ASKS):
            told = await self._ask("stop", run, *seconds, *hundredths)
            sent = await self._watch_ladder(run, _integer(told.last("number")))
            if sent is not None:
                return sent
        raise ProtocolError(host=self._transport.host, why="stop")

    async def _watch_ladder(self, run: RunId, number: int) -> tuple[str, ...] | None:
        """What it sent, once it is done; None when it is gone without an end."""
        patience = int(STOP_START_S / STOP_LOOK_S)
        while patience:
            told = await self._ask("facts", run)
            beat = parse(told.last("hb"))
            if (number_of(beat, "stops") or 0) >= number:
                sent = beat.get("sent")
                words = sent if isinstance(sent, list) else []
                return tuple(word for word in words if word in ("INT", "TERM", "KILL"))
            patience = int(STOP_START_S / STOP_LOOK_S) if told.last("ladder") else patience - 1
            await asyncio.sleep(STOP_LOOK_S)
        return None

    async def tail(
        self,
        run: RunId,
        offset: int = 0,
        *,
        budget_bytes_s: int | None = None,
        keep_up_bytes: int | None = None,
    ) -> AsyncGenerator[TailFrame, None]:
        """See RunAgent.tail."""
        tail = ShTail(self, self._growth, run, offset)
        async for frame in tail.frames(budget_bytes_s, keep_up_bytes):
            yield frame

    async def _log_states(self, runs: Sequence[RunId]) -> dict[RunId, LogState]:
        told = await self._ask("sizes", *runs)
        ended = set(told.each("ended"))
        stats = file_stats(told)
        sizes = {path.split("/")[-2]: stat.size for path, stat in stats.items() if "/" in path[1:]}
        return {run: LogState(sizes.get(run), run in ended) for run in runs if run in sizes}

    async def read(self, run: RunId, offset: int, length: int) -> LogBytes:
        """At most 256 KiB; what the log lost while it was read is left out."""
        length = min(length, READ_BYTES)
        told = await self._ask("read", run, "log", str(offset), str(length))
        size = _integer(told.last("size"))
        if len(told.data) > length:
            raise ProtocolError(host=self._transport.host, why="read")
        data = told.data if offset + len(told.data) <= size else b""
        return LogBytes(offset, data, size)

    async def search(self, fields: Mapping[str, Json]) -> dict[str, object]:
        return await sh_search(self._ask, self._transport.host, fields)

    async def signal(self, pid: int, started_ticks: int, name: SignalName) -> bool:
        told = await self._ask("signal", str(pid), str(started_ticks), name)
        return told.last("sent") == "1"

    async def disk(self, path: str) -> DiskSpace:
        if "\n" in path:
            raise LaunchFailed(why="run_root", path=path)
        told = await self._ask("disk", path)
        room, inodes = _two(told.last("room")), _two(told.last("inodes"))
        return DiskSpace(
            free_mib=None if room is None else room[0] // 1024,
            total_mib=None if room is None else room[1] // 1024,
            inodes_free_pct=100.0 * inodes[0] / inodes[1] if inodes and inodes[1] else None,
        )

    @property
    def _wire(self) -> ShLink:
        if self._link is None:
            raise LinkLost(host=self._transport.host, why="not open")
        return self._link

    async def _ask(
        self, op: str, *words: str, limit_s: float = ANSWER_S, order: bytes = b""
    ) -> ShAnswer:
        answer = await self._wire.ask(op, *words, limit_s=limit_s, order=order)
        if answer.refused is not None:
            raise refusal(op, self._transport.host, _refused(answer.refused))
        return answer


def _refused(text: str) -> Record:
    """A code and its facts: numbers by name, and a path, which is the last and may have blanks."""
    words, _, path = text.partition(" path=")
    code, *pairs = words.split(" ")
    facts: Record = {"path": path} if path else {}
    for key, _, value in (pair.partition("=") for pair in pairs):
        facts[key] = int(value) if value.isdigit() and len(value) < 16 else value
    return {"error": code, "facts": facts}


def _is_over(record: RunRecord) -> bool:
    return record.state == "exited" and not record.leftovers


def _grace_s(asked: float | None, said: float | None, otherwise: float) -> float:
    chosen = next((value for value in (asked, said) if value is not None), otherwise)
    return min(max(0.0, chosen), 1e6)


def _now_s(told: ShAnswer) -> float:
    return float(_integer(told.last("now_s")))


def _integer(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 19 else 0


def _two(text: str | None) -> tuple[int, int] | None:
    words = (text or "").split(" ")
    if len(words) != 2 or not all(word.isdigit() and len(word) < 19 for word in words):
        return None
    return int(words[0]), int(words[1])
