"""The terminal itself: leave when it is gone, and lend it to an editor or a shell."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App, SuspendNotSupported

CHECK_S = 5.0
GONE_LIMIT_S = 6.0
"""For an orderly end without a terminal; Textual's writer may wait for ever on one that takes no bytes."""
HUNG_UP = 128 + signal.SIGHUP


def watch_terminal(app: App[Any], leave: Callable[[], None]) -> None:
    """End the program when its terminal vanishes: on SIGHUP, and by looking every few seconds."""
    if app.is_headless or app.is_web:
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        _end_for_sure()
        leave()

    loop.add_signal_handler(signal.SIGTERM, leave)
    loop.add_signal_handler(signal.SIGHUP, gone)
    app.set_interval(CHECK_S, lambda: None if terminal_is_there() else gone())


def _end_for_sure() -> None:
    """Nobody sees this process any more: end it even if its farewell hangs. Runs on hosts go on."""
    timer = threading.Timer(GONE_LIMIT_S, os._exit, (HUNG_UP,))
    timer.daemon = True
    timer.start()


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
