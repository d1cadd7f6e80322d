"""A folder's files by their paths, step by step and never through a link: what is there, and what it is."""

import errno
import hashlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    Signature = tuple[int, int, int]

HASH_BYTES = 1 << 20
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Blocked(OSError):
    """A part of a path is something else than a folder."""

    def __init__(self, path: bytes) -> None:
        OSError.__init__(self, errno.ENOTDIR, "not a folder")
        self.path = path


def signature(about: "os.stat_result") -> "Signature":
    """What changes when a file is written to, whatever its writer does to hide it."""
    return (about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def is_plain(path: bytes) -> bool:
    """Whether a path leads down and nowhere else."""
    parts = path.split(b"/")
    return bool(path) and b"\0" not in path and not {b"", b".", b".."} & set(parts)


def hash_of(fd: int, beat: "Callable[[], None]") -> str:
    """sha256 of a file from where it stands to its end."""
    found = hashlib.sha256()
    while True:
        data = os.read(fd, HASH_BYTES)
        if not data:
            return found.hexdigest()
        found.update(data)
        beat()


class Tree:
    """A folder that is held open. Paths are bytes below it."""

    def __init__(self, root: str, beat: "Callable[[], None]") -> None:
        self.fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.beat = beat
        self._writable = {}  # type: dict[bytes, bool]
        self._at = b""
        self._at_fd = os.dup(self.fd)

    def close(self) -> None:
        os.close(self._at_fd)
        os.close(self.fd)

    def folder(self, path: bytes, create: bool = False) -> int:
        """The folder of that path, open until the next one is asked for.

        Raises FileNotFoundError, and Blocked where something else is in the way.
        """
        if path == self._at and not create:
            return self._at_fd
        fd = os.dup(self.fd)
        done = b""
        for part in path.split(b"/") if path else []:
            done = done + b"/" + part if done else part
            try:
                if create:
                    make(part, fd)
                below = os.open(part, FOLDER_FLAGS, dir_fd=fd)
            except OSError as error:
                os.close(fd)
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise Blocked(done) from error
                raise
            os.close(fd)
            fd = below
        os.close(self._at_fd)
        self._at, self._at_fd = path, fd
        return fd

    def at(self, path: bytes, create: bool = False) -> "tuple[int, bytes]":
        """(folder, name) of a path."""
        above, _slash, name = path.rpartition(b"/")
        return self.folder(above, create), name

    def look(self, path: bytes) -> "os.stat_result | None":
        """What is there; None where nothing is. Raises Blocked."""
        try:
            fd, name = self.at(path)
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_writable(self, path: bytes) -> bool:
        """Whether something can be put at that path: asked of the nearest folder that is there."""
        above = path.rpartition(b"/")[0]
        if above not in self._writable:
            try:
                fd = self.folder(above)
            except FileNotFoundError:
                self._writable[above] = self.is_writable(above)
            except Blocked:
                return True
            else:
                may = os.access(b".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True)
                self._writable[above] = may
        return self._writable[above]

    def open(self, path: bytes) -> int:
        """A plain file, to read it."""
        fd, name = self.at(path)
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=fd)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(errno.EINVAL, "not a plain file")
        return found

    def hash(self, path: bytes) -> str:
        fd = self.open(path)
        try:
            return hash_of(fd, self.beat)
        finally:
            os.close(fd)

    def link(self, path: bytes) -> bytes:
        fd, name = self.at(path)
        return os.readlink(name, dir_fd=fd)

    def remove(self, path: bytes) -> None:
        """A file or link, and the folders above it that it leaves empty."""
        fd, name = self.at(path)
        os.unlink(name, dir_fd=fd)
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            try:
                fd, name = self.at(path)
                os.rmdir(name, dir_fd=fd)
            except OSError:
                return

    def below(self, path: bytes) -> "list[bytes]":
        """Everything in a folder that is no folder."""
        waiting, found = [path], []  # type: list[bytes], list[bytes]
        while waiting:
            path = waiting.pop()
            fd = self.folder(path)
            for entry in os.listdir(fd):
                name = os.fsencode(entry)
                inside = path + b"/" + name if path else name
                about = os.stat(name, dir_fd=fd, follow_symlinks=False)
                (waiting if stat.S_ISDIR(about.st_mode) else found).append(inside)
            self.beat()
        return found


def make(name: bytes, fd: int) -> None:
    try:
        os.mkdir(name, 0o777, dir_fd=fd)
    except FileExistsError:
        pass
