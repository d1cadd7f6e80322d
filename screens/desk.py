"""The desk: links, files and looks of this session."""

from __future__ import annotations

from cockpit.screens.base import CockpitScreen


class DeskScreen(CockpitScreen):
    MODE = "desk"
