"""What is to be fetched when a run ends, and what became of it: beside the run's mirror, until it is done."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from cockpit.config.paths import Home, ensure_private_dir
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.runs import RunView
from cockpit.engine.mirror import mirror_path
from cockpit.errors import StorageError

NAME = "fetch.json"
MAX_BYTES = 256 * 1024

When: TypeAlias = Literal["success", "failure", "always"]
State: TypeAlias = Literal["waiting", "done", "not_due", "refused"]


@dataclass(frozen=True, slots=True)
class FetchWish:
    cwd: str
    globs: tuple[str, ...]
    when: When
    target: str
    """Folder of this computer, the run's own."""
    max_bytes: int
    state: State = "waiting"
    said: str = ""
    """What was told at the end."""

    def is_due(self, view: RunView) -> bool:
        """Whether a run that ended so is one whose results are wanted."""
        is_good = view.exit_status == 0
        return self.when == "always" or (self.when == "success") == is_good


class FetchStore:
    def __init__(self, home: Home) -> None:
        self._home = home

    def path(self, host: HostName, run: RunId) -> Path:
        return mirror_path(self._home, host, run).with_name(NAME)

    def keep(self, host: HostName, run: RunId, wish: FetchWish) -> None:
        """Raises StorageError."""
        path = self.path(host, run)
        for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
            ensure_private_dir(folder)
        fresh = path.with_name(f"{NAME}.{os.getpid()}")
        try:
            fresh.write_text(json.dumps(asdict(wish)), encoding="utf-8")
            fresh.replace(path)
        except OSError as error:
            raise StorageError(path=str(path), why=error.strerror or str(error)) from error

    def settle(
        self, host: HostName, run: RunId, wish: FetchWish, state: State, said: str
    ) -> FetchWish:
        settled = replace(wish, state=state, said=said)
        self.keep(host, run, settled)
        return settled

    def read(self, host: HostName, run: RunId) -> FetchWish | None:
        """None where nothing is wanted, or what is there makes no sense."""
        try:
            with self.path(host, run).open("rb") as file:
                value = json.loads(file.read(MAX_BYTES))
            return FetchWish(**{**value, "globs": tuple(map(str, value["globs"]))})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def waiting(self, host: HostName) -> list[RunId]:
        """Runs of a host whose results were not fetched yet."""
        folder = self._home.root / "runs" / host
        found = sorted(path.parent.name for path in folder.glob(f"*/{NAME}"))
        runs = [RunId(name) for name in found if is_run_id(name)]
        return [run for run in runs if (wish := self.read(host, run)) and wish.state == "waiting"]

    @contextmanager
    def claimed(self, host: HostName, run: RunId) -> Iterator[bool]:
        """Whether it is ours to do: of several cockpits on this computer one fetches."""
        path = self.path(host, run).with_name("fetch.lock")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StorageError(path=str(path), why=error.strerror or str(error)) from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(fd)
