"""First start and `A`: paste an ssh command and see what it means while typing."""

from __future__ import annotations

from cockpit.screens.base import CockpitScreen


class FirstStartScreen(CockpitScreen):
    def __init__(self, *, first: bool = False) -> None:
        super().__init__()
        self._first = first
