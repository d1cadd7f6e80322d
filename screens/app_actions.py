"""The actions of the app's own bindings: modes, back, leave, help, theme. Imported before the first paint."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.command import Provider
from textual.screen import Screen

from cockpit.i18n import _
from cockpit.screens.boot import BootScreen
from cockpit.widgets.look import Look
from cockpit.widgets.theme import PALETTES


class AppActions(App[str]):
    """Mixed into the app."""

    look: Look

    def get_key_display(self, binding: Binding) -> str:
        if binding.key == "enter":
            return self.look.glyphs.enter
        return super().get_key_display(binding)

    def get_default_screen(self) -> Screen[Any]:
        return BootScreen()

    def dress(self, theme: str) -> None:
        """Every drawn line anew in other colours; other modes redraw when they come."""
        if theme in PALETTES and theme != self.look.palette.name:
            self.look = Look(PALETTES[theme], self.look.glyphs)
            for screen in self.screen_stack:
                for widget in screen.query("*"):
                    widget.refresh()

    async def action_mode(self, mode: str) -> None:
        """To the mode as one left it; from inside of it, to its first screen."""
        if mode != self.current_mode:
            self.switch_mode(mode)
            return
        while len(self.screen_stack) > 1:
            await self.pop_screen()

    async def action_back(self) -> None:
        from cockpit.screens.base import CockpitScreen

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
        chosen = PALETTES[names[(names.index(self.look.palette.name) + 1) % len(names)]]
        self.theme = chosen.name
        self.notify(_("theme {title}").format(title=chosen.title), timeout=3, markup=False)

    def action_probe_now(self) -> None:
        from cockpit.screens.base import services

        services(self).engine.probe_now()


def commands() -> type[Provider]:
    from cockpit.screens.palette import CockpitCommands

    return CockpitCommands
