"""Content on its way, each under its sha256: whole, or as much of it as came over."""

import hashlib
import os
import shutil
import stat
import subprocess
import tarfile

from courier_tree import hash_of  # type: ignore[import-not-found]
from supervisor_files import Folder, Refused  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from courier_tree import Tree

PIECE_BYTES = 256 * 1024
BASIS_FROM_BYTES = 64 * 1024
BASIS_AT_MOST_BYTES = 4 << 30


class Stage:
    def __init__(self, folder: "Folder", beat: "Callable[[], None]") -> None:
        self._folder = Folder(os.path.join(folder.path, "stage"), create=True)
        if not folder.read(".gitignore"):
            folder.replace(".gitignore", b"*\n")
        self._beat = beat
        self._sizes = {}  # type: dict[str, int]

    def close(self) -> None:
        self._folder.close()

    def free_bytes(self) -> int:
        about = os.statvfs(self._folder.fd)
        return int(about.f_bavail * about.f_frsize)

    def find_rsync(self) -> "str | None":
        return shutil.which("rsync")

    def missing(self, sizes: "dict[str, int]") -> "list[tuple[str, int]]":
        """(sha256, bytes that are here already) of what is not here as a whole."""
        self._sizes = sizes
        found = []
        for sha, size in sizes.items():
            if self._size(sha) != size:
                have = self._size(sha + ".part") or 0
                found.append((sha, have if have < size else 0))
        return found

    def wants(self, sha: str) -> bool:
        return sha in self._sizes and self._size(sha) != self._sizes[sha]

    def _size(self, name: str) -> "int | None":
        try:
            about = os.stat(name, dir_fd=self._folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return about.st_size if stat.S_ISREG(about.st_mode) else -1

    # ------------------------------------------------------------ tar

    def take(self, stream: "Any") -> "list[str]":
        """Members are called SHA256@OFFSET. Returns those that are not what their names say."""
        bad = []
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                sha, _at, offset = member.name.partition("@")
                size = self._sizes.get(sha)
                start = int(offset or "0")
                if size is None or not member.isreg() or start + member.size != size:
                    raise Refused("bad_request", text="member")
                source = archive.extractfile(member)
                if source is None or not self._take_one(source, sha, start, member.size):
                    bad.append(sha)
        return bad

    def _take_one(self, source: "Any", sha: str, start: int, count: int) -> bool:
        flags = os.O_RDWR | os.O_CREAT | (0 if start else os.O_TRUNC)
        fd = self._folder.open(sha + ".part", flags)
        try:
            found = hashlib.sha256()
            if os.fstat(fd).st_size < start:
                raise Refused("bad_request", text="offset")
            os.ftruncate(fd, start)
            for at in range(0, start, PIECE_BYTES):
                found.update(os.pread(fd, min(PIECE_BYTES, start - at), at))
            os.lseek(fd, start, os.SEEK_SET)
            while count > 0:
                data = source.read(min(PIECE_BYTES, count))
                if not data:
                    raise Refused("bad_request", text="short")
                found.update(data)
                count -= len(data)
                write_all(fd, data)
        finally:
            os.close(fd)
        return self._keep(sha + ".part", sha, found.hexdigest())

    def _keep(self, name: str, sha: str, found: str) -> bool:
        if found != sha:
            os.unlink(name, dir_fd=self._folder.fd)
            return False
        os.rename(name, sha, src_dir_fd=self._folder.fd, dst_dir_fd=self._folder.fd)
        return True

    # ------------------------------------------------------------ rsync

    def offer_basis(self, sha: str, tree: "Tree", path: bytes) -> None:
        """The old version under the name of the new one: rsync sends what differs."""
        size = self._sizes[sha]
        if size < BASIS_FROM_BYTES or self._size(sha + ".rsync") is not None:
            return
        old = tree.open(path)
        try:
            if not BASIS_FROM_BYTES <= os.fstat(old).st_size <= BASIS_AT_MOST_BYTES:
                return
            fd = self._folder.open(sha + ".rsync", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                copy(old, fd, self._beat)
            finally:
                os.close(fd)
        finally:
            os.close(old)

    def rsync(self, argv: "list[str]", out: "Callable[[bytes], None]") -> int:
        """Run the receiving rsync in the stage, on our own stdin; its exit code."""
        if not isinstance(argv, list) or argv[:2] != ["rsync", "--server"] or "--sender" in argv:
            raise Refused("bad_request", text="argv")
        found = self.find_rsync()
        if found is None:
            raise Refused("no_rsync")
        process = subprocess.Popen(
            [found] + [str(word) for word in argv[1:]], cwd=self._folder.path, stdin=0,
            stdout=subprocess.PIPE, close_fds=True,
        )  # fmt: skip
        assert process.stdout is not None
        with process.stdout:
            while True:
                data = os.read(process.stdout.fileno(), PIECE_BYTES)
                if not data:
                    break
                out(data)
        return process.wait()

    def take_over(self) -> "list[str]":
        """What of it is not what its name says, or did not come."""
        bad = []
        for sha in list(self._sizes):
            if self._size(sha + ".rsync") is None:
                if self.wants(sha):
                    bad.append(sha)
                continue
            fd = self._folder.open(sha + ".rsync", os.O_RDONLY)
            try:
                found = hash_of(fd, self._beat)
            finally:
                os.close(fd)
            if not self._keep(sha + ".rsync", sha, found):
                bad.append(sha)
        return bad

    # ------------------------------------------------------------ out of the stage

    def put(self, sha: str, is_last: bool, mode: int, folder: int, name: bytes) -> None:
        """Content to its place, in one step for whoever looks there."""
        here = sha
        if not is_last:
            here = sha + ".copy"
            source = self._folder.open(sha, os.O_RDONLY)
            fd = self._folder.open(here, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                copy(source, fd, self._beat)
            finally:
                os.close(source)
                os.close(fd)
        fd = self._folder.open(here, os.O_RDONLY)
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
        os.rename(here, name, src_dir_fd=self._folder.fd, dst_dir_fd=folder)

    def put_link(self, target: bytes, folder: int, name: bytes) -> None:
        try:
            os.unlink("link", dir_fd=self._folder.fd)
        except FileNotFoundError:
            pass
        os.symlink(target, b"link", dir_fd=self._folder.fd)
        os.rename(b"link", name, src_dir_fd=self._folder.fd, dst_dir_fd=folder)

    def clear(self) -> None:
        for name in os.listdir(self._folder.fd):
            try:
                os.unlink(name, dir_fd=self._folder.fd)
            except OSError:
                pass


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def copy(source: int, target: int, beat: "Callable[[], None]") -> None:
    while True:
        data = os.read(source, PIECE_BYTES)
        if not data:
            return
        write_all(target, data)
        beat()
