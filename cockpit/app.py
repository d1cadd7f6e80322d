"""The Textual app: it owns the engine's lifetime, the modes, the theme and the keys, and knows no GPU."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import BindingType

from cockpit.errors import CockpitError
from cockpit.screens.app_actions import AppActions, commands
from cockpit.screens.keys import APP_BINDINGS
from cockpit.screens.navigation import MODES, open_first_start
from cockpit.widgets.look import choose_look
from cockpit.widgets.options import UiOptions
from cockpit.widgets.theme import PALETTES, textual_theme

if TYPE_CHECKING:
    from cockpit.config.paths import Home
    from cockpit.engine.api import EngineApi
    from cockpit.engine.events import Event
    from cockpit.screens.notices import Notices

OpenEngine = Callable[[], Awaitable["EngineApi"]]
Direct = Callable[["EngineApi"], Awaitable[None]]
CLOSE_S = 5.0


class CockpitApp(AppActions, App[str]):
    """Five modes over one engine. `engine` may be a callable that makes it, after the first paint."""

    TITLE = "cockpit"
    CSS_PATH = Path(__file__).parent / "screens" / "base.tcss"
    MODES = dict(MODES)
    BINDINGS: ClassVar[list[BindingType]] = list(APP_BINDINGS)
    COMMANDS = {commands}
    NOTIFICATION_TIMEOUT = 8.0

    def __init__(self, engine: EngineApi | OpenEngine, options: UiOptions | None = None) -> None:
        self.options = options or UiOptions()
        self.look = choose_look(self.options, os.environ)
        palette = self.look.palette
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for each in PALETTES.values():
            self.register_theme(textual_theme(each))
        self.theme = palette.name
        self._open_engine = engine if callable(engine) else None
        self._engine = None if callable(engine) else engine
        self._notices: Notices | None = None
        self.failure: CockpitError | None = None

    @property
    def engine(self) -> EngineApi:
        assert self._engine is not None, "screens exist only once there is an engine"
        return self._engine

    def action_help_quit(self) -> None:
        if self._notices is not None:
            self._notices.interrupt()

    async def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda theme: self.dress(theme.name))
        if self._engine is not None:
            await self._enter()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._start(), name="engine", exit_on_error=True)

    async def _start(self) -> None:
        if self._open_engine is not None:
            try:
                self._engine = await self._open_engine()
            except CockpitError as error:
                self.failure = error
                self.exit()
                return
            await self._enter()
        self.engine.set_interval(self.options.interval_s)
        await self.engine.start()

    async def _enter(self) -> None:
        from cockpit.screens.notices import Notices
        from cockpit.screens.terminal import watch_terminal

        watch_terminal(self, self.exit)
        self._notices = Notices(self)
        self.engine.subscribe(self._hear)
        await self.switch_mode("fleet")
        self._notices.apply_keymap(self.options.keys)
        if not self.engine.hosts:
            open_first_start(self, first=True)

    def _hear(self, event: Event) -> None:
        """Events come from the engine's own tasks: hand them to this app's."""
        self.call_next(self._heard, event)

    def _heard(self, event: Event) -> None:
        from cockpit.screens.base import CockpitScreen

        if self._notices is not None:
            self._notices.hear(event)
        screens = [one for one in self.screen_stack if isinstance(one, CockpitScreen)]
        for screen in screens[-1:]:
            screen.engine_event(event)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded and self._notices is not None:
            event = self._notices.key(event)
        await super().on_event(event)

    async def on_unmount(self) -> None:
        if self._engine is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._engine.close(), CLOSE_S)


def run_tui(home: Home, direct: Direct | None = None, note: str = "") -> int:
    """The TUI over the hosts of `home`; the engine is imported and opened after the first paint.

    `direct` plays beside it once it is open: the demo's script. `note` stands in the header.
    """
    from cockpit.screens.session import read_options, run_demo, say_farewell

    async def open_home() -> EngineApi:
        from cockpit.screens.secrets import ask_secret

        engine_module = await asyncio.to_thread(importlib.import_module, "cockpit.engine.engine")
        engine: EngineApi = await engine_module.open_engine(
            home, ask_secret=partial(ask_secret, app)
        )
        if direct is not None:
            app.run_worker(direct(engine), exit_on_error=False)
        return engine

    app = CockpitApp(open_home, read_options(home, note))
    answer = app.run()
    if app.failure is not None:
        raise app.failure
    if direct is None:
        say_farewell(app._engine)
    return run_demo() if answer == "demo" else app.return_code or 0
