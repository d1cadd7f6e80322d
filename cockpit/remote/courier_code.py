"""A run's code on its way into a folder: what is there is compared, what is new is staged, then all is put in place.

CWD/.cockpit-code/           0700, ours
  sent-SOURCE.json           what we put here and how it looked then: by it we know a file that was changed since
  stage/                     content under its sha256; `.part` and `.rsync` are under way
  kept/TIME/                 files that gave way, when the profile says so
  lock                       flock, held while code is on its way
"""

import errno
import json
import os
import re
import stat
import time
import zlib

from courier_notes import Kept, Notes, to_text  # type: ignore[import-not-found]
from courier_stage import Stage  # type: ignore[import-not-found]
from courier_tree import Blocked, Tree, is_plain, signature  # type: ignore[import-not-found]
from supervisor_files import Folder, Refused, lock_within, to_bytes, to_path  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Json = dict[str, Any]
    Row = tuple[str, tuple[int, int, int], bool]

OURS = b".cockpit-code"
SOURCE = re.compile(r"[0-9a-f]{8,64}$")
SHA = re.compile(r"[0-9a-f]{64}$")
LOCK_S = 75.0
"""Longer than a courier that lost its client stays."""
MAX_CONFLICTS = 1000


class Wanted:
    """One file or link that is to be there."""

    def __init__(self, index: int, row: "list[Any]") -> None:
        path, mode, size, sha, link = row
        self.index = index
        self.path = to_bytes(path)
        self.mode = int(mode) & 0o777
        self.size = int(size)
        self.sha = sha
        self.link = None if link is None else to_bytes(link)
        self.seen = None  # type: tuple[int, int, int] | None
        if not is_plain(self.path) or self.path.split(b"/")[0] == OURS:
            raise Refused("bad_request", text="path")
        if self.link is None and (not isinstance(sha, str) or not SHA.match(sha)):
            raise Refused("bad_request", text="sha")

    @property
    def content(self) -> str:
        """What its content is called in our notes."""
        return str(self.sha) if self.link is None else "link:" + str(to_text(self.link))


