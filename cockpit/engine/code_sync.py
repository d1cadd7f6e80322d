"""A run's code to its host, before the run starts: only what is new there, and all of it or nothing.

The host compares by its own notes of what we sent, stages what is new under its hash, and puts it in place at the
end. A broken link costs what was under way; the next try goes on where the stage ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cockpit.domain.code_files import CodePlan, shown
from cockpit.domain.run_spec import Json
from cockpit.domain.text import safe_line
from cockpit.domain.units import bytes_text
from cockpit.engine.code_pack import Hashed, changed, gathered, listing, packed
from cockpit.engine.code_rsync import RsyncFailed, has_rsync, rsync_to
from cockpit.engine.courier import Courier, OpenCourier, Refusal
from cockpit.errors import CockpitError, LaunchFailed, ProtocolError
from cockpit.transport.base import HostTransport

OnProgress = Callable[[int, int], None]
"""(bytes that are over, bytes in all)."""

_FULL = (28, 122)
"""ENOSPC, EDQUOT: Linux' own numbers, since the host is one."""
ROOM_BYTES = 16 << 20
NAMED = 5
_WHY = {
    "changed": "changed there",
    "not_ours": "not sent by us",
    "folder": "a folder there",
    "through": "below a link",
    "locked": "in a folder that you may not write to",
}


@dataclass(frozen=True, slots=True)
class CodeSent:
    """What a host was sent; `by` is empty when it had all of it."""

    files: int
    new_files: int
    new_bytes: int
    wire_bytes: int
    by: str
    removed: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class _Needs:
    files: tuple[tuple[Hashed, int], ...]
    """What the host lacks, and how many bytes of each it has."""
    rsync: bool

    @property
    def total_bytes(self) -> int:
        return sum(one.file.size - have for one, have in self.files)


