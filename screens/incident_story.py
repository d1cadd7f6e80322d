"""Fills the story's pane: what takes time to read, a profile or lines of a log, comes a moment later."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cockpit.domain.incidents import Incident
from cockpit.i18n import _
from cockpit.screens.incident_became import earlier_ones
from cockpit.screens.incident_card import card_paras, first_paras
from cockpit.screens.incident_evidence import MOST_CONTEXTS, Contexts, context_offsets
from cockpit.screens.incident_export import read_contexts
from cockpit.screens.incident_list import Entry
from cockpit.screens.run_actions import read_profile
from cockpit.widgets.text_pane import TextPane, layout, para

if TYPE_CHECKING:
    from cockpit.screens.incidents import IncidentsScreen

MOST_KEPT: Final = 64
SETTLES_S: Final = 10.0
"""Lines that follow the marked one come for a while: they are read again after it."""


class Story:
    def __init__(self, screen: IncidentsScreen, pane: TextPane) -> None:
        self._screen = screen
        self._pane = pane
        self._profiles: dict[str, Mapping[str, object] | None] = {}
        self._contexts: dict[tuple[str, bool], Contexts] = {}

    def show(self, entry: Entry | None, *, from_top: bool) -> None:
        screen, pane = self._screen, self._pane
        if entry is None:
            pane.show([para(_("Nothing is chosen."), "muted")])
            return
        incident = entry.incident
        known = screen.engine.incidents.all()
        card = card_paras(
            screen.engine,
            incident,
            screen.look,
            self.profile(incident),
            width=pane.inner_width,
            contexts=self.contexts(incident),
            earlier=earlier_ones(incident, known, screen.remembered),
            is_earlier=entry.is_earlier,
        )
        if len(layout(card, pane.inner_width)) > pane.rows_shown:
            card[1:1] = first_paras(incident)
        pane.show(card, from_top=from_top)

    def profile(self, incident: Incident) -> Mapping[str, object] | None:
        """The run's TOML, read once and apart from drawing."""
        name = incident.profile
        if name is None or not any(remedy.patch for remedy in incident.finding.remedies):
            return None
        if name not in self._profiles:
            self._profiles[name] = None
            self._screen.run_worker(self._read_profile(name), group="profile")
        return self._profiles[name]

    def contexts(self, incident: Incident) -> Contexts:
        """The lines around its evidence, as far as they are here."""
        if not context_offsets(incident):
            return {}
        settled = self._screen.engine.wall_s() - incident.last_s > SETTLES_S
        name = (incident.key, settled)
        if name not in self._contexts:
            before = self._contexts.get((incident.key, False), {})
            while len(self._contexts) >= MOST_KEPT:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[name] = before
            self._screen.run_worker(self._read_contexts(name, incident), group="context")
        return self._contexts[name]

    async def _read_profile(self, name: str) -> None:
        engine = self._screen.engine
        self._profiles[name] = await asyncio.to_thread(read_profile, engine, name)
        self._again()

    async def _read_contexts(self, name: tuple[str, bool], incident: Incident) -> None:
        found = await read_contexts(self._screen.engine, incident, MOST_CONTEXTS)
        if found:
            self._contexts[name] = found
            self._again()

    def _again(self) -> None:
        if self._screen.is_mounted:
            self.show(self._screen.chosen_entry, from_top=False)
