"""Which keys a host is known by: OpenSSH's files, read by our rules and written safely.

A host is looked up as `[host]:port` and as nothing else (for port 22 that is written `host`): neither its address
nor an entry without the port may vouch for another box. Ours come first: where our file knows a plain key of
the host, the person's own files are not asked for one. Authorities and revocations count from every file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from cockpit.errors import StorageError
from cockpit.transport.endpoints import DEFAULT_PORT, Endpoint
from cockpit.transport.locked_file import replace_locked

FILE_LIMIT = 16 << 20
NOT_FILES = frozenset({"/dev/null"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: who it is about (still as written) and the key, not decoded yet."""

    marker: str
    patterns: bytes
    key: bytes

    def names(self, names: Sequence[str]) -> bool:
        return any(_matches(self.patterns, name) for name in names)


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Everything that speaks for or against a host's key."""

    trusted: tuple[asyncssh.SSHKey, ...] = ()
    authorities: tuple[asyncssh.SSHKey, ...] = ()
    revoked: tuple[asyncssh.SSHKey, ...] = ()

    @property
    def fingerprints(self) -> tuple[str, ...]:
        return tuple(key.get_fingerprint("sha256") for key in self.trusted)


def written_name(host: str, port: int) -> str:
    """How OpenSSH writes a host: plain for port 22, [host]:port otherwise."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def lookup_names(host: str, port: int) -> tuple[str, ...]:
    """The only names under which a host is looked up."""
    bracketed = f"[{host.lower()}]:{port}"
    return (host.lower(), bracketed) if port == DEFAULT_PORT else (bracketed,)


def known_keys(endpoint: Endpoint, ours: Path) -> KnownKeys:
    """What all files together say about `endpoint`. A file that cannot be read says nothing."""
    names = lookup_names(endpoint.key_name, endpoint.key_port)
    own = _said_by([ours], names)
    theirs = _said_by([*endpoint.user_known_hosts, *endpoint.global_known_hosts], names)
    return KnownKeys(
        own.trusted or theirs.trusted,
        own.authorities + theirs.authorities,
        own.revoked + theirs.revoked,
    )


def record_key(file: Path, endpoint: Endpoint, key: asyncssh.SSHKey) -> None:
    """Write `key` as the one key of `endpoint`: added, or in place of what was known. Raises StorageError.

    In plain: hosts.toml beside it names the same hosts.
    """
    names = lookup_names(endpoint.key_name, endpoint.key_port)
    name = written_name(endpoint.key_name, endpoint.key_port)
    line = name.encode() + b" " + key.export_public_key("openssh").strip().split(b" ", 2)[0]
    line += b" " + base64.b64encode(key.public_data) + b"\n"

    def with_key(before: bytes) -> bytes:
        kept = b"".join(without_host(before, names))
        if kept and not kept.endswith(b"\n"):
            kept += b"\n"
        return kept + line

    try:
        replace_locked(file, with_key, FILE_LIMIT)
    except OSError as error:
        raise StorageError(path=str(file), why=error.strerror or str(error)) from error


def hashed_name(name: str, salt: bytes) -> bytes:
    """OpenSSH's hashed form (HashKnownHosts), in which a file does not list its hosts."""
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return b"|1|" + base64.b64encode(salt) + b"|" + base64.b64encode(digest)


def without_host(text: bytes, names: Sequence[str]) -> Iterator[bytes]:
    """The lines of a file without what they know of a host; other names of a shared line stay."""
    for line in text.splitlines(keepends=True):
        entry = _entry(line)
        if entry is None or entry.marker or not entry.names(names):
            yield line
            continue
        others = [part for part in entry.patterns.split(b",") if not _part_matches(part, names)]
        if any(not part.startswith(b"!") for part in others):
            yield b",".join(others) + line.lstrip()[len(entry.patterns) :]


def parse(text: bytes) -> Iterator[Entry]:
    """Every line that can be read; the others are skipped, as ssh does."""
    for line in text.splitlines():
        entry = _entry(line)
        if entry is not None:
            yield entry


def _said_by(files: Iterable[Path], names: Sequence[str]) -> KnownKeys:
    found: dict[str, list[asyncssh.SSHKey]] = {"": [], "@cert-authority": [], "@revoked": []}
    for file in files:
        for entry in parse(_read(file)):
            if entry.marker in found and entry.names(names):
                found[entry.marker] += _decoded(entry.key)
    return KnownKeys(*(tuple(keys) for keys in found.values()))


def _read(file: Path) -> bytes:
    if str(file) in NOT_FILES or not file.is_file():
        return b""
    try:
        with file.open("rb") as opened:
            return opened.read(FILE_LIMIT)
    except OSError:
        return b""


def _entry(line: bytes) -> Entry | None:
    words = line.split()
    marker = ""
    if words and words[0].startswith(b"@"):
        marker = words.pop(0).decode("ascii", "replace")
    if len(words) < 3 or words[0].startswith(b"#"):
        return None
    return Entry(marker, words[0], words[1] + b" " + words[2])


def _decoded(key: bytes) -> list[asyncssh.SSHKey]:
    try:
        return [asyncssh.import_public_key(key)]
    except (asyncssh.KeyImportError, ValueError):
        return []


def _matches(patterns: bytes, name: str) -> bool:
    """OpenSSH's rule: one pattern has to match, and no negated one."""
    if patterns.startswith(b"|"):
        return _hash_matches(patterns, name)
    if not any(sign in patterns for sign in (b"*", b"?", b"!")):
        return name.encode() in patterns.lower().split(b",")
    found = False
    for part in patterns.split(b","):
        negated = part.startswith(b"!")
        if _glob(part[1:] if negated else part).fullmatch(name.encode()):
            if negated:
                return False
            found = True
    return found


def _part_matches(part: bytes, names: Sequence[str]) -> bool:
    return any(_matches(part, name) for name in names)


def _hash_matches(hashed: bytes, name: str) -> bool:
    pieces = hashed.split(b"|")
    if len(pieces) != 4 or pieces[1] != b"1":
        return False
    try:
        salt = base64.b64decode(pieces[2], validate=True)
    except binascii.Error:
        return False
    return hmac.compare_digest(hashed_name(name, salt), hashed)


def _glob(pattern: bytes) -> re.Pattern[bytes]:
    """`*` and `?` only: brackets are part of a name."""
    escaped = re.escape(pattern.lower()).replace(rb"\*", b".*").replace(rb"\?", b".")
    return re.compile(escaped, re.DOTALL)
