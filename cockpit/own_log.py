"""cockpit.log in the home: what went wrong inside, for whoever mends it; never on stderr, where a screen may be."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from cockpit.config.paths import Home
from cockpit.domain.text import safe_line
from cockpit.errors import CockpitError

MAX_BYTES = 4 << 20
"""From here on the log begins anew, and the one before is kept beside it."""


def keep_log(home: Home | None = None) -> None:
    """Send what our loggers, asyncio and the libraries have to say to the home's log, and only there."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, _OwnLog):
            root.removeHandler(handler)
    root.addHandler(_OwnLog(home))


def append(text: str, home: Home | None = None) -> Path:
    """Add lines to the log, and return where it is. Raises OSError, StorageError."""
    log = (home or Home.from_environ()).log
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _begin_anew(log)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    with os.fdopen(fd, "ab") as stream:
        stream.write(_harmless(text).encode("utf-8", "backslashreplace"))
    return log


def _begin_anew(log: Path) -> None:
    try:
        if log.stat().st_size > MAX_BYTES:
            os.replace(log, log.with_suffix(".log.1"))
    except FileNotFoundError:
        return


def _harmless(text: str) -> str:
    """Hosts' words are in it, and somebody will `cat` it."""
    return "".join(safe_line(line) + "\n" for line in text.splitlines())


class _OwnLog(logging.Handler):
    def __init__(self, home: Home | None) -> None:
        super().__init__(logging.WARNING)
        self._home = home
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """A log that cannot be written is no reason to fail, nor to speak."""
        try:
            append(self.format(record), self._home)
        except (CockpitError, OSError):
            return
