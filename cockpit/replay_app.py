"""`cockpit replay FILE`: the TUI on an engine that plays a recording."""

from __future__ import annotations

from dataclasses import replace

from cockpit.app import CockpitApp
from cockpit.config.paths import Home
from cockpit.engine.recording_read import Recording, find_recording, read_recording
from cockpit.engine.replay import ReplayEngine
from cockpit.screens.replay import ReplayKeys
from cockpit.screens.session import read_options
from cockpit.widgets.options import UiOptions


class ReplayApp(ReplayKeys, CockpitApp):
    """The same screens; what they show is a recording."""

    def __init__(self, recording: Recording, options: UiOptions | None = None) -> None:
        engine = ReplayEngine(recording)
        self.playback = engine.replay
        super().__init__(engine, options)


def run_replay(file: str) -> int:
    """Raises DataError with line and reason, StorageError: nothing is drawn before the file is read."""
    home = Home.from_environ()
    recording = read_recording(find_recording(home, file))
    app = ReplayApp(recording, replace(read_options(home), hosts_file=None))
    app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
