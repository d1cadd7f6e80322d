"""What a session is started with: the person's settings as the screens want them, and the way to the demo."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from cockpit.config.paths import Home
from cockpit.config.settings import Settings, load_settings
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.i18n import ngettext
from cockpit.widgets.options import UiOptions

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi


def read_options(home: Home, note: str = "") -> UiOptions:
    """settings.toml; what is wrong in it is raised as ConfigError before anything is drawn."""
    return options_of(load_settings(home), home, note)


def options_of(settings: Settings, home: Home, note: str = "") -> UiOptions:
    return UiOptions(
        theme=settings.theme,
        glyphs=settings.glyphs,
        charts=settings.charts,
        density=settings.density,
        colour=settings.colour,
        keys=settings.keys,
        filters=settings.filters,
        interval_s=settings.interval_s,
        hosts_file=home.hosts_toml,
        note=note,
    )


def say_farewell(engine: EngineApi | None) -> None:
    """After the screen is gone, on stderr: what goes on."""
    if words := farewell(engine):
        print(words, file=sys.stderr)


def farewell(engine: EngineApi | None) -> str:
    """One line for the shell: what goes on without us. Empty when nothing does."""
    views = [] if engine is None else [view for view in engine.runs.all() if _goes_on(engine, view)]
    if not views:
        return ""
    names = ", ".join(
        f"{safe_line(view.profile, 40)} on {safe_line(view.host, 40)}" for view in views[:3]
    )
    more = f", {len(views) - 3} more" if len(views) > 3 else ""
    words = ngettext("{n} run goes on: {names}.", "{n} runs go on: {names}.", len(views))
    return words.format(n=len(views), names=names + more) + "  cockpit ps"


def _goes_on(engine: EngineApi, view: RunView) -> bool:
    """A run of the past whose host is gone may have ended long ago."""
    return not view.ended and (view.state != "unreachable" or view.host in engine.hosts)


def run_demo() -> int:
    """The demo is another front end with its own engine: start it in our place."""
    return subprocess.run([sys.executable, "-m", "cockpit", "demo"], check=False).returncode
