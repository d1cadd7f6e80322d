"""Run a program on a pseudo-terminal and account for it: CPU of its whole tree, memory, bytes that it draws."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

_COLOURS = re.compile(rb"\x1b\[[0-9;:]*m")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
RECENT_BYTES = 1 << 16
"""What is searched for a text that is waited for: a screen and more."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program took between two moments."""

    seconds: float
    cpu_s: float
    rss_mib: float
    peak_mib: float
    """The most that was resident since the start, process by process."""
    processes: int
    drawn_bytes: int

    @property
    def cpu_pct(self) -> float:
        """Of one core."""
        return 100.0 * self.cpu_s / self.seconds

    @property
    def drawn_kb_s(self) -> float:
        return self.drawn_bytes / self.seconds / 1000.0


class OnPty:
    """A program with a terminal of its own, read by a thread so that it never waits for us."""

    def __init__(
        self, argv: Sequence[str], environ: Mapping[str, str], columns: int = 200, rows: int = 50
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._begun_s = time.perf_counter()
        self.process = subprocess.Popen(
            list(argv), stdin=slave, stdout=slave, stderr=slave, env=dict(environ),
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.drawn = 0
        self._ended = False
        self._recent = b""
        self._wanted: bytes | None = None
        self._seen = threading.Event()
        self._seen_s = 0.0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._ended:
            try:
                if not select.select([self._master], [], [], 0.2)[0]:
                    continue
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            self.drawn += len(data)
            self._recent = (self._recent + data)[-RECENT_BYTES:]
            self._look_for_it()
            self._answer(data)

    def _look_for_it(self) -> None:
        if self._wanted is None or self._seen.is_set():
            return
        if self._wanted in _COLOURS.sub(b"", self._recent):
            self._seen_s = time.perf_counter()
            self._seen.set()

    def _answer(self, data: bytes) -> None:
        """A terminal says where its cursor is and what it is when it is asked."""
        with suppress(OSError):
            if b"\x1b[6n" in data:
                os.write(self._master, b"\x1b[1;2R")
            if b"\x1b[c" in data:
                os.write(self._master, b"\x1b[?62;22c")

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait_for(self, text: bytes, limit_s: float = 60.0) -> float:
        """Seconds from the start until `text` was drawn."""
        give_up_s = time.perf_counter() + limit_s
        self._seen.clear()
        self._wanted = text
        self._look_for_it()
        while not self._seen.wait(0.2):
            if time.perf_counter() > give_up_s or self.process.poll() is not None:
                raise TimeoutError(f"{text!r} was never drawn")
        return self._seen_s - self._begun_s

    def measure(self, seconds: float) -> Cost:
        """What the whole tree takes in the next `seconds`."""
        before, drawn = tree_cost(self.process.pid), self.drawn
        begun_s = time.perf_counter()
        time.sleep(seconds)
        after, took_s = tree_cost(self.process.pid), time.perf_counter() - begun_s
        return replace(
            after, seconds=took_s, cpu_s=after.cpu_s - before.cpu_s, drawn_bytes=self.drawn - drawn
        )

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        self._ended = True
        self._reader.join(2)
        os.close(self._master)


def tree_cost(root: int) -> Cost:
    """A process, its live descendants and those it has reaped, from the start until now."""
    cost = Cost(0.0, 0.0, 0.0, 0.0, 0, 0)
    for pid in _tree(root):
        with suppress(OSError, IndexError):
            stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
            status = dict(
                line.split(b":", 1)
                for line in Path(f"/proc/{pid}/status").read_bytes().splitlines()
                if line.startswith((b"VmRSS", b"VmHWM"))
            )
            cost = replace(
                cost,
                cpu_s=cost.cpu_s + sum(map(int, stat[11:15])) * TICK_S,
                rss_mib=cost.rss_mib + _mib(status.get(b"VmRSS")),
                peak_mib=cost.peak_mib + _mib(status.get(b"VmHWM")),
                processes=cost.processes + 1,
            )
    return cost


def _mib(said: bytes | None) -> float:
    """`  1234 kB` as MiB; nothing for a process that has just ended."""
    return int(said.split()[0]) / 1024.0 if said else 0.0


def _tree(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_bytes().rpartition(b") ")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    tree, todo = [], [root]
    while todo:
        pid = todo.pop()
        tree.append(pid)
        todo += parents.get(pid, [])
    return tree
