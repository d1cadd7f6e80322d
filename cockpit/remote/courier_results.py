"""A run's results: which files of its folder match, and the bytes of one from an offset."""

import hashlib
import json
import os
import re
import stat
import time

from courier_tree import Tree, is_plain  # type: ignore[import-not-found]
from supervisor_files import Refused, to_bytes, to_path  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

    Json = dict[str, Any]

MAX_LOOKED = 2000000
LOOK_S = 300.0
PIECE_BYTES = 256 * 1024


class Search:
    """A walk through the folders in which a match may be. Links are neither followed nor taken."""

    def __init__(self, request: "Json", beat: "Callable[[], None]") -> None:
        self._tree = Tree(os.path.realpath(to_path(request["cwd"])), beat)
        patterns = [re.compile(to_bytes(text), re.DOTALL) for text in request["patterns"]]
        self._patterns = patterns
        self._starts = [to_bytes(start) for start in request["starts"]]
        self.most = int(request["most"])
        self._until = time.monotonic() + LOOK_S
        self._looked = 0
        self.found = {}  # type: dict[bytes, os.stat_result]
        self.links = 0
        self.is_cut = False

    def run(self) -> None:
        try:
            for start in self._starts:
                if start == b"" or is_plain(start):
                    self._walk(start)
        finally:
            self._tree.close()

    def _walk(self, start: bytes) -> None:
        waiting = [start]
        while waiting and not self.is_cut:
            path = waiting.pop()
            try:
                fd = self._tree.folder(path)
                names = os.listdir(fd)
            except OSError:  # gone, not readable, a link: nothing to find there
                continue
            for text in names:
                name = os.fsencode(text)
                self._look(fd, path + b"/" + name if path else name, name, waiting)
            self._tree.beat()

    def _look(self, fd: int, path: bytes, name: bytes, waiting: "list[bytes]") -> None:
        self._looked += 1
        if self._looked > MAX_LOOKED or time.monotonic() > self._until:
            self.is_cut = True
            return
        try:
            about = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISDIR(about.st_mode):
            if name != b".cockpit-code":
                waiting.append(path)
        elif any(pattern.match(path) for pattern in self._patterns):
            if stat.S_ISREG(about.st_mode):
                self.found[path] = about
                self.is_cut = self.is_cut or len(self.found) > self.most
            else:
                self.links += 1


def find_results(request: "Json", beat: "Callable[[], None]") -> "tuple[Json, bytes]":
    search = Search(request, beat)
    search.run()
    rows = [
        [path.decode("utf-8", "surrogateescape"), about.st_size, about.st_mtime_ns]
        for path, about in sorted(search.found.items())[: search.most]
    ]
    return {"cut": search.is_cut, "links": search.links}, json.dumps(rows).encode()


class Result:
    """One file that is read out. Its whole hash is told at the end, whatever the offset."""

    def __init__(self, fd: int, offset: int, most: int, beat: "Callable[[], None]") -> None:
        self._fd = fd
        self._offset = offset
        self._most = most
        self._before = os.fstat(fd)
        self._hash = hashlib.sha256()
        self._beat = beat

    def close(self) -> None:
        os.close(self._fd)

    def head(self) -> "Json":
        """The size is what the file has now: if it grows, that is not part of this."""
        left = min(self._offset, self._before.st_size)
        while left > 0:
            data = os.read(self._fd, min(PIECE_BYTES, left))
            if not data:
                break
            self._hash.update(data)
            left -= len(data)
            self._beat()
        return {"size": self._before.st_size, "mtime_ns": self._before.st_mtime_ns}

    def pieces(self) -> "Iterator[bytes]":
        left = min(self._most, self._before.st_size) - self._offset
        while left > 0:
            data = os.read(self._fd, min(PIECE_BYTES, left))
            if not data:
                return
            self._hash.update(data)
            left -= len(data)
            yield data

    def foot(self) -> "Json":
        after = os.fstat(self._fd)
        same = (after.st_size, after.st_mtime_ns) == (
            self._before.st_size,
            self._before.st_mtime_ns,
        )
        return {"sha256": self._hash.hexdigest(), "changed": not same}


def open_result(request: "Json", beat: "Callable[[], None]") -> "Result":
    path = to_bytes(request["path"])
    if not is_plain(path):
        raise Refused("bad_request", text="path")
    tree = Tree(os.path.realpath(to_path(request["cwd"])), beat)
    try:
        offset, most = int(request["offset"]), int(request["most"])
        return Result(tree.open(path), offset, most, beat)
    finally:
        tree.close()
