"""remote/runs.sh and its parts as one script, for a host without Python."""

from __future__ import annotations

import shlex
from functools import lru_cache
from typing import Final

from cockpit.engine.programs import REMOTE

_SERVED: Final = ("runs_processes", "runs_root", "runs_start", "runs")
_STOPPING: Final = ("runs_processes", "runs_stop")


@lru_cache(maxsize=1)
def runs_script() -> bytes:
    """What serves, with the sh of a job and the stop ladder as texts that it starts others with."""
    shim, stop = _text("runs_shim"), "\n".join(map(_text, _STOPPING))
    texts = f"ck_shim={shlex.quote(shim)}\nck_stop_program={shlex.quote(stop)}\n"
    return (texts + "\n".join(map(_text, _SERVED))).encode()


def _text(name: str) -> str:
    """A part without its comments and blank lines: it travels with every link."""
    lines = (REMOTE / f"{name}.sh").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
