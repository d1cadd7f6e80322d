"""What drawing a log costs: the log view on a pty, 50 000 lines a second, against the same app without lines."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time

from cockpit.engine.api import LogLine

LINES_PER_S = 50_000
KEPT = 100_000
TEXT = (
    "{'loss': 1.8342, 'grad_norm': 0.7132, 'learning_rate': 8.1e-05, 'epoch': 0.41, 'step': %d}"
    + " x" * 25
)


class SyntheticLog:
    """Grows by the clock and costs nothing until a line is read."""

    open_text = ""
    ended = False

    def __init__(self, lines_per_s: int) -> None:
        self._rate = lines_per_s
        self._began_s = time.monotonic()
        self.total_lines = 0
        self.reads = 0

    def grow(self) -> None:
        self.total_lines = int((time.monotonic() - self._began_s) * self._rate)

    @property
    def version(self) -> int:
        return self.total_lines

    @property
    def first_number(self) -> int:
        return max(1, self.total_lines - KEPT + 1)

    @property
    def total_bytes(self) -> int:
        return self.total_lines * 150

    def __len__(self) -> int:
        return min(self.total_lines, KEPT)

    def line(self, position: int) -> LogLine:
        self.reads += 1
        number = self.first_number + position
        return LogLine(number, number * 150, TEXT % number)

    def close(self) -> None:
        """Nothing is held."""


def child(seconds: float, lines_per_s: int) -> None:
    """The app under test; its last words go to the file descriptor 3."""
    from textual.app import App, ComposeResult

    from cockpit.widgets.log_pane import LogPane

    log = SyntheticLog(lines_per_s)
    spent: list[float] = []

    class Bench(App[None]):
        def compose(self) -> ComposeResult:
            yield LogPane("log")

        def on_mount(self) -> None:
            pane = self.query_one(LogPane)
            pane.view.show(log)
            pane.view.focus()
            self.set_interval(0.05, log.grow)
            self.set_timer(2.0, lambda: spent.append(time.process_time()))
            self.set_timer(2.0 + seconds, self.finish)

        def finish(self) -> None:
            spent.append(time.process_time())
            self.exit()

    Bench().run()
    facts = {"cpu_s": spent[1] - spent[0], "lines": log.total_lines, "reads": log.reads}
    os.write(3, json.dumps(facts).encode())


def measure(seconds: float, lines_per_s: int) -> dict[str, float]:
    """CPU seconds and terminal bytes of one child on a pty of 200x50."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    read_end, write_end = os.pipe()
    script = f"import os; os.dup2({write_end}, 3); from benchmarks.log_view import child; child({seconds}, {lines_per_s})"
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=slave, stdout=slave, stderr=slave, pass_fds=(write_end, 3) if write_end == 3 else (write_end,),
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    os.close(write_end)
    written = 0

    def drain() -> None:
        nonlocal written
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:
                return
            if not data:
                return
            written += len(data)

    thread = threading.Thread(target=drain, daemon=True)
    thread.start()
    facts: dict[str, float] = json.loads(os.read(read_end, 4096) or b"{}")
    process.wait(timeout=20)
    os.close(read_end)
    os.close(master)
    return {**facts, "terminal_kb_s": written / 1000 / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    idle = measure(seconds, 0)
    flood = measure(seconds, LINES_PER_S)
    drawing = (flood["cpu_s"] - idle["cpu_s"]) / seconds
    print(f"log view, 200x50 pty, {LINES_PER_S} lines/s for {seconds:.0f} s")
    print(f"  drawing            {drawing:6.1%} of a core  (to reach: 10 %)")
    print(
        f"  whole app          {flood['cpu_s'] / seconds:6.1%} of a core, idle {idle['cpu_s'] / seconds:.1%}"
    )
    print(f"  lines              {flood['lines']:,.0f} arrived, {flood['reads']:,.0f} read")
    print(f"  terminal           {flood['terminal_kb_s']:6.1f} kB/s")


if __name__ == "__main__":
    main()
