"""on_incident and on_end: a person's shell text, run on this computer. Facts reach it by its environment alone.

A hook has a session of its own: one that is under way when cockpit ends goes on by itself, since it may be
what stops an instance.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cockpit.domain.text import safe_line
from cockpit.transport.own_thread import in_own_thread

log = logging.getLogger(__name__)

LIMIT_S: Final = 60.0
GRACE_S: Final = 2.0
"""Between TERM and KILL."""
AT_ONCE: Final = 4
WAITING_AT_MOST: Final = 32
PER_MINUTE: Final = 20
FACT_CHARS: Final = 500
_SAID_BYTES: Final = 2048
_KEPT: Final = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM",
        "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK",
        "COCKPIT_HOME", "VIRTUAL_ENV",
    }
)  # fmt: skip
"""Of our own environment; the rest of it may be a secret."""
RUN: Final = "COCKPIT_RUN"


@dataclass(frozen=True, slots=True)
class HookEnd:
    """How a hook went. `why` is empty when it ended with 0."""

    why: str = ""
    """exit, signal, timeout, too_many, not_started."""
    number: int | None = None
    said: str = ""
    """The last line that it printed."""

    @property
    def is_good(self) -> bool:
        return not self.why


class Hooks:
    """A few at once, and not too many a minute: an incident that comes and goes must not fork without end."""

    def __init__(
        self, now_s: Callable[[], float], environ: Mapping[str, str] | None = None
    ) -> None:
        self._now_s = now_s
        self._environ = environ
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._starts: deque[float] = deque(maxlen=PER_MINUTE)

    async def run(
        self,
        script: str,
        facts: Mapping[str, object],
        *,
        on_its_host: bool = False,
        limit_s: float = LIMIT_S,
    ) -> HookEnd:
        """`on_its_host`: the run is on this computer. What has COCKPIT_RUN in its environment there is the run
        itself and is stopped with it, so the hook has that name as a shell variable alone.
        """
        if self._waiting >= WAITING_AT_MOST or self._is_too_often():
            return HookEnd("too_many")
        self._starts.append(self._now_s())
        self._waiting += 1
        try:
            async with self._gate:
                environ = hook_environ(facts, self._environ)
                if on_its_host:
                    script = f"{RUN}=${RUN}_ID\n{script}"
                    del environ[RUN]
                return await in_own_thread(_run, script, environ, limit_s)
        finally:
            self._waiting -= 1

    def _is_too_often(self) -> bool:
        return len(self._starts) == PER_MINUTE and self._now_s() - self._starts[0] < 60.0


def hook_environ(
    facts: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Each fact as COCKPIT_NAME: one harmless line, empty where it is not known."""
    own = os.environ if environ is None else environ
    kept = {name: own[name] for name in own if name in _KEPT or name.startswith("LC_")}
    told = {
        f"COCKPIT_{name.upper()}": "" if value is None else safe_line(str(value))[:FACT_CHARS]
        for name, value in facts.items()
    }
    return {**kept, **told, f"{RUN}_ID": told.get(RUN, "")}


def _run(script: str, environ: dict[str, str], limit_s: float) -> HookEnd:
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", script],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env=environ, cwd=os.path.expanduser("~"), start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return HookEnd("not_started", said=safe_line(str(error)))
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return HookEnd("timeout", int(limit_s), _last_line(said.fileno()))
        if code < 0:
            return HookEnd("signal", -code, _last_line(said.fileno()))
        return HookEnd("exit" if code else "", code or None, _last_line(said.fileno()))


def _end(process: subprocess.Popen[bytes]) -> None:
    """The hook and what it started; its session is its process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(fd: int) -> str:
    size = os.fstat(fd).st_size
    lines = os.pread(fd, _SAID_BYTES, max(0, size - _SAID_BYTES)).splitlines()
    told = [line for line in lines if line.strip()]
    return safe_line(told[-1].decode("utf-8", "replace"))[:200] if told else ""
