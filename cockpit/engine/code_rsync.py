"""New code by rsync, where both ends have it, over our own connection.

rsync starts our relay where it would start ssh; the relay's bytes go through a socket that only this user can reach,
into the courier's channel: the same keys, jumps and limits as everything else. What comes over lies in the stage
under its hash, which the courier checks: rsync is not trusted with places or contents.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from cockpit.domain.text import safe_line
from cockpit.engine.bounds import end, within
from cockpit.engine.code_pack import Hashed
from cockpit.engine.courier import Courier
from cockpit.errors import CockpitError

log = logging.getLogger(__name__)

RELAY = Path(__file__).with_name("rsync_relay.py")
PIECE_BYTES = 128 * 1024
MAX_LINE_BYTES = 64 * 1024
CONNECT_S = 15.0
FAREWELL_S = 15.0
OPTIONS = (
    "-rLI", "--partial", "--compress", "--compress-level=1", "--timeout=90", "--out-format=%n",
    "--no-motd",
)  # fmt: skip


class RsyncFailed(Exception):
    """It came to nothing, and the channel is of no more use."""


@lru_cache(maxsize=1)
def has_rsync() -> bool:
    """Whether this computer has the rsync that we know, 3 or newer; other programs share the name."""
    rsync = shutil.which("rsync")
    if rsync is None or "'" in f"{sys.executable}{RELAY}":
        return False
    try:
        told = subprocess.run([rsync, "--version"], capture_output=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    name, _word, version = (told.split() + [b"", b"", b""])[:3]
    return name == b"rsync" and version[:1].isdigit() and int(version.split(b".")[0]) >= 3


async def rsync_to(
    courier: Courier, root: Path, wanted: Sequence[Hashed], progress: Callable[[int, int], None]
) -> dict[str, object]:
    """The courier's answer. Raises RsyncFailed, LinkLost, ProtocolError."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="cockpit-"))
    try:
        await asyncio.to_thread(_lay_out, folder / "files", root, wanted)
        return await _Transfer(courier, folder, wanted, progress).run()
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


def _lay_out(folder: Path, root: Path, wanted: Sequence[Hashed]) -> None:
    """Links to the files, named as the stage names their contents."""
    folder.mkdir()
    for one in wanted:
        with suppress(FileExistsError):
            os.symlink(os.path.join(os.fsencode(root), one.file.path), _name(folder, one))


def _name(folder: Path, one: Hashed) -> bytes:
    return os.fsencode(folder / f"{one.sha}.rsync")


class _Transfer:
    def __init__(
        self,
        courier: Courier,
        folder: Path,
        wanted: Sequence[Hashed],
        progress: Callable[[int, int], None],
    ) -> None:
        self._courier = courier
        self._folder = folder
        self._sizes = {f"{one.sha}.rsync": one.file.size for one in wanted}
        self._total_bytes = sum(self._sizes.values())
        self._progress = progress
        self._done_bytes = 0
        self._sent_bytes = 0
        self._mark = secrets.token_hex(16)
        self._was_asked = False
        self._relaying: asyncio.Task[None] | None = None
        self._said = ""
        self._answer: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()

    async def run(self) -> dict[str, object]:
        where = self._folder / "socket"
        server = await asyncio.start_unix_server(self._relayed, where, limit=MAX_LINE_BYTES)
        try:
            return await self._run(where)
        finally:
            server.close()
            if self._relaying is not None:
                await end(self._relaying)
            if not self._answer.cancel():
                self._answer.exception()  # told already, or nobody's business

    async def _run(self, where: Path) -> dict[str, object]:
        process = await self._start(where)
        ending = asyncio.ensure_future(self._watch(process))
        either: set[asyncio.Future[Any]] = {ending, self._answer}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._answer.done():  # its last words may have been read before ours were
                await asyncio.wait({self._answer}, timeout=FAREWELL_S if self._was_asked else 0)
            if not self._answer.done():
                raise self._failed(await ending)
            told = self._answer.result()
            code = await within(FAREWELL_S, ending)
        except asyncio.TimeoutError:
            raise self._failed(None) from None
        finally:
            await end(ending)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if code or told.get("status"):
            raise self._failed(code)
        return told

    def _failed(self, code: int | None) -> RsyncFailed:
        log.warning("rsync ended with %s: %s", code, self._said)
        return RsyncFailed(self._said)

    async def _start(self, where: Path) -> asyncio.subprocess.Process:
        relay = " ".join(f"'{word}'" for word in (sys.executable, "-I", "-S", RELAY, where))
        rsync = shutil.which("rsync") or "rsync"
        environ = {name: text for name, text in os.environ.items() if not name.startswith("RSYNC")}
        return await asyncio.create_subprocess_exec(
            rsync, *OPTIONS, "-e", relay, f"{self._folder / 'files'}/", "box:.",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env={**environ, "LC_ALL": "C"},
        )  # fmt: skip

    async def _watch(self, process: asyncio.subprocess.Process) -> int:
        """Each line of rsync's is a file that is over."""
        assert process.stdout is not None and process.stderr is not None
        errors = asyncio.ensure_future(process.stderr.read(4000))
        try:
            async for line in process.stdout:
                self._done_bytes += self._sizes.get(line.decode("ascii", "replace").strip(), 0)
                self._tell()
            self._said = safe_line((await errors).decode("utf-8", "replace"), 300)
        finally:
            await end(errors)
        return await process.wait()

    def _tell(self) -> None:
        so_far = max(self._done_bytes, self._sent_bytes)
        self._progress(min(self._total_bytes, so_far), self._total_bytes)

    # -- the relay ------------------------------------------------------------------------

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._was_asked:
            writer.close()
            return
        self._was_asked = True
        self._relaying = asyncio.current_task()
        try:
            self._answer.set_result(await self._carry(reader, writer))
        except (CockpitError, OSError, ValueError) as error:
            self._answer.set_exception(error)
        finally:
            writer.close()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, object]:
        argv = json.loads(await within(CONNECT_S, reader.readline()))
        await self._courier.tell("rsync", {"argv": argv, "mark": self._mark})
        await self._courier.answer()
        up = asyncio.ensure_future(self._up(reader))
        try:
            async for data in self._courier.chunks():
                with suppress(OSError):
                    writer.write(data)
                    await writer.drain()
            writer.close()
            with suppress(asyncio.TimeoutError):
                await within(FAREWELL_S, asyncio.shield(up))
        finally:
            await end(up)
        await self._courier.write(f"\n{self._mark}\n".encode())
        told, _none = await self._courier.answer()
        return told

    async def _up(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE_BYTES):
                await self._courier.write(data)
                self._sent_bytes += len(data)
                self._tell()
