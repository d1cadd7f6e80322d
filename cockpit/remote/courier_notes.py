"""What was sent into a folder, by path, and where files go that give way to it."""

import json
import os
import time

from courier_tree import Tree, is_plain  # type: ignore[import-not-found]
from supervisor_files import Folder, to_bytes  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[str, tuple[int, int, int], bool]

MAX_NOTES_BYTES = 256 << 20


class Kept:
    """Where files go that give way; made when the first one does."""

    def __init__(self, folder: "Folder") -> None:
        self._folder = folder
        self._stamp = time.strftime("%Y%m%d-%H%M%S") + "-%d" % os.getpid()
        self.count = 0

    def move(self, tree: "Tree", path: bytes) -> None:
        place = os.path.join(os.fsencode(self._folder.path), b"kept", os.fsencode(self._stamp))
        target = os.path.join(place, path)
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        fd, name = tree.at(path)
        os.rename(name, target, src_dir_fd=fd)
        self.count += 1


class Notes:
    """What was sent into a folder, by path: what it was, and how the file looked when it was in place."""

    def __init__(self, folder: "Folder", name: str) -> None:
        self._folder = folder
        self._name = name
        self._files = {}  # type: dict[bytes, Row]
        self._placing = {}  # type: dict[bytes, str]
        self._read()

    def _read(self) -> None:
        try:
            value = json.loads(self._folder.read(self._name, MAX_NOTES_BYTES).decode() or "{}")
            for path, row in value.get("files", {}).items():
                size, mtime, ctime = row[1]
                self._files[to_bytes(path)] = (str(row[0]), (size, mtime, ctime), bool(row[2]))
            for path, content in value.get("placing", {}).items():
                self._placing[to_bytes(path)] = str(content)
        except (AttributeError, IndexError, TypeError, ValueError):
            self._files, self._placing = {}, {}  # spoilt: what is there counts as not ours

    def paths(self) -> "list[bytes]":
        return sorted(path for path in set(self._files) | set(self._placing) if is_plain(path))

    def contents(self, path: bytes) -> "list[str]":
        """What a file of ours may be: as it was sent, or as it was just being sent."""
        noted = [self._files[path][0]] if path in self._files else []
        return noted + ([self._placing[path]] if path in self._placing else [])

    def content_if_untouched(self, path: bytes, seen: "tuple[int, int, int]") -> "str | None":
        content, looked, _is_adopted = self._files.get(path, ("", None, False))
        return content if looked == seen else None

    def is_adopted(self, path: bytes) -> bool:
        """It was there already, with the content that we would have sent."""
        return path in self._files and self._files[path][2]

    def begin(self, placing: "dict[bytes, str]") -> None:
        """A stop in the middle leaves files that are known to be ours."""
        self._placing = placing
        self._write()

    def replace(self, rows: "dict[bytes, Row]") -> None:
        self._files, self._placing = rows, {}
        self._write()

    def _write(self) -> None:
        value = {
            "version": 1,
            "files": {to_text(path): row for path, row in self._files.items()},
            "placing": {to_text(path): content for path, content in self._placing.items()},
        }
        self._folder.replace(self._name, json.dumps(value).encode())


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
