"""The Textual app: it owns the engine's lifetime, the modes, the theme and the keys, and knows no GPU."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, TextArea

from cockpit.screens.base import CockpitScreen
from cockpit.screens.boot import BootScreen
from cockpit.screens.keys import APP_BINDINGS, is_foreign_letter, normalised
from cockpit.screens.navigation import MODES, open_first_start
from cockpit.screens.notices import Notices
from cockpit.screens.terminal import watch_terminal
from cockpit.widgets.glyphs import choose_glyphs
from cockpit.widgets.look import Look
from cockpit.widgets.options import UiOptions
from cockpit.widgets.theme import PALETTES, choose_palette, textual_theme

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi
    from cockpit.engine.events import Event

OpenEngine = Callable[[], Awaitable["EngineApi"]]
CLOSE_S = 5.0


class CockpitApp(App[str]):
    """Five modes over one engine. `engine` may be a callable that makes it, after the first paint."""

    TITLE = "cockpit"
    CSS_PATH = "screens/base.tcss"
    MODES = dict(MODES)
    BINDINGS: ClassVar[list[BindingType]] = list(APP_BINDINGS)
    ENABLE_COMMAND_PALETTE = True
    NOTIFICATION_TIMEOUT = 8.0

    def __init__(self, engine: EngineApi | OpenEngine, options: UiOptions | None = None) -> None:
        self.options = options or UiOptions()
        colour = self.options.colour and not os.environ.get("NO_COLOR")
        if not os.environ.get("NO_COLOR", "unset"):
            del os.environ["NO_COLOR"]  # set and empty means unset; Textual would take it as a wish
        if not colour:
            os.environ["NO_COLOR"] = "1"
        palette = choose_palette(self.options.theme, os.environ, colour=colour)
        self.look = Look(palette, choose_glyphs(self.options.glyphs, os.environ))
        super().__init__(ansi_color=palette.ansi or None)
        for each in PALETTES.values():
            self.register_theme(textual_theme(each))
        self.theme = palette.name
        self._open_engine = engine if callable(engine) else None
        self._engine = None if callable(engine) else engine
        self.notices = Notices(self)

    @property
    def engine(self) -> EngineApi:
        assert self._engine is not None, "screens exist only once there is an engine"
        return self._engine

    def get_key_display(self, binding: Binding) -> str:
        if binding.key == "enter":
            return self.look.glyphs.enter
        return super().get_key_display(binding)

    def get_default_screen(self) -> Screen[Any]:
        return BootScreen()

    async def on_mount(self) -> None:
        watch_terminal(self, self.exit)
        self.theme_changed_signal.subscribe(self, lambda theme: self._dress(theme.name))
        if self._engine is not None:
            await self._enter()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._start(), name="engine", exit_on_error=True)

    async def _start(self) -> None:
        if self._engine is None:
            assert self._open_engine is not None
            self._engine = await self._open_engine()
            await self._enter()
        await self.engine.start()

    async def _enter(self) -> None:
        self.engine.subscribe(self._hear)
        await self.switch_mode("fleet")
        self.notices.apply_keymap(self.options.keys)
        if not self.engine.hosts:
            open_first_start(self, first=True)

    def _hear(self, event: Event) -> None:
        self.notices.hear(event)
        if isinstance(self.screen, CockpitScreen):
            self.screen.engine_event(event)

    def _dress(self, theme: str) -> None:
        if theme in PALETTES and theme != self.look.palette.name:
            self.look = Look(PALETTES[theme], self.look.glyphs)
            for screen in self.screen_stack:
                screen.refresh(layout=True)
                for widget in screen.query("*"):
                    widget.refresh()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.notices.any_key()
            if not isinstance(self.focused, Input | TextArea):
                event = normalised(event)
                if is_foreign_letter(event):
                    self.notices.input_method_is_on()
        await super().on_event(event)

    async def on_unmount(self) -> None:
        if self._engine is not None:
            await asyncio.wait_for(self._engine.close(), CLOSE_S)

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

    def action_help_quit(self) -> None:
        self.notices.interrupt()

    def action_help(self) -> None:
        from cockpit.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_next_theme(self) -> None:
        names = list(PALETTES)
        self.theme = names[(names.index(self.look.palette.name) + 1) % len(names)]

    def action_probe_now(self) -> None:
        self.engine.probe_now()
