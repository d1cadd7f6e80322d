"""The part of EngineApi that is about incidents beyond the session: the past, evidence in context, mutes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cockpit.domain.incidents import Incident
from cockpit.domain.mutes import Mute
from cockpit.engine.api import LogLine
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.services import RunsService

EARLIER_AT_MOST = 300


class IncidentsFace:
    _runs: RunsService
    _desk: IncidentDesk
    _muting: asyncio.Lock
    _unkept: dict[str, Mute]
    """Rules that could not be written: they hold for this session."""

    @property
    def mutes(self) -> Sequence[Mute]:
        return self._desk.mutes

    async def mute(self, mute: Mute) -> bool:
        """Keep incidents like this quiet; False when the rule holds for this session only."""
        self._desk.set_mutes((mute, *(one for one in self._desk.mutes if one.id != mute.id)))
        async with self._muting:
            is_kept = await self._runs.keep_mute(mute)
        if not is_kept:
            self._unkept[mute.id] = mute
        return is_kept

    async def unmute(self, mute_id: str) -> bool:
        """Take a rule back; False when the file keeps it."""
        self._desk.set_mutes(one for one in self._desk.mutes if one.id != mute_id)
        self._unkept.pop(mute_id, None)
        async with self._muting:
            return await self._runs.drop_mute(mute_id)

    async def refresh_mutes(self) -> None:
        """Learn what other cockpits of this computer muted since."""
        async with self._muting:
            found = await self._runs.read_mutes()
            if found is not None:
                self._desk.set_mutes((*found, *self._unkept.values()))

    async def earlier_incidents(self, limit: int = EARLIER_AT_MOST) -> Sequence[Incident]:
        return await self._runs.earlier_incidents(limit)

    async def log_context(
        self, incident: Incident, offset: int, before: int = 3, after: int = 2
    ) -> Sequence[LogLine]:
        return await self._runs.log_context(incident, offset, before, after)

    async def masked_text(self, incident: Incident, text: str) -> str:
        return await self._runs.masked_text(incident, text)
