"""What drawing a log costs: the log view on a pty, 50 000 lines a second, against the same app without lines."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.on_pty import OnPty
from cockpit.engine.api import LogLine

LINES_PER_S = 50_000
SECONDS = 10.0
WARM_UP_S = 2.0
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


def child(lines_per_s: int, answer: Path) -> None:
    """The app under test; at its end it writes what it took to `answer`."""
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
            self.set_timer(WARM_UP_S, lambda: spent.append(time.process_time()))
            self.set_timer(WARM_UP_S + SECONDS, self.finish)

        def finish(self) -> None:
            spent.append(time.process_time())
            self.exit()

    Bench().run()
    facts = {"cpu_s": spent[1] - spent[0], "lines": log.total_lines, "reads": log.reads}
    answer.write_text(json.dumps(facts))


def measure(lines_per_s: int, folder: Path) -> dict[str, float]:
    """What one child took on a pty of 200x50."""
    answer = folder / "answer"
    argv = [sys.executable, "-m", "benchmarks.log_view", str(lines_per_s), str(answer)]
    environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    program = OnPty(argv, environ, 200, 50)
    try:
        program.process.wait(WARM_UP_S + SECONDS + 20.0)
        facts: dict[str, float] = json.loads(answer.read_text())
    finally:
        program.end()
    return {**facts, "drawn_kb_s": program.drawn / 1000.0 / (WARM_UP_S + SECONDS)}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as folder:
        idle = measure(0, Path(folder))
        flood = measure(LINES_PER_S, Path(folder))
    drawing = (flood["cpu_s"] - idle["cpu_s"]) / SECONDS
    print(f"log view, 200x50 pty, {LINES_PER_S:,} lines/s for {SECONDS:.0f} s")
    print(f"drawing:   {drawing:.1%} of a core (to reach: 10 %)")
    print(
        f"whole app: {flood['cpu_s'] / SECONDS:.1%} of a core, {idle['cpu_s'] / SECONDS:.1%} without lines"
    )
    print(f"lines:     {flood['lines']:,.0f} arrived, {flood['reads']:,.0f} read")
    print(f"drawn:     {flood['drawn_kb_s']:.1f} kB/s")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
