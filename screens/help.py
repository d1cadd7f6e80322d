"""Help: the keys that are live on the screen below, read from its bindings."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen

from cockpit.screens.base import CockpitScreen


class HelpScreen(CockpitScreen):
    def __init__(self, about: Screen[Any]) -> None:
        super().__init__()
        self._about = about
