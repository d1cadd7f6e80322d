"""A copy of a recording without the names of hosts, users and addresses: one that can be shown to strangers."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cockpit.domain.recording import BadLine, header_record, parsed
from cockpit.domain.redaction import Redactor
from cockpit.engine.recording_mask import every_text
from cockpit.engine.recording_read import Recording
from cockpit.errors import StorageError, UsageError

_HOST_KEYS: Final = frozenset({"hostname", "address"})
_USER_KEYS: Final = frozenset({"user"})
_DROPPED: Final = frozenset({"fingerprint", "known_fingerprint"})
_DEEPEST: Final = 12


def write_redacted(recording: Recording, target: Path) -> None:
    """Never replaces a file. Raises UsageError, StorageError."""
    redactor = _learnt(recording)
    header = header_record(replace(recording.header, redacted=True))
    lines = [header, *(told for frame in recording.frames if (told := _told(frame.line)))]
    try:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError("file_exists", path=str(target)) from None
    except OSError as error:
        raise StorageError(path=str(target), why=error.strerror or str(error)) from error
    try:
        with os.fdopen(fd, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            for told in lines:
                packed.write(_redacted(told, redactor) + b"\n")
    except OSError as error:
        raise StorageError(path=str(target), why=error.strerror or str(error)) from error


def _redacted(told: dict[str, Any], redactor: Redactor) -> bytes:
    kept = {name: value for name, value in told.items() if name not in _DROPPED}
    return json.dumps(every_text(kept, redactor.text), separators=(",", ":")).encode()


def _learnt(recording: Recording) -> Redactor:
    redactor = Redactor()
    redactor.hosts(one.name for one in recording.header.hosts)
    redactor.users(one.user for one in recording.header.hosts)
    for frame in recording.frames:
        redactor.hosts([frame.host])
        if frame.kind in ("wire", "full", "link"):
            for kind, name in _named(_told(frame.line)):
                (redactor.hosts if kind in _HOST_KEYS else redactor.users)([name])
    return redactor


def _named(value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """What a frame calls a host's own name, an address, a user."""
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str) and (key in _HOST_KEYS or key in _USER_KEYS):
                yield key, one
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    if depth < _DEEPEST:
        for one in inner:
            yield from _named(one, depth + 1)


def _told(line: bytes) -> dict[str, Any]:
    try:
        return dict(parsed(line))
    except BadLine:
        return {}
