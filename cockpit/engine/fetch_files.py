"""Results from a host into a folder of this computer: named and sized by the host, so nothing of it is believed.

A file that is here is never written over. What came over before a link broke is gone on from, and the whole is
checked by its hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cockpit.domain.code_files import shown
from cockpit.domain.globs import compiled, glob_pattern, glob_start, may_be_written
from cockpit.domain.run_spec import Json
from cockpit.domain.units import bytes_text
from cockpit.engine.courier import Courier, OpenCourier, Refusal
from cockpit.engine.fetch_disk import (
    PARTS,
    UMASK,
    hash_of,
    hash_of_file,
    make_target,
    moved,
    size_of,
    storage_error,
    tidy,
    write_all,
)
from cockpit.engine.fetch_store import FetchWish
from cockpit.errors import ProtocolError, RunError, StorageError
from cockpit.transport.base import HostTransport

OnProgress = Callable[[int, int], None]

MOST_FILES = 20_000
MOST_LIST_BYTES = 16 << 20
NAMED = 5


@dataclass(frozen=True, slots=True)
class Result:
    path: bytes
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Fetched:
    """What came of it; the names are harmless to show."""

    files: int = 0
    total_bytes: int = 0
    new_bytes: int = 0
    """What came over in this try."""
    beside: int = 0
    """Put under another name, since a file of that name is here and is another."""
    changed: list[str] = field(default_factory=list)
    """They changed while they were read, twice."""
    failed: list[str] = field(default_factory=list)
    odd_names: int = 0
    links: int = 0


class Fetching:
    """One fetching of one run's results; tried again by whoever owns it."""

    def __init__(
        self, transport: HostTransport, python: str | None, open_courier: OpenCourier
    ) -> None:
        self._transport = transport
        self._python = python
        self._open = open_courier
        self._host = str(transport.host)

    async def fetch(self, wish: FetchWish, progress: OnProgress) -> Fetched:
        """Raises RunError, StorageError, NoPython, TransportError."""
        courier = Courier(await self._open(self._transport, self._python), self._host)
        try:
            return await self._fetch(courier, wish, progress)
        except Refusal as refusal:
            text = refusal.facts.get("text") or refusal.code.replace("_", " ")
            raise RunError("fetch_refused", host=self._host, text=text) from refusal
        finally:
            await courier.close()

    async def _fetch(self, courier: Courier, wish: FetchWish, progress: OnProgress) -> Fetched:
        fetched = Fetched()
        results = await self._find(courier, wish, fetched)
        total_bytes = fetched.total_bytes = sum(result.size for result in results)
        if not results:
            return fetched
        target = Path(wish.target)
        await asyncio.to_thread(make_target, target, total_bytes, self._host)
        done_bytes = 0
        for result in results:
            progress(done_bytes, total_bytes)
            one = _One(courier, wish.cwd, target, result, fetched)
            await one.bring(lambda more, done=done_bytes: progress(done + more, total_bytes))  # type: ignore[misc]
            done_bytes += result.size
        progress(total_bytes, total_bytes)
        await asyncio.to_thread(tidy, target)
        return fetched

    async def _find(self, courier: Courier, wish: FetchWish, fetched: Fetched) -> list[Result]:
        fields: dict[str, Json] = {
            "cwd": wish.cwd,
            "patterns": [glob_pattern(glob) for glob in wish.globs],
            "starts": _least({glob_start(glob) for glob in wish.globs}),
            "most": MOST_FILES,
        }
        told, body = await courier.ask("find", fields, most_bytes=MOST_LIST_BYTES)
        results, fetched.odd_names = await asyncio.to_thread(self._read, body, wish)
        links = told.get("links")
        fetched.links = links if isinstance(links, int) and links > 0 else 0
        total_bytes = sum(result.size for result in results)
        if told.get("cut") is True or len(results) > MOST_FILES or total_bytes > wish.max_bytes:
            raise self._too_large(results, wish, total_bytes)
        return results

    def _read(self, body: bytes, wish: FetchWish) -> tuple[list[Result], int]:
        """The files that were asked for under names that may be written, and how many others there were."""
        wanted, results, odd = compiled(wish.globs), {}, 0
        try:
            for name, size, mtime_ns in json.loads(body):
                path = name.encode("utf-8", "surrogateescape")
                if not all(isinstance(n, int) and 0 <= n < 1 << 62 for n in (size, abs(mtime_ns))):
                    raise ValueError("no size")
                if wanted.match(path) and may_be_written(path):
                    results[path] = Result(path, size, mtime_ns)
                else:
                    odd += 1
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise ProtocolError(host=self._host, why="results") from error
        return list(results.values()), odd

    def _too_large(self, results: Sequence[Result], wish: FetchWish, total_bytes: int) -> RunError:
        largest = sorted(results, key=lambda result: -result.size)[:NAMED]
        return RunError(
            "fetch_too_large",
            host=self._host,
            files=len(results),
            size=bytes_text(total_bytes),
            limit=f"{bytes_text(wish.max_bytes)}, {MOST_FILES} files",
            largest=", ".join(f"{shown(one.path)} {bytes_text(one.size)}" for one in largest),
        )


