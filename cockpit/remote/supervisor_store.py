"""Where runs are kept on a host, and how one is found again."""

import json
import os
import re
import stat

from supervisor_files import Folder, Refused, parse_object, to_path  # type: ignore[import-not-found]
from supervisor_host import check_space, host_id  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    Json = dict[str, Any]

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}$")
ROOT_FREE_MIB = 256
START_FREE_MIB = 16
MAX_RUNS = 2000


def checked_id(request: "Json") -> str:
    """The run that a request names. Raises Refused for what no run is called."""
    run = request.get("run")
    if not isinstance(run, str) or not RUN_ID.match(run):
        raise Refused("unknown_run", run=str(run)[:80])
    return run


class Store:
    """The folders that may hold runs of this host, and the choice of one for a new run."""

    def __init__(self, given: "str | None" = None) -> None:
        self.host = host_id()
        self.given = given

    def candidates(self) -> "Iterator[str]":
        """In the order of preference: what the platform keeps over a stop, then the user's own state."""
        for hint in ("/root/autodl-tmp", "/workspace", "/home/featurize/work"):
            if os.path.isdir(hint) and os.access(hint, os.W_OK | os.X_OK):
                yield os.path.join(hint, ".cockpit")
        state = os.environ.get("XDG_STATE_HOME", "")
        if os.path.isabs(state):
            yield os.path.join(state, "cockpit")
        home = os.path.expanduser("~")
        if os.path.isabs(home):
            yield os.path.join(home, ".local", "state", "cockpit")
        for shared in ("/var/tmp", "/tmp"):
            yield os.path.join(shared, "cockpit-%d" % os.geteuid())

    def choose(self, given: "str | None" = None) -> str:
        """The folder of this host's runs in the first root that will do; a given one must do."""
        given = given or self.given
        if given is not None:
            root = os.path.realpath(to_path(given))
            try:
                folder = self._make(root)
            except OSError as error:
                raise Refused("run_root", path=root, why=error.strerror or str(error)) from error
            check_space(folder, START_FREE_MIB)
            self._remember(root)
            return folder
        return self._choose_default()

    def _choose_default(self) -> str:
        refusal = Refused("run_root", path="", why="no candidate")
        for root in self.candidates():
            try:
                folder = self._make(root)
                check_space(folder, ROOT_FREE_MIB)
                return folder
            except OSError as error:
                refusal = Refused("run_root", path=root, why=error.strerror or str(error))
            except Refused as error:
                refusal = error
        raise refusal

    def _make(self, root: str) -> str:
        os.makedirs(os.path.dirname(root), 0o700, exist_ok=True)
        try:
            os.mkdir(root, 0o700)
        except FileExistsError:
            pass
        status = os.lstat(root)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.geteuid()):
            raise Refused("unsafe_folder", path=root)
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            raise Refused("unsafe_folder", path=root)
        path = root
        for name in ("v1", self.host):
            path = os.path.join(path, name)
            Folder(path, create=True).close()
        return path

    def _remember(self, root: str) -> None:
        """Note a root that only its spec names, so that an agent that is told nothing finds it."""
        try:
            with Folder(self._choose_default()) as folder:
                roots = self._noted(folder)
                if root not in roots:
                    data = json.dumps({"roots": (roots + [root])[-50:]}).encode()
                    folder.replace("roots.json", data)
        except (OSError, Refused):
            pass

    @staticmethod
    def _noted(folder: "Folder") -> "list[str]":
        roots = parse_object(folder.read("roots.json")).get("roots")
        return [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []

    def roots(self) -> "list[str]":
        """Every root that may hold runs, whether or not there is room for more."""
        found = [os.path.realpath(to_path(self.given))] if self.given else []
        found.extend(self.candidates())
        for root in list(found):
            try:
                with Folder(os.path.join(root, "v1", self.host)) as folder:
                    found.extend(self._noted(folder))
            except (OSError, Refused):
                pass
        return list(dict.fromkeys(found))

    def find(self, run: str) -> "Run":
        """Raises Refused when there is none."""
        for root in self.roots():
            for host in [self.host] + self._other_hosts(root):
                try:
                    return Run(os.path.join(root, "v1", host, run), self.host)
                except (OSError, Refused):
                    pass
        raise Refused("unknown_run", run=run)

    def _other_hosts(self, root: str) -> "list[str]":
        try:
            return [name for name in os.listdir(os.path.join(root, "v1")) if name != self.host]
        except OSError:
            return []

    def newest(self) -> "dict[str, int]":
        """Folders of this host's runs with their inodes, the newest first."""
        found = []
        for root in self.roots():
            try:
                with Folder(os.path.join(root, "v1", self.host)) as folder:
                    for entry in os.scandir(folder.path):
                        if RUN_ID.match(entry.name):
                            status = entry.stat(follow_symlinks=False)
                            found.append((status.st_mtime, entry.path, status.st_ino))
            except (OSError, Refused):
                pass
        found.sort(reverse=True)
        return {path: inode for _made, path, inode in found[:MAX_RUNS]}
