"""A rented box for tests: a real sshd on loopback whose connections can be cut, and desks that know it."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.desk import Desk, until
from tests.servers import Identity, OpenSshServer, openssh


@dataclass
class Rented:
    desk: Desk
    sshd: OpenSshServer
    key: Identity

    def log_of(self, run: str) -> Path:
        (found,) = (self.sshd.folder / "home").glob(f"**/v1/*/{run}/log")
        return found

    def runs(self, name: str) -> list[Path]:
        return list((self.sshd.folder / "home").glob(f"**/v1/*/{name}-*"))

    def is_on_disk(self, name: str) -> bool:
        """Whether a run of that profile has its job, as its host records it."""
        found = self.runs(name)
        with suppress(OSError, ValueError, IndexError):
            return "job_pid" in json.loads((found[0] / "sup.json").read_bytes())
        return False

    def left_of(self, run: str) -> list[int]:
        """What of the run's processes lives."""
        return self.desk.of_run(run)

    async def cut(self) -> None:
        """Kill what serves the connections, and wait until they are served again."""
        await until(self.sshd.children, "a connection")
        before = set(self.sshd.children())
        self.sshd.kill_connections(signal.SIGKILL)
        await until(lambda: set(self.sshd.children()) - before, "a new connection")

    def desk_of(self, folder: Path) -> Desk:
        """A computer that knows the host and has the key."""
        made = Desk(folder)
        made.hosts(
            f'[hosts.box]\nhost = "127.0.0.1"\nport = {self.sshd.port}\nuser = "{self.sshd.user}"\n'
            f'identity = "{self.key.file}"\n'
        )
        (made.home / "known_hosts").write_text(self.sshd.known_hosts_line)
        return made


@asynccontextmanager
async def rented_box(tmp_path: Path) -> AsyncIterator[Rented]:
    key = Identity.make(tmp_path / "id_test")
    async with openssh(tmp_path / "sshd", authorized=[key]) as sshd:
        made = Rented(Desk(tmp_path / "desk"), sshd, key)
        made.desk = made.desk_of(tmp_path / "desk")
        yield made
        assert await made.desk.clear() == [], "the test left processes"
