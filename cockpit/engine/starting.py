"""Starting a run on its host, so that a lost reply starts nothing twice and leaves nothing in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from cockpit.config.paths import ensure_private_dir
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.engine.agent import RunAgent
from cockpit.engine.agent_care import restart
from cockpit.engine.api import LaunchPlan
from cockpit.engine.bounds import within
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.host_runs import MACHINE_NOTE, HostRuns
from cockpit.engine.masks import remember
from cockpit.engine.mirror import mirror_path
from cockpit.engine.run_secrets import env_file_of
from cockpit.engine.wiring import EngineParts
from cockpit.errors import HostUnreachable, LaunchFailed, LinkLost, NotNow, RunError
from cockpit.transport.base import HostTransport

TRIES = 3
RECONNECT_LIMIT_S = 60.0
GONE_LIMIT_S = 1.0

OnStep = Callable[..., None]
"""(run, host, code, text)."""


class Starter:
    def __init__(
        self,
        parts: EngineParts,
        of_host: Callable[[HostName], HostRuns],
        transport_of: Callable[[HostName], HostTransport | None],
        on_step: OnStep,
    ) -> None:
        self._parts = parts
        self._of_host = of_host
        self._on_step = on_step
        self._transport_of = transport_of
        self.in_doubt: set[RunId] = set()
        """Runs that a host was asked to start, and whose answer is not here."""

    async def start(self, plan: LaunchPlan, spec: RunSpec, attempt: int = 1) -> RunRecord:
        """The run's record, once the host has it on disk. Raises LaunchFailed, NotNow, TransportError.

        A later `attempt` is one of a lost run, in the folder and the log that it has.
        """
        runs = self._of_host(plan.host)
        if not isinstance(await runs.agent(), RunAgent):
            self._on_step(spec.run, plan.host, "sh_only_run", plan.host)
        if runs.machine:
            spec = replace(spec, notes={**spec.notes, MACHINE_NOTE: runs.machine})
        self._remember(plan, spec)
        async with self._with_code(plan, spec) as spec:
            self._on_step(spec.run, plan.host, "launch_sending")
            record = await self._send(runs, spec, attempt)
        self._on_step(spec.run, plan.host, "launch_on_disk")
        return record

    @asynccontextmanager
    async def _with_code(self, plan: LaunchPlan, spec: RunSpec) -> AsyncIterator[RunSpec]:
        """What fails here starts nothing."""
        if plan.code is None:
            yield spec
            return
        from cockpit.engine.code_sending import CodeSender

        sender = CodeSender(self._parts, self._of_host, self._transport_of, self._on_step)
        try:
            yield await sender.send(plan, spec)
        finally:
            await sender.let_go()

    async def _send(self, runs: HostRuns, spec: RunSpec, attempt: int) -> RunRecord:
        """A host that has the run answers so and starts nothing: a request may be sent again."""
        agent = lost = None
        for _try in range(TRIES):
            try:
                agent = await runs.agent(RECONNECT_LIMIT_S, after=lost)
                if attempt > 1:
                    if not isinstance(agent, RunAgent):
                        raise LaunchFailed(why="sh_only", host=runs.host, what="[restart]")
                    return (await restart(agent, spec, attempt)).record
                self.in_doubt.add(spec.run)
                record = (await agent.start(spec)).record
                self.in_doubt.discard(spec.run)
                return record
            except NotNow as error:  # another run was quicker
                self.in_doubt.discard(spec.run)
                raise NotNow(**{**error.facts, "profile": spec.profile}) from error
            except RunError:  # a host that had started it would have said so
                self.in_doubt.discard(spec.run)
                raise
            except LinkLost:
                lost = agent if agent is not None and await _is_gone(agent) else None
            except HostUnreachable:
                break
        raise LaunchFailed(why="reply_lost", host=runs.host, run=spec.run)

    def _remember(self, plan: LaunchPlan, spec: RunSpec) -> None:
        if not spec.secrets:
            return
        folder = mirror_path(self._parts.home, plan.host, spec.run).parent
        for each in (folder.parent.parent, folder.parent, folder):
            ensure_private_dir(each)
        remember(folder, plan.env_secret_names, env_file_of(plan.profile))


async def _is_gone(agent: HostAgent) -> bool:
    """Whether it will answer nothing any more, as it knows itself in a moment."""
    try:
        await within(GONE_LIMIT_S, agent.closed())
    except asyncio.TimeoutError:
        return False
    return True
