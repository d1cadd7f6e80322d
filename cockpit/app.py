"""The Textual app: it owns the engine's lifetime, the modes, the theme and the keys, and knows no GPU."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, TextArea

from cockpit.screens.app_actions import AppActions, redraw_all
from cockpit.screens.base import CockpitScreen
from cockpit.screens.boot import BootScreen
from cockpit.screens.keys import APP_BINDINGS, is_foreign_letter, normalised
from cockpit.screens.navigation import MODES, open_first_start
from cockpit.screens.notices import Notices
from cockpit.screens.secrets import ask_secret
from cockpit.screens.terminal import watch_terminal
from cockpit.widgets.look import Look, choose_look
from cockpit.widgets.options import UiOptions
from cockpit.widgets.theme import PALETTES, textual_theme

if TYPE_CHECKING:
    from cockpit.config.paths import Home
    from cockpit.engine.api import EngineApi
    from cockpit.engine.events import Event

OpenEngine = Callable[[], Awaitable["EngineApi"]]
CLOSE_S = 5.0


class CockpitApp(AppActions, App[str]):
    """Five modes over one engine. `engine` may be a callable that makes it, after the first paint."""

    TITLE = "cockpit"
    CSS_PATH = "screens/base.tcss"
    MODES = dict(MODES)
    BINDINGS: ClassVar[list[BindingType]] = list(APP_BINDINGS)
    ENABLE_COMMAND_PALETTE = True
    NOTIFICATION_TIMEOUT = 8.0

    def __init__(self, engine: EngineApi | OpenEngine, options: UiOptions | None = None) -> None:
        self.options = options or UiOptions()
        self.look = choose_look(self.options, os.environ)
        palette = self.look.palette
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

    def action_help_quit(self) -> None:
        self.notices.interrupt()

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
        self.engine.set_interval(self.options.interval_s)
        await self.engine.start()

    async def _enter(self) -> None:
        self.engine.subscribe(self._hear)
        await self.switch_mode("fleet")
        self.notices.apply_keymap(self.options.keys)
        if not self.engine.hosts:
            open_first_start(self, first=True)

    def _hear(self, event: Event) -> None:
        """Events come from the engine's own tasks: hand them to this app's."""
        self.call_next(self._heard, event)

    def _heard(self, event: Event) -> None:
        self.notices.hear(event)
        if isinstance(self.screen, CockpitScreen):
            self.screen.engine_event(event)

    def _dress(self, theme: str) -> None:
        if theme in PALETTES and theme != self.look.palette.name:
            self.look = Look(PALETTES[theme], self.look.glyphs)
            redraw_all(self)

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


def run_tui(home: Home) -> int:
    """The TUI over the hosts of `home`; the engine is imported and opened after the first paint."""
    from cockpit.screens.session import read_options, run_demo

    async def open_home() -> EngineApi:
        engine_module = await asyncio.to_thread(importlib.import_module, "cockpit.engine.engine")
        engine: EngineApi = await engine_module.open_engine(
            home, ask_secret=partial(ask_secret, app)
        )
        return engine

    app = CockpitApp(open_home, read_options(home))
    answer = app.run()
    return run_demo() if answer == "demo" else app.return_code or 0
