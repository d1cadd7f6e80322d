"""What a session is started with: the person's settings as the screens want them, and the way to the demo."""

from __future__ import annotations

import subprocess
import sys

from cockpit.config.paths import Home
from cockpit.config.settings import Settings, load_settings
from cockpit.widgets.options import UiOptions


def read_options(home: Home) -> UiOptions:
    """settings.toml; what is wrong in it is raised as ConfigError before anything is drawn."""
    return options_of(load_settings(home), home)


def options_of(settings: Settings, home: Home) -> UiOptions:
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
    )


def run_demo() -> int:
    """The demo is another front end with its own engine: start it in our place."""
    return subprocess.run([sys.executable, "-m", "cockpit", "demo"], check=False).returncode
