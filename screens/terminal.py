"""The terminal itself: leave when it is gone, and lend it to an editor or a shell."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App, SuspendNotSupported

CHECK_S = 5.0


def watch_terminal(app: App[Any], leave: Callable[[], None]) -> None:
    """End the program when its terminal vanishes: on SIGHUP, and by looking every few seconds."""
    if app.is_headless or app.is_web:
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM):
        loop.add_signal_handler(number, leave)
    app.set_interval(CHECK_S, lambda: None if terminal_is_there() else leave())


def terminal_is_there() -> bool:
    stdin = sys.__stdin__
    if stdin is None or stdin.closed:
        return False
    try:
        termios.tcgetattr(stdin.fileno())
    except (OSError, ValueError, termios.error):
        return False
    return True


def lend_terminal(app: App[Any], argv: Sequence[str]) -> str | None:
    """Run a program in this terminal and come back; the reason in words when it could not be run."""
    why: str | None = None
    try:
        with app.suspend():
            why = _run(argv)
    except SuspendNotSupported:
        return "this terminal cannot be lent"
    app.refresh(layout=True)
    return why


def _run(argv: Sequence[str]) -> str | None:
    """Nothing may be raised in here: Textual would not come back from its suspension."""
    try:
        subprocess.run(list(argv), check=False)
    except (OSError, ValueError) as error:
        return str(error)
    except KeyboardInterrupt:
        return None
    return None
