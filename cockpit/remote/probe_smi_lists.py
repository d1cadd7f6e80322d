"""Process lists by `nvidia-smi`, for drivers whose own lists cannot be believed.

Runs on hosts: Python >= 3.6, stdlib only. One nvidia-smi at a time, on a thread of its own: it may
hang, and a second one beside a stuck one makes it worse.
"""

import _thread
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACES = ("/usr/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib", "/usr/local/bin", "/opt/bin")
EVERY_S = 10.0
LIMIT_S = 20
QUERY = ("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")


class Listed:
    """One process, shaped as NVML's struct is."""

    def __init__(self, pid: int, used: "int | None") -> None:
        self.pid = pid
        self.usedGpuMemory = used


def find_smi() -> "str | None":
    """nvidia-smi by PATH and by the places where images keep it; None when there is none."""
    for place in os.environ.get("PATH", "").split(":") + list(PLACES):
        path = place + "/nvidia-smi"
        if place.startswith("/") and os.access(path, os.X_OK):
            return path
    return None


class SmiLists:
    """The newest answer of nvidia-smi, asked anew in the background at most every ten seconds."""

    def __init__(self) -> None:
        self.lists = None  # type: dict[str, list[Listed]] | None
        self.busy = False
        self.asked_at = None  # type: float | None

    def of_card(self, uuid: str) -> "list[Any] | None":
        """The processes of a card; None until nvidia-smi answered."""
        now = time.monotonic()
        if not self.busy and (self.asked_at is None or now - self.asked_at >= EVERY_S):
            self.busy, self.asked_at = True, now
            _thread.start_new_thread(self._ask, ())
        return None if self.lists is None else self.lists.get(uuid, [])

    def _ask(self) -> None:
        import subprocess

        try:
            path = find_smi()
            if path is None:
                return
            done = subprocess.run(
                (path,) + QUERY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, timeout=LIMIT_S,
            )  # fmt: skip
            if done.returncode == 0:
                self.lists = parsed(done.stdout[: 1 << 20])
        except (OSError, subprocess.SubprocessError):
            pass
        finally:
            self.busy = False


def parsed(output: bytes) -> "dict[str, list[Listed]]":
    """uuid -> processes, out of CSV rows; rows that are none are skipped."""
    lists = {}  # type: dict[str, list[Listed]]
    for row in output.decode("utf-8", "replace").splitlines():
        parts = [part.strip() for part in row.split(",")]
        if len(parts) != 3 or not parts[1].isdigit() or int(parts[1]) == 0:
            continue
        used = int(parts[2]) << 20 if parts[2].isdigit() and len(parts[2]) < 9 else None
        lists.setdefault(parts[0], []).append(Listed(int(parts[1]), used))
    return lists
