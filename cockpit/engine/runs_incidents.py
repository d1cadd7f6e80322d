"""The part of the runs that is about incidents: those of earlier sessions, their lines in logs, the rules that mute."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cockpit.domain.incidents import Incident
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import Mute
from cockpit.domain.run_ids import is_run_id
from cockpit.engine.api import LogLine, LogPart
from cockpit.engine.incidents_api import Mend
from cockpit.engine.log_context import around, read_context
from cockpit.engine.mirror import mirror_path
from cockpit.engine.past_runs import PastRuns
from cockpit.engine.run_life import RunLife
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError


class RunsIncidents:
    """Mixed into Runs."""

    past: PastRuns
    _parts: EngineParts
    _life: RunLife

    async def _masker(self, host: HostName, run: RunId) -> Masker:
        raise NotImplementedError

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        raise NotImplementedError

    async def earlier_incidents(self, limit: int) -> Sequence[Incident]:
        return await self.past.history.newest_incidents(limit)

    async def log_context(
        self, incident: Incident, offset: int, before: int, after: int
    ) -> Sequence[LogLine]:
        """From the copy here, else from the host; nothing where neither has the place."""
        run, host = incident.run, incident.host
        if run is None or host is None or not _is_named_well(host, run):
            return ()
        path, masker = mirror_path(self._parts.home, host, run), await self._masker(host, run)
        found = await asyncio.to_thread(read_context, path, offset, before, after, masker)
        if found:
            return found
        try:
            part = await self.log_around(run, offset)
        except CockpitError:
            return ()
        return around(part.lines, offset, before, after)

    async def masked_text(self, incident: Incident, text: str) -> str:
        """The text with every secret of its run covered that is known here."""
        run, host = incident.run, incident.host
        if run is None or host is None or not _is_named_well(host, run):
            return text
        return (await self._masker(host, run)).text(text)

    async def mend(self, incident: Incident) -> Mend:
        return await self._life.mender.mend(incident)

    async def read_mutes(self) -> Sequence[Mute] | None:
        return await self.past.history.mutes()

    async def keep_mute(self, mute: Mute) -> bool:
        return await self.past.history.keep_mute(mute)

    async def drop_mute(self, mute_id: str) -> bool:
        return await self.past.history.drop_mute(mute_id)


def _is_named_well(host: HostName, run: RunId) -> bool:
    """What is read back from the history may be anything, and names a folder here."""
    return is_run_id(run) and "/" not in host and not host.startswith(".") and "\0" not in host
