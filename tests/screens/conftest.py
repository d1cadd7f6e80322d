"""What makes screens look the same in every test run, set before Textual is first imported."""

from __future__ import annotations

import os
import sys
import time

os.environ["TEXTUAL_ANIMATIONS"] = "none"
for _name in ("NO_COLOR", "TEXTUAL_THEME", "COCKPIT_GLYPHS", "COLORFGBG", "TEXTUAL_FPS"):
    os.environ.pop(_name, None)
os.environ["TERM"] = "xterm-256color"
os.environ["LANG"] = os.environ["LC_ALL"] = "C.UTF-8"

import pytest  # noqa: E402

SNAPSHOT_PYTHON = (3, 11)


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """UTC, and no cursor that blinks."""
    from textual.widgets import Input

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)


def pytest_configure(config: pytest.Config) -> None:
    """Pictures are made with one Python only, so that they differ by our changes alone."""
    if (
        config.getoption("--snapshot-update", default=False)
        and sys.version_info[:2] != SNAPSHOT_PYTHON
    ):
        wanted = ".".join(map(str, SNAPSHOT_PYTHON))
        raise pytest.UsageError(f"update snapshots with Python {wanted}")
