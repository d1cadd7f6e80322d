"""Run a program on a pseudo-terminal and account for it: CPU of its whole tree, memory, bytes that it draws."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program took between two moments."""

    seconds: float
    cpu_s: float
    rss_mib: float
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
        self.process = subprocess.Popen(
            list(argv), stdin=slave, stdout=slave, stderr=slave, env=dict(environ),
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.drawn = 0
        self.screen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                if not select.select([self._master], [], [], 0.5)[0]:
                    continue
                data = os.read(self._master, 1 << 16)
            except (OSError, ValueError):
                return
            if not data:
                return
            self.drawn += len(data)
            self.screen = (self.screen + data)[-(1 << 20) :]
            self._answer(data)

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
        """Seconds until `text` was drawn."""
        begun_s = time.perf_counter()
        while text not in self.screen:
            if time.perf_counter() - begun_s > limit_s or self.process.poll() is not None:
                raise TimeoutError(f"{text!r} was never drawn")
            time.sleep(0.0005)
        return time.perf_counter() - begun_s

    def measure(self, seconds: float) -> Cost:
        """What the whole tree takes in the next `seconds`."""
        cpu_before, _, _ = tree_cost(self.process.pid)
        drawn, begun_s = self.drawn, time.perf_counter()
        time.sleep(seconds)
        cpu_after, rss_mib, processes = tree_cost(self.process.pid)
        took_s = time.perf_counter() - begun_s
        return Cost(took_s, cpu_after - cpu_before, rss_mib, processes, self.drawn - drawn)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        os.close(self._master)


def tree_cost(root: int) -> tuple[float, float, int]:
    """(CPU seconds, resident MiB, processes) of a process, its live descendants and those it has reaped."""
    cpu_s, rss_mib, count = 0.0, 0.0, 0
    for pid in _tree(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
            pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
        except (OSError, IndexError):
            continue
        cpu_s += sum(map(int, fields[11:15])) * TICK_S
        rss_mib += pages * PAGE_MIB
        count += 1
    return cpu_s, rss_mib, count


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
