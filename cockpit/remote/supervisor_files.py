"""Files of ours on a host: folders that nobody else can change, records written in place, locks."""

import errno
import fcntl
import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

MIB = 1 << 20
RECORD_BYTES = {
    "exit": 512,
    "exit.shim": 512,
    "stop.json": 512,
    "go.json": 512,
    "hook": 512,
    "hb": 2048,
    "sup.json": 8192,
}
RECORD_BYTES["events.jsonl"] = 128 * 256


class Refused(Exception):
    """A request that is answered with a code and facts instead of a result."""

    def __init__(self, code: str, **facts: "Any") -> None:
        Exception.__init__(self, code)
        self.code = code
        self.facts = facts


# ---------------------------------------------------------------- text, files, folders


def to_bytes(text: str) -> bytes:
    """UTF-8 whatever the locale: Python 3.6 under LC_ALL=C would take ASCII only."""
    return text.encode("utf-8", "surrogateescape")


def to_path(text: str) -> str:
    """A path of a request as this interpreter names files, `~` expanded."""
    return os.path.expanduser(os.fsdecode(to_bytes(text)))


def read_file(path: str, limit: int = 65536) -> bytes:
    """At most `limit` bytes of a file; nothing when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return read_descriptor(fd, limit)
    finally:
        os.close(fd)


def read_descriptor(fd: int, limit: int) -> bytes:
    parts, left = [], limit
    try:
        while left > 0:
            part = os.read(fd, min(left, 65536))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    except OSError:
        pass
    return b"".join(parts)


def parse_object(data: bytes) -> "Json":
    """The JSON object in a record; an empty or torn one is an empty object."""
    try:
        value = json.loads(data.decode("utf-8", "replace").strip(" \0\n") or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class Folder:
    """A directory that is ours alone, held open so that a changed path cannot lead us elsewhere."""

    def __init__(self, path: str, create: bool = False) -> None:
        self.path = path
        if create:
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                pass
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(self.fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            self.close()
            raise Refused("unsafe_folder", path=path)

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def open(self, name: str, flags: int) -> int:
        """A plain file of this folder, never through a link."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(name, flags, 0o600, dir_fd=self.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a plain file", name)
        return fd

    def read(self, name: str, limit: int = 65536) -> bytes:
        try:
            fd = self.open(name, os.O_RDONLY)
        except OSError:
            return b""
        try:
            return read_descriptor(fd, limit)
        finally:
            os.close(fd)

    def record(self, name: str) -> "Json":
        """What a record says; read again once, in case it was being written."""
        return parse_object(self.read(name)) or parse_object(self.read(name))

    def allocate(self, name: str) -> None:
        """Give a record its blocks now, while there is room."""
        self._write(name, os.O_CREAT | os.O_EXCL, b" " * (RECORD_BYTES[name] - 1) + b"\n")

    def write_record(self, name: str, value: "Json", durable: bool = True) -> None:
        """Overwrite a record in place: no new block is needed, whatever the disk's state."""
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        size = RECORD_BYTES[name] - 1
        self._write(name, 0, data.ljust(size)[:size] + b"\n", durable)

    def clear_record(self, name: str) -> None:
        """Make a record as empty as it was allocated."""
        self._write(name, 0, b" " * (RECORD_BYTES[name] - 1) + b"\n")

    def create(self, name: str, data: bytes) -> None:
        self._write(name, os.O_CREAT | os.O_EXCL, data)

    def replace(self, name: str, data: bytes) -> None:
        """A new version of a file, all of it or none."""
        temporary = "%s.%d" % (name, os.getpid())
        self._write(temporary, os.O_CREAT | os.O_TRUNC, data)
        os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def renew_record(self, name: str) -> None:
        """As empty as new, in a folder of an older version too."""
        try:
            self.clear_record(name)
        except FileNotFoundError:
            self.allocate(name)

    def _write(self, name: str, flags: int, data: bytes, durable: bool = True) -> None:
        fd = self.open(name, os.O_WRONLY | flags)
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(fd, data[done:], done)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)

    def is_held(self, name: str) -> bool:
        """Whether someone alive holds the exclusive lock on a file. Asked by a shared lock, so that
        two who ask do not take each other for the holder."""
        try:
            fd = self.open(name, os.O_RDWR)
        except OSError:
            return False
        try:
            return not try_lock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)


def try_lock(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise


def lock_within(fd: int, limit_s: float) -> bool:
    """Take an exclusive lock that others hold for an instant only."""
    until = time.monotonic() + limit_s
    while not try_lock(fd):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
