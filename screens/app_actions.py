"""The actions of the app's own bindings: modes, back, leave, help, theme. They know no engine part."""

from __future__ import annotations

from typing import Any

from textual.app import App

from cockpit.screens.base import CockpitScreen, services
from cockpit.widgets.theme import PALETTES


class AppActions(App[str]):
    """Mixed into the app."""

    def action_mode(self, mode: str) -> None:
        self.switch_mode(mode)

    async def action_back(self) -> None:
        if isinstance(self.screen, CockpitScreen) and self.screen.undo_layer():
            return
        if len(self.screen_stack) > 1:
            await self.pop_screen()

    def action_leave(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.exit()

    def action_help(self) -> None:
        from cockpit.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_next_theme(self) -> None:
        names = list(PALETTES)
        self.theme = names[(names.index(services(self).look.palette.name) + 1) % len(names)]

    def action_probe_now(self) -> None:
        services(self).engine.probe_now()


def redraw_all(app: App[Any]) -> None:
    """Every drawn line anew, in the colours of now; screens of other modes redraw when they come."""
    for screen in app.screen_stack:
        for widget in screen.query("*"):
            widget.refresh()
