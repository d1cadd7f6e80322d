"""One host in full."""

from __future__ import annotations

from cockpit.domain.models import HostName
from cockpit.screens.base import CockpitScreen


class HostScreen(CockpitScreen):
    def __init__(self, host: HostName) -> None:
        super().__init__()
        self._host = host
