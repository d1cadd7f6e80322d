"""The three standard streams of a command: whole when it begins, and no reason to fail when it ends."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


def make_sound() -> None:
    """Open those that were closed on nothing, so that no file of ours takes their number.

    What stdout's encoding cannot write is written as an escape, as stderr does by itself.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def talk(text: str) -> None:
    """Say it on stderr; when nobody can hear it, the exit code has to do."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        forget(2)


def forget(number: int) -> None:
    """Point a stream at nothing, so that the interpreter's last flush does not complain."""
    with suppress(OSError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, number)
        os.close(sink)


def have_a_screen() -> bool:
    """Whether there is a terminal to draw on and to type in, or a browser that stands for one."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    return sys.stdin.isatty() and sys.stderr.isatty()
