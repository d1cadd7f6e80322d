"""Whether a run is started again when its job has ended, and when. Decided on the host: laptops sleep."""

import os
import time

from supervisor_files import Folder  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

CAP_S = 600.0
"""A pause doubles from attempt to attempt, up to this or to a longer first one."""
ATTEMPTS = "attempts"
SERVER_ENDED = "server_ended"


class Restarts:
    """The policy of a spec. A lost run has no recorded end, and is none of ours: a client starts it again."""

    def __init__(self, spec: "Json") -> None:
        given = spec.get("restart") or {}
        self.on = given.get("on") or "never"
        self.limit = int(given.get("max") or 0) if self.on != "never" else 0
        self._backoff_s = float(given.get("backoff_s") or 0.0)
        self._is_server = spec.get("expect") == "server"

    def judged(self, ended: "Json") -> "Json":
        """A server that ends with code 0 while nobody asked it to has failed all the same."""
        if self._is_server and ended["by"] == "job" and ended["code"] == 0:
            ended["reason"] = SERVER_ENDED
        return ended

    def wanted(self, attempt: int, ended: "Json") -> bool:
        """Only from a recorded end that nobody asked for. `attempt` counts from 1."""
        if attempt > self.limit or ended["by"] != "job":
            return False
        failed = ended["code"] != 0 or ended["reason"] == SERVER_ENDED
        return self.on == "always" or (self.on == "on-failure" and failed)

    def pause_s(self, attempt: int) -> float:
        doubled = self._backoff_s * 2.0 ** min(attempt - 1, 20)
        return min(doubled, max(CAP_S, self._backoff_s))


def claim_attempt(run: "Folder", number: int) -> None:
    """Make an attempt ours. Raises FileExistsError when another has begun it."""
    with Folder(os.path.join(run.path, ATTEMPTS), create=True) as folder:
        fd = folder.open("%d" % number, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(fd, b"%d %.3f\n" % (os.getpid(), time.time()))
        except OSError:
            pass  # a full disk: the name is the claim
        finally:
            os.close(fd)
