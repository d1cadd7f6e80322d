"""The first paint: the frame of a screen before there is an engine. It must import nothing slow."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen

from cockpit.widgets.footer_bar import FooterBar, mode_hints
from cockpit.widgets.header_line import HeaderLine


class BootScreen(Screen[None]):
    """Header and key bar, so that nothing jumps when the fleet takes this place."""

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Vertical(id="body")
        yield FooterBar(mode_hints(), "fleet")