class CodeSync:
    """One sending of one code to one host; tried again by whoever owns it."""

    def __init__(
        self, transport: HostTransport, python: str | None, open_courier: OpenCourier
    ) -> None:
        self._transport = transport
        self._python = python
        self._open = open_courier
        self._host = str(transport.host)
        self._held: Courier | None = None

    async def send(self, plan: CodePlan, files: Sequence[Hashed], progress: OnProgress) -> CodeSent:
        """The folder there is ours until `let_go`. Raises LaunchFailed, NoPython, TransportError."""
        by_rsync = await asyncio.to_thread(has_rsync)
        try:
            return await self._once(plan, files, progress, by_rsync=by_rsync)
        except RsyncFailed:
            return await self._once(plan, files, progress, by_rsync=False)

    async def _once(
        self,
        plan: CodePlan,
        files: Sequence[Hashed],
        progress: OnProgress,
        *,
        by_rsync: bool,
    ) -> CodeSent:
        courier = Courier(await self._open(self._transport, self._python), self._host)
        self._held = courier
        try:
            return await self._send(courier, plan, files, progress, by_rsync)
        except BaseException as error:
            await self.let_go()
            if isinstance(error, Refusal):
                raise self._failure(error, plan) from error
            raise

    async def let_go(self) -> None:
        """Whoever else has code for that folder may put it there."""
        courier, self._held = self._held, None
        if courier is not None:
            await courier.close()

    async def _send(
        self,
        courier: Courier,
        plan: CodePlan,
        files: Sequence[Hashed],
        progress: OnProgress,
        by_rsync: bool,
    ) -> CodeSent:
        body = await asyncio.to_thread(listing, files)
        fields: dict[str, Json] = {
            "cwd": plan.cwd,
            "source": plan.source,
            "replaces": plan.replaces,
        }
        most_bytes = 4096 + 40 * len(files) + 40_000
        told, answer = await courier.ask("code", fields, body, most_bytes=most_bytes)
        needs = self._needs(plan, files, told, answer)
        needs = replace(needs, rsync=needs.rsync and by_rsync)
        progress(0, needs.total_bytes)
        by = await self._bring(courier, plan, files, needs, progress)
        placed = await self._place(courier, plan)
        return CodeSent(
            files=len(files),
            new_files=len(needs.files),
            new_bytes=needs.total_bytes,
            wire_bytes=courier.sent_bytes,
            by=by,
            removed=_count(placed, "removed"),
            kept=_count(placed, "kept"),
        )

    async def _place(self, courier: Courier, plan: CodePlan) -> dict[str, object]:
        """What fails here may have begun; the host notes what was under way, and the next try ends it."""
        try:
            return (await courier.ask("place", {}))[0]
        except Refusal as refusal:
            text = refusal.facts.get("text") or refusal.code
            path = safe_line(plan.cwd)
            raise LaunchFailed(
                "code_host_failed", why="placing", host=self._host, path=path, text=text
            ) from refusal

    async def _bring(
        self,
        courier: Courier,
        plan: CodePlan,
        files: Sequence[Hashed],
        needs: _Needs,
        progress: OnProgress,
    ) -> str:
        """By which way it went."""
        if not needs.files:
            return ""
        wanted = [one for one, _have in needs.files]
        if needs.rsync:
            told = await rsync_to(courier, Path(plan.root), wanted, progress)
            self._check(told, files)
            return "rsync"
        await courier.tell("take", {})
        pieces = packed(Path(plan.root), needs.files)
        while (piece := await asyncio.to_thread(gathered, pieces)) is not None:
            if piece.data:
                await courier.send_chunk(piece.data)
            progress(piece.done_bytes, needs.total_bytes)
        await courier.send_chunk(b"")
        told, _none = await courier.answer()
        self._check(told, files)
        return "tar"

    def _check(self, told: dict[str, object], files: Sequence[Hashed]) -> None:
        """What came over is not what was announced: it changed here meanwhile."""
        bad = told.get("bad")
        if bad == []:
            return
        try:
            first = files[_index(bad[0] if isinstance(bad, list) else None, files)]
        except ValueError as error:
            raise ProtocolError(host=self._host, why="code") from error
        raise changed(first.file)

    def _needs(
        self, plan: CodePlan, files: Sequence[Hashed], told: dict[str, object], answer: bytes
    ) -> _Needs:
        """What the host says it lacks: positions in our own list, and nothing else of it."""
        try:
            value = json.loads(answer)
            conflicts = [(files[_index(at, files)], str(why)) for at, why in value["conflicts"]]
            needed = [(files[_index(at, files)], int(have)) for at, have in value["need"]]
        except (IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ProtocolError(host=self._host, why="code") from error
        if any(one.sha is None or not 0 <= have <= one.file.size for one, have in needed):
            raise ProtocolError(host=self._host, why="code")
        if conflicts:
            count = max(len(conflicts), _count(told, "conflict_count"))
            raise conflict_of(plan, self._host, conflicts, count)
        needs = _Needs(tuple(needed), isinstance(told.get("rsync"), str))
        free = told.get("free")
        if isinstance(free, int) and free < needs.total_bytes + ROOM_BYTES:
            raise self._full(plan, needs.total_bytes)
        return needs

    def _full(self, plan: CodePlan, needed_bytes: int | None) -> LaunchFailed:
        needed = None if needed_bytes is None else bytes_text(needed_bytes)
        return LaunchFailed(
            "code_host_full", host=self._host, path=safe_line(plan.cwd), needed=needed
        )

    def _failure(self, refusal: Refusal, plan: CodePlan) -> CockpitError:
        facts = {"host": self._host, "path": safe_line(plan.cwd), "text": refusal.facts.get("text")}
        if refusal.facts.get("errno") in _FULL:
            return self._full(plan, None)
        if refusal.code == "busy":
            return LaunchFailed("code_busy", **facts)
        facts["text"] = facts["text"] or refusal.code.replace("_", " ")
        return LaunchFailed("code_host_failed", **facts)


def conflict_of(
    plan: CodePlan, host: str, conflicts: Sequence[tuple[Hashed, str]], count: int
) -> LaunchFailed:
    """What stands in the way there: each with why it does."""
    named = [
        f"{shown(one.file.path)} ({_WHY.get(why, 'in the way')})" for one, why in conflicts[:NAMED]
    ]
    more = "" if count <= NAMED else f" (+{count - NAMED})"
    return LaunchFailed(
        "code_conflict",
        host=host,
        path=safe_line(plan.cwd),
        count=count,
        names=", ".join(named) + more,
    )


def _index(at: object, files: Sequence[Hashed]) -> int:
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(files):
        raise ValueError("no such file")
    return at


def _count(told: dict[str, object], key: str) -> int:
    value = told.get(key)
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0