class _One:
    """One file on its way."""

    def __init__(
        self, courier: Courier, cwd: str, target: Path, result: Result, fetched: Fetched
    ) -> None:
        self._courier = courier
        self._cwd = cwd
        self._target = target
        self._result = result
        self._fetched = fetched
        self._place = os.path.join(os.fsencode(target), result.path)

    async def bring(self, progress: Callable[[int], None]) -> None:
        for _try in range(2):
            try:
                if await self._bring(progress):
                    return
            except Refusal:
                break  # it went away, or cannot be read
            except OSError as error:
                raise storage_error(self._place, error) from error
            self._part().unlink(missing_ok=True)
        else:
            self._fetched.changed.append(shown(self._result.path))
            return
        self._fetched.failed.append(shown(self._result.path))

    def _part(self) -> Path:
        about = f"{self._result.size}-{self._result.mtime_ns}"
        name = hashlib.sha256(self._result.path + about.encode()).hexdigest()[:32]
        return self._target / PARTS / name

    async def _bring(self, progress: Callable[[int], None]) -> bool:
        """False when it changed on the way."""
        whole = size_of(self._place)
        if whole == self._result.size and await self._is_here(whole):
            return True
        part = self._part()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(part, flags, 0o600)
        try:
            if not await self._received(fd, progress):
                return False
            os.fsync(fd)
            os.fchmod(fd, 0o666 & ~UMASK)
        finally:
            os.close(fd)
        self._settle(part)
        return True

    async def _is_here(self, size: int) -> bool:
        """Whether the file of that name holds the same; nothing of it is sent."""
        found = await asyncio.to_thread(hash_of_file, self._place)
        sha, _same = await self._read(size, None, lambda _more: None)
        if sha == found:
            self._fetched.files += 1
        return sha == found

    async def _received(self, fd: int, progress: Callable[[int], None]) -> bool:
        size = min(os.fstat(fd).st_size, self._result.size)
        os.ftruncate(fd, size)
        found = await asyncio.to_thread(hash_of, fd, size)
        offset = size

        def take(data: bytes) -> None:
            nonlocal offset
            found.update(data)
            write_all(fd, data, offset)
            offset += len(data)
            progress(offset)

        sha, is_same = await self._read(size, self._result.size, take)
        self._fetched.new_bytes += offset - size
        return is_same and offset == self._result.size and sha == found.hexdigest()

    async def _read(
        self, offset: int, most: int | None, take: Callable[[bytes], None]
    ) -> tuple[str, bool]:
        """(hash of the whole file, whether it stayed as it was listed)."""
        path = self._result.path.decode("utf-8", "surrogateescape")
        fields: dict[str, Json] = {
            "cwd": self._cwd, "path": path, "offset": offset, "most": self._result.size,
        }  # fmt: skip
        head, _none = await self._courier.ask("read", fields)
        is_same = (head.get("size"), head.get("mtime_ns")) == (
            self._result.size,
            self._result.mtime_ns,
        )
        room = (most or offset) - offset
        async for data in self._courier.chunks():
            room -= len(data)
            if room >= 0:
                take(data)
            else:
                raise ProtocolError(host=str(self._courier.host), why="longer")
        foot, _none = await self._courier.answer()
        return str(foot.get("sha256")), is_same and foot.get("changed") is False

    def _settle(self, part: Path) -> None:
        """From the parts to its name, or to the next free one."""
        parent = os.path.dirname(self._place)
        os.makedirs(parent, exist_ok=True)
        root = os.path.realpath(os.fsencode(self._target))
        if not (os.path.realpath(parent) + b"/").startswith(root + b"/"):
            raise StorageError(path=os.fsdecode(parent), why="leads out of the folder")
        for number in range(1000):
            name = self._place + (b"" if not number else b".%d" % number)
            if not moved(part, name):
                continue
            self._fetched.files += 1
            self._fetched.beside += number > 0
            return
        raise StorageError("file_exists", path=shown(self._place))


def _least(starts: set[str]) -> list[str]:
    """Without those that lie below another: no folder is looked at twice."""
    return [
        start
        for start in sorted(starts)
        if not any(start != one and (not one or start.startswith(one + "/")) for one in starts)
    ]
