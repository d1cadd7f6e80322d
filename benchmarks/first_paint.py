"""Time from start to the first painted screen on a pty: cockpit against an empty Textual app, in turns."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.on_pty import OnPty

ROUNDS = 9
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("painted")
Empty().run()
"""


def seconds_to(argv: list[str], text: bytes, environ: dict[str, str]) -> float:
    program = OnPty(argv, environ, 120, 40)
    try:
        return program.wait_for(text)
    finally:
        program.end()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as folder:
        home = Path(folder)
        (home / "hosts.toml").write_text('[hosts.gone]\nhost = "127.0.0.1"\nport = 9\n')
        environ = {**os.environ, "COCKPIT_HOME": folder, "TERM": "xterm-256color"}
        environ["COLORTERM"] = "truecolor"
        ours, empty = [], []
        for _ in range(ROUNDS):
            empty.append(seconds_to([sys.executable, "-c", EMPTY], b"painted", environ))
            ours.append(seconds_to([sys.executable, "-m", "cockpit"], b"cockpit", environ))
    ratios = [mine / base for mine, base in zip(ours, empty, strict=True)]
    print(f"first paint, median of {ROUNDS}: {statistics.median(ours) * 1000:.0f} ms")
    print(f"an empty Textual app:         {statistics.median(empty) * 1000:.0f} ms")
    print(f"ratio, pair by pair, median: {statistics.median(ratios):.2f} (to reach: 1.5)")


if __name__ == "__main__":
    main()
