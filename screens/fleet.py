"""The fleet: every host and card, trouble first."""

from __future__ import annotations

from cockpit.screens.base import CockpitScreen


class FleetScreen(CockpitScreen):
    MODE = "fleet"
