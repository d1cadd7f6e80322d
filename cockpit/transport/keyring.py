"""The client's key files: read once, shared by every connection; locked ones are opened when a host asks for them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import struct
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from cockpit.transport.own_thread import in_own_thread

FILE_LIMIT = 256 * 1024
_OPENSSH_MAGIC = b"openssh-key-v1\0"


@dataclass(frozen=True, slots=True)
class KeyFile:
    """What a file holds. Without `key` it is locked, or only the public half is here."""

    path: Path
    key: asyncssh.SSHKey | None = None
    public: asyncssh.SSHKey | None = None
    locked: bytes | None = None
    """The encrypted key as it was read."""
    certificate: asyncssh.SSHCertificate | None = None

    @property
    def blob(self) -> bytes | None:
        """The public half as agents and servers name it; None where it can only be seen unlocked."""
        known = self.key or self.public
        return known.public_data if known else None


def unlock(file: KeyFile, passphrase: str) -> asyncssh.SSHKey | None:
    """The key, or None when the passphrase does not open it. Slow by design (KDF): call it in a thread."""
    assert file.locked is not None
    try:
        return asyncssh.import_private_key(file.locked, passphrase)
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError, ValueError):
        return None


def read_key_file(path: Path) -> KeyFile | None:
    """The file, or None when there is nothing in it that can be used. A missing one is not an error in ssh."""
    data = _read(path)
    beside = _public_beside(path)
    if data is None:
        return KeyFile(path, public=beside) if beside else None
    certificate = _certificate_beside(path)
    if b"PRIVATE KEY" not in data[:4096]:
        public = _public(data)
        return KeyFile(path, public=public, certificate=certificate) if public else None
    is_locked, public = _peek(data)
    if is_locked:
        return KeyFile(path, public=public or beside, locked=data, certificate=certificate)
    try:
        return KeyFile(path, key=asyncssh.import_private_key(data), certificate=certificate)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError):
        return None


class KeyRing:
    """Every key file that was asked for, as long as it stays the same file on disk."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[tuple[int, int, int], KeyFile | None]] = {}
        self._opened: dict[bytes, asyncssh.SSHKey] = {}
        self._reading: dict[Path, asyncio.Task[KeyFile | None]] = {}

    async def file(self, path: Path) -> KeyFile | None:
        mark = _mark(path)
        held = self._files.get(path)
        if held is not None and held[0] == mark:
            return held[1]
        task = self._reading.get(path)
        if task is None or task.done():
            task = asyncio.create_task(in_own_thread(read_key_file, path))
            self._reading[path] = task
        found = await asyncio.shield(task)
        self._reading.pop(path, None)
        self._files[path] = (mark, found)
        return found

    def opened(self, file: KeyFile) -> asyncssh.SSHKey | None:
        """The key of a locked file that a person has opened before."""
        return self._opened.get(file.locked) if file.locked else None

    async def open(self, file: KeyFile, passphrase: str) -> asyncssh.SSHKey | None:
        """Try a passphrase; the opened key stays in memory, the passphrase does not."""
        key = await in_own_thread(unlock, file, passphrase)
        if key is not None and file.locked is not None:
            self._opened[file.locked] = key
        return key


def _mark(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as opened:
            return opened.read(FILE_LIMIT)
    except OSError:
        return None


def _public(data: bytes) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.import_public_key(data)
    except (asyncssh.KeyImportError, ValueError):
        return None


def _public_beside(path: Path) -> asyncssh.SSHKey | None:
    data = _read(path.with_name(path.name + ".pub"))
    return _public(data) if data else None


def _certificate_beside(path: Path) -> asyncssh.SSHCertificate | None:
    name = path.name.removesuffix(".pub")
    data = _read(path.with_name(name + "-cert.pub"))
    return read_certificate(data) if data else None


def read_certificate(data: bytes) -> asyncssh.SSHCertificate | None:
    try:
        return asyncssh.import_certificate(data)
    except (asyncssh.KeyImportError, ValueError):
        return None


def _peek(data: bytes) -> tuple[bool, asyncssh.SSHKey | None]:
    """Whether a private key is encrypted, and its public half where the format leaves that readable."""
    if b"BEGIN OPENSSH PRIVATE KEY" not in data:
        return b"ENCRYPTED" in data, None
    body = data.partition(b"PRIVATE KEY-----")[2].partition(b"-----END")[0]
    try:
        raw = base64.b64decode(b"".join(body.split()), validate=True)
        return _peek_openssh(raw)
    except (binascii.Error, struct.error, ValueError):
        return False, None


def _peek_openssh(raw: bytes) -> tuple[bool, asyncssh.SSHKey | None]:
    if not raw.startswith(_OPENSSH_MAGIC):
        return False, None
    at = len(_OPENSSH_MAGIC)
    fields: list[bytes] = []
    for name in ("cipher", "kdf", "kdf options", "count", "public"):
        if name == "count":
            at += 4
            continue
        (size,) = struct.unpack_from(">I", raw, at)
        fields.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    cipher, public = fields[0], fields[3]
    line = _algorithm(public) + b" " + base64.b64encode(public)
    return cipher != b"none", _public(line)


def _algorithm(blob: bytes) -> bytes:
    (size,) = struct.unpack_from(">I", blob, 0)
    return blob[4 : 4 + size]
