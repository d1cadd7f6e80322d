"""A host's folder for code, served by the real courier under a Python of one's choice, over plain pipes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from cockpit.domain.models import HostName
from cockpit.engine.code_list import CodeWish, plan_code
from cockpit.engine.code_pack import Hashed, hashed
from cockpit.engine.code_sync import CodeSent, CodeSync
from cockpit.engine.courier import Courier
from cockpit.errors import LinkLost
from cockpit.transport.base import ByteChannel, HostTransport
from tests.agents import PipeChannel

COURIER = Path(__file__).parents[2] / "cockpit" / "remote" / "courier.py"


class Cut(PipeChannel):
    """A connection that breaks when so many bytes have gone over it."""

    left: int | None = None

    async def write(self, data: bytes) -> None:
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                self.process.kill()
                raise LinkLost(host="box", why="cut")
        await super().write(data)

    async def close(self) -> None:
        if self.process.returncode is None:
            await super().close()
        else:
            self._stdin.close()


@dataclass
class CodeHost:
    """`folder` is the working folder there, `root` the code here."""

    base: Path
    python: str = sys.executable
    environ: Mapping[str, str] = field(default_factory=dict)
    cut_after_bytes: int | None = None
    progress: list[tuple[int, int]] = field(default_factory=list)
    host: HostName = HostName("box")
    lets_go: bool = True
    last: CodeSync | None = None

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    @property
    def root(self) -> Path:
        return self.base / "here"

    @property
    def folder(self) -> Path:
        return self.base / "there"

    async def open(self, _transport: object = None, _python: object = None) -> ByteChannel:
        process = await asyncio.create_subprocess_exec(
            self.python, "-sSE", str(COURIER), "serve",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": str(self.base), **self.environ},
        )  # fmt: skip
        channel = Cut(process)
        channel.left, self.cut_after_bytes = self.cut_after_bytes, None
        return channel

    async def courier(self) -> Courier:
        return Courier(await self.open(), "box")

    async def send(
        self, files: tuple[Hashed, ...] | None = None, root: Path | None = None, **wish: object
    ) -> CodeSent:
        made = CodeWish(root or self.root, str(self.folder), by_git=False)
        plan = plan_code(replace(made, **wish))  # type: ignore[arg-type]
        sync = CodeSync(cast(HostTransport, self), None, self.open)
        told = self.progress
        sending = sync.send(
            plan, files or hashed(plan), lambda done, total: told.append((done, total))
        )
        sent = await asyncio.wait_for(sending, 60)
        self.last = sync
        if self.lets_go:
            await sync.let_go()
        return sent

    def there(self) -> dict[str, str]:
        """The files of the working folder by name, ours aside; links as `-> target`."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if path.is_symlink():
                found[name] = f"-> {os.readlink(path)}"
            elif path.is_file() and not name.startswith(".cockpit-code/"):
                found[name] = path.read_text()
        return found

    def staged(self) -> list[str]:
        return sorted(os.listdir(self.folder / ".cockpit-code" / "stage"))


def put(root: Path, name: str, text: str = "x") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