class Code:
    """One source's code in one folder, under its lock."""

    def __init__(self, request: "Json", body: bytes, beat: "Callable[[], None]") -> None:
        if not SOURCE.match(str(request["source"])):
            raise Refused("bad_request", text="source")
        self.root = os.path.realpath(to_path(request["cwd"]))
        os.makedirs(self.root, exist_ok=True)
        rows = json.loads(zlib.decompress(body).decode())
        self.wanted = [Wanted(index, row) for index, row in enumerate(rows)]
        self.replaces = bool(request.get("replaces"))
        self.tree = Tree(self.root, beat)
        self.folder = Folder(os.path.join(self.root, os.fsdecode(OURS)), create=True)
        self._lock = self._locked()
        self.stage = Stage(self.folder, beat)
        self.notes = Notes(self.folder, "sent-%s.json" % request["source"])
        self.doomed = []  # type: list[bytes]
        """Files of ours, as we left them, that the source no longer has."""
        self.orphans = 0
        self.ready = []  # type: list[Wanted]
        self.needed = []  # type: list[Wanted]
        self.blocked = {}  # type: dict[bytes, str]

    def close(self) -> None:
        self.stage.close()
        self.folder.close()
        self.tree.close()
        os.close(self._lock)

    def _locked(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open("lock", flags, 0o600, dir_fd=self.folder.fd)
        until = time.monotonic() + LOCK_S
        try:
            while time.monotonic() < until:
                if lock_within(fd, 0.5):
                    return fd
                self.tree.beat()
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                return fd  # a network folder without locks
            os.close(fd)
            raise
        os.close(fd)
        raise Refused("busy", path=self.root)

    # ------------------------------------------------------------ what is there

    def compare(self) -> "tuple[Json, bytes]":
        """What has to be sent, and what stands in the way."""
        self._find_doomed()
        conflicts = []
        for wanted in self.wanted:
            why = self._judge(wanted)
            if (
                why is None
                and wanted in self.needed[-1:]
                and not self.tree.is_writable(wanted.path)
            ):
                why = "locked"
            if why is not None:
                conflicts.append([wanted.index, why])
                self.blocked[wanted.path] = why
        missing = self.stage.missing({item.sha: item.size for item in self.needed if item.sha})
        by_sha = {item.sha: item.index for item in self.needed}
        fields = {
            "root": to_text(os.fsencode(self.root)),
            "unchanged": len(self.ready),
            "gone": len(self.doomed),
            "orphans": self.orphans,
            "free": self.stage.free_bytes(),
            "rsync": self.stage.find_rsync(),
            "conflict_count": len(conflicts),
        }
        answer = {
            "need": [[by_sha[sha], have] for sha, have in missing],
            "conflicts": conflicts[:MAX_CONFLICTS],
        }
        return fields, json.dumps(answer).encode()

    def _find_doomed(self) -> None:
        kept = {item.path for item in self.wanted}
        for path in self.notes.paths():
            if path in kept:
                continue
            if not self.notes.is_adopted(path) and self._is_as_sent(path):
                self.doomed.append(path)
            elif self._look(path) is not None:
                self.orphans += 1

    def _look(self, path: bytes) -> "os.stat_result | None":
        about = None  # type: os.stat_result | None
        try:
            about = self.tree.look(path)
        except Blocked:
            pass
        return about

    def _is_as_sent(self, path: bytes) -> bool:
        about = self._look(path)
        if about is None:
            return False
        return self._content(path, about) in self.notes.contents(path)

    def _content(self, path: bytes, about: "os.stat_result") -> "str | None":
        """What is there now, by our notes where the file was not touched since."""
        if stat.S_ISLNK(about.st_mode):
            return "link:" + str(to_text(self.tree.link(path)))
        if not stat.S_ISREG(about.st_mode):
            return None
        noted = self.notes.content_if_untouched(path, signature(about))
        return noted or str(self.tree.hash(path))

    def _judge(self, wanted: "Wanted") -> "str | None":
        """Sort one into ready or needed; or why it must not be put there."""
        try:
            about = self.tree.look(wanted.path)
        except Blocked as blocked:
            if blocked.path not in self.doomed:
                return self._unless_replaced(wanted, "through")
            about = None
        if about is None:
            self.needed.append(wanted)
            return None
        wanted.seen = signature(about)
        if stat.S_ISDIR(about.st_mode):
            inside = self.tree.below(wanted.path)
            if inside and set(inside) <= set(self.doomed):
                self.needed.append(wanted)
                return None
            return self._unless_replaced(wanted, "folder")
        return self._judge_file(wanted, about)

    def _judge_file(self, wanted: "Wanted", about: "os.stat_result") -> "str | None":
        known = self.notes.contents(wanted.path)
        may_be = wanted.link is not None or about.st_size == wanted.size or bool(known)
        content = self._content(wanted.path, about) if may_be else None
        if content == wanted.content:
            self.ready.append(wanted)
            return None
        if content is not None and content in known:
            self.needed.append(wanted)
            return None
        return self._unless_replaced(wanted, "changed" if known else "not_ours")

    def _unless_replaced(self, wanted: "Wanted", why: str) -> "str | None":
        if not self.replaces:
            return why
        self.needed.append(wanted)
        wanted.seen = None
        return None

    # ------------------------------------------------------------ what comes

    def take(self, stream: "Any") -> "Json":
        return {"bad": self._indices(self.stage.take(stream))}

    def rsync(self, argv: "list[str]", out: "Callable[[bytes], None]") -> int:
        """Old versions are laid ready first: of a large file only what differs travels."""
        for wanted in self.needed:
            if wanted.sha and wanted.seen and self.stage.wants(wanted.sha):
                self.stage.offer_basis(wanted.sha, self.tree, wanted.path)
        return int(self.stage.rsync(argv, out))

    def take_over(self) -> "list[int]":
        """Of what rsync brought, that which is not what was announced."""
        return self._indices(self.stage.take_over())

    def _indices(self, shas: "list[str]") -> "list[int]":
        return [item.index for item in self.needed if item.sha in shas]

    # ------------------------------------------------------------ putting in place

    def place(self) -> "Json":
        """Everything, or nothing: only when all content is here is the first file touched."""
        missing = self.stage.missing({item.sha: item.size for item in self.needed if item.sha})
        if missing or self.blocked:
            raise Refused("incomplete", count=len(missing) + len(self.blocked))
        self.notes.begin({item.path: item.content for item in self.needed})
        kept = Kept(self.folder)
        for path in self.doomed:
            self._remove(path)
        uses = {}  # type: dict[str, int]
        for item in self.needed:
            uses[item.sha] = uses.get(item.sha, 0) + 1
        for item in self.needed:
            uses[item.sha] -= 1
            self._put(item, kept, is_last=not uses[item.sha])
            self.tree.beat()
        for item in self.ready:
            self._set_mode(item)
        self._note()
        self.stage.clear()
        return {"placed": len(self.needed), "removed": len(self.doomed), "kept": kept.count}

    def _remove(self, path: bytes) -> None:
        try:
            self.tree.remove(path)
        except (OSError, Blocked):
            pass  # it is gone already, or its folder is

    def _put(self, item: "Wanted", kept: "Kept", is_last: bool) -> None:
        self._make_way(item, kept)
        fd, name = self.tree.at(item.path, create=True)
        if item.link is not None:
            self.stage.put_link(item.link, fd, name)
        else:
            self.stage.put(item.sha, is_last, permissions(item.mode), fd, name)

    def _make_way(self, item: "Wanted", kept: "Kept") -> None:
        """Whatever is there and was not there when we looked, or is not ours, is kept."""
        while True:
            try:
                about = self.tree.look(item.path)
            except Blocked as blocked:
                kept.move(self.tree, blocked.path)
                continue
            break
        if about is not None and (stat.S_ISDIR(about.st_mode) or item.seen != signature(about)):
            kept.move(self.tree, item.path)

    def _set_mode(self, item: "Wanted") -> None:
        about = self.tree.look(item.path)
        if about is None or item.link is not None or not stat.S_ISREG(about.st_mode):
            return
        if (about.st_mode ^ permissions(item.mode)) & 0o111:
            fd = self.tree.open(item.path)
            try:
                os.fchmod(fd, permissions(item.mode))
            finally:
                os.close(fd)

    def _note(self) -> None:
        """What was there before us, and was the same, stays when the source lets go of it."""
        rows = {}  # type: dict[bytes, Row]
        found = {item.path for item in self.ready}
        for item in self.wanted:
            about = self._look(item.path)
            if about is not None:
                is_new = item.path in found and not self.notes.contents(item.path)
                is_adopted = is_new or (item.path in found and self.notes.is_adopted(item.path))
                rows[item.path] = (item.content, signature(about), is_adopted)
        self.notes.replace(rows)


def permissions(mode: int) -> int:
    """As sent, within what new files may have here."""
    return mode & ~UMASK | 0o400


UMASK = os.umask(0o077)
os.umask(UMASK)
