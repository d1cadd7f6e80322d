"""The step of a launch in which its code goes to the host: read, recorded, sent over any number of lost links."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from cockpit.domain.code_files import SENT_NOTE, CodePlan
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_spec import RunSpec
from cockpit.domain.units import bytes_text, duration_text
from cockpit.engine.api import LaunchPlan
from cockpit.engine.bounds import attempt, within
from cockpit.engine.code_list import plan_code
from cockpit.engine.code_pack import Hashed, hashed, tree_hash
from cockpit.engine.code_planning import code_wish, too_large
from cockpit.engine.code_record import CodeRecord, keep_diff, record_of
from cockpit.engine.code_sync import CodeSent, CodeSync, OnProgress
from cockpit.engine.courier import OpenCourier, open_shipped_courier
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.wiring import EngineParts
from cockpit.errors import HostUnreachable, LaunchFailed, LinkLost, NoPython
from cockpit.transport.base import HostTransport
from cockpit.transport.own_thread import in_own_thread

READ_LIMIT_S = 900.0
TRIES_IN_VAIN = 4
"""Broken links in a row without a byte of progress."""
MOST_TRIES = 50
RECONNECT_LIMIT_S = 60.0
LET_GO_LIMIT_S = 5.0
TELL_EVERY_S = 0.5

OnStep = Callable[[RunId, HostName, str, str], None]
TransportOf = Callable[[HostName], HostTransport | None]


class CodeSender:
    def __init__(
        self,
        parts: EngineParts,
        of_host: Callable[[HostName], HostRuns],
        transport_of: TransportOf,
        on_step: OnStep,
        open_courier: OpenCourier = open_shipped_courier,
    ) -> None:
        self._parts = parts
        self._of_host = of_host
        self._transport_of = transport_of
        self._on_step = on_step
        self._open_courier = open_courier
        self._sync: CodeSync | None = None

    async def send(self, plan: LaunchPlan, spec: RunSpec) -> RunSpec:
        """The spec with its code on the host, and where it came from in its notes.

        Until `let_go` nobody else puts code there: what is started now reads what was sent, and no mixture.
        Raises LaunchFailed, NoPython, StorageError, TransportError; then nothing may be started.
        """
        if plan.code is None:
            return spec
        code, files, record = await self._read(plan)
        notes = await asyncio.to_thread(
            keep_diff, self._parts.home, plan.host, spec.run, record, Masker(spec.secrets.values())
        )
        began_s = self._parts.clock.now_s()
        sent = await self._sent(plan.host, spec.run, code, files)
        took_s = self._parts.clock.now_s() - began_s
        words = _words(sent, took_s)
        self._on_step(spec.run, plan.host, "code_sent", words)
        return replace(spec, notes={**spec.notes, **notes, SENT_NOTE: words})

    async def let_go(self) -> None:
        sync, self._sync = self._sync, None
        if sync is not None:
            await attempt(LET_GO_LIMIT_S, sync.let_go())

    async def _read(self, plan: LaunchPlan) -> tuple[CodePlan, tuple[Hashed, ...], CodeRecord]:
        """What is there now: the plan may be minutes old."""
        wish = code_wish(plan.profile, plan.cwd)
        assert wish is not None and plan.code is not None, "a plan with code has a wish for it"

        def read() -> tuple[CodePlan, tuple[Hashed, ...], CodeRecord]:
            code = plan_code(wish)
            files = hashed(code)
            return code, files, record_of(code, tree_hash(files))

        try:
            code, files, record = await within(READ_LIMIT_S, in_own_thread(read))
        except asyncio.TimeoutError:
            folder = plan.code.root
            raise LaunchFailed("code_slow", folder=folder, limit_s=int(READ_LIMIT_S)) from None
        if code.is_too_large and not plan.code.is_too_large:
            raise LaunchFailed("code_too_large", **too_large(code).facts)
        return code, files, record

    async def _sent(
        self, host: HostName, run: RunId, code: CodePlan, files: tuple[Hashed, ...]
    ) -> CodeSent:
        steps = _Steps(self._parts.clock.now_s, lambda text: self._tell(run, host, text))
        for _try in range(MOST_TRIES):
            before = steps.progress
            try:
                await self._of_host(host).agent(RECONNECT_LIMIT_S)
                transport = self._transport_of(host)
                if transport is not None:
                    return await self._send(transport, code, files, steps.progressed)
            except LinkLost:
                pass
            except HostUnreachable:
                break
            steps.vain = 0 if steps.progress != before else steps.vain + 1
            if steps.vain >= TRIES_IN_VAIN:
                break
        raise LaunchFailed("code_not_sent", host=host, run=run)

    async def _send(
        self,
        transport: HostTransport,
        code: CodePlan,
        files: tuple[Hashed, ...],
        progress: OnProgress,
    ) -> CodeSent:
        python = self._parts.hosts[transport.host].python
        try:
            self._sync = CodeSync(transport, python, self._open_courier)
            return await self._sync.send(code, files, progress)
        except NoPython:
            from cockpit.engine.code_plain import PlainCode

            return await PlainCode(transport, code).send(files, progress)

    def _tell(self, run: RunId, host: HostName, text: str) -> None:
        self._on_step(run, host, "code_sending", text)


class _Steps:
    """Progress, told at most twice a second."""

    def __init__(self, now_s: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._now_s = now_s
        self._tell = tell
        self._told_s: float | None = None
        self.progress = (0, 0)
        self.vain = 0

    def progressed(self, done_bytes: int, total_bytes: int) -> None:
        self.progress = (done_bytes, total_bytes)
        now_s = self._now_s()
        if self._told_s is None or now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            if total_bytes:
                self._tell(f"{bytes_text(done_bytes)} of {bytes_text(total_bytes)}")


def _words(sent: CodeSent, took_s: float) -> str:
    """ "3 s, 2 of 41 files new, 12.0 KiB by rsync"."""
    if not sent.new_files:
        new = f"all {sent.files} files were there"
    else:
        size = f"{bytes_text(sent.new_bytes)} as {bytes_text(sent.wire_bytes)}"
        new = f"{sent.new_files} of {sent.files} files, {size} by {sent.by}"
    parts = [duration_text(took_s), new]
    if sent.removed:
        parts.append(f"{sent.removed} removed there")
    if sent.kept:
        parts.append(f"{sent.kept} kept aside there")
    return ", ".join(parts)
