"""The host key dialogs: first contact and a changed key. Enter held down accepts nothing."""

from __future__ import annotations

from typing import Any

from textual.app import App

from cockpit.domain.models import HostName


def ask_trust(app: App[Any], host: HostName) -> None:
    """Show the key that `host` offers and take the person's answer."""
