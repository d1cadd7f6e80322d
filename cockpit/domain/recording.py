"""The form of a recording: JSON lines, a header first. See docs/recordings.md. Pure: text in, values out.

A recording is as untrusted as a host: whoever reads one takes it for what a stranger sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.domain.units import LATEST_S

VERSION: Final = 1
SUFFIX: Final = ".cockpit.gz"
PART: Final = ".part"
"""Ends the name of a recording that is still being written, or whose writer died."""
LINE_LIMIT: Final = 1 << 20
MOST_HOSTS: Final = 256
MOST_SPAN_S: Final = 26 * 3600.0
"""No frame of a recording is further than this from its first one."""
END_KIND: Final = "end"
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class RecordedHost:
    """What hosts.toml said of a host: what screens show of it, and no way to reach it."""

    name: HostName
    user: str | None = None
    platform: str | None = None
    price_per_h: float | None = None
    currency: str | None = None
    tags: tuple[str, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class Occasion:
    """The incident that a recording was made for."""

    key: str
    at_s: float
    host: HostName | None
    family: str
    signature: str
    severity: str


@dataclass(frozen=True, slots=True)
class Header:
    hosts: tuple[RecordedHost, ...]
    occasion: Occasion | None = None
    made_by: str = ""
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One line: when, what kind, about which host, and the line itself, parsed anew when it is played."""

    at_s: float
    kind: str
    host: HostName | None
    line: bytes


class BadLine(ValueError):
    """A line that no recorder writes; the text says why."""


def header_record(header: Header) -> dict[str, object]:
    one = header.occasion
    return {
        "cockpit": "recording",
        "version": VERSION,
        "made_by": header.made_by,
        "redacted": header.redacted,
        "incident": None
        if one is None
        else {name: getattr(one, name) for name in Occasion.__slots__},
        "hosts": [
            {**{name: getattr(host, name) for name in RecordedHost.__slots__}, "tags": [*host.tags]}
            for host in header.hosts
        ],
    }


def read_header(line: bytes) -> Header:
    """Raises BadLine."""
    told = parsed(line)
    if told.get("cockpit") != "recording":
        raise BadLine("it is no recording of cockpit")
    version = told.get("version")
    if version != VERSION or isinstance(version, bool):
        raise BadLine(
            f"its version is {safe_line(str(version), 20)}, and this cockpit reads {VERSION}"
        )
    listed = told.get("hosts")
    hosts = [_host(one) for one in listed[:MOST_HOSTS]] if isinstance(listed, list) else []
    known = {one.name: one for one in hosts if one is not None}
    return Header(
        tuple(known.values()),
        _occasion(told.get("incident")),
        text_of(told.get("made_by"), 40) or "",
        told.get("redacted") is True,
    )


def read_frame(line: bytes) -> Frame:
    """Raises BadLine. Kinds that are not known are frames too: who plays them skips them."""
    told = parsed(line)
    at_s, kind = told.get("t"), told.get("k")
    if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not 0 <= at_s < LATEST_S:
        raise BadLine("a frame without its time")
    if not isinstance(kind, str):
        raise BadLine("a frame without its kind")
    host = text_of(told.get("host"), 255)
    return Frame(float(at_s), kind[:40], None if host is None else HostName(host), line)


def parsed(line: bytes) -> Mapping[str, object]:
    """Raises BadLine."""
    if len(line) > LINE_LIMIT:
        raise BadLine("longer than 1 MiB")
    try:
        told = json.loads(line.decode("utf-8", "replace"), parse_constant=_refused)
    except (ValueError, RecursionError):
        raise BadLine("no JSON") from None
    if not isinstance(told, dict):
        raise BadLine("no JSON object")
    return told


def file_stem(utc: str, host: str | None, family: str, signature: str) -> str:
    """`20261201T055100Z-vast-a-gpu_oom-torch-oom`: what it holds, in letters that any disk takes."""
    words = (_NAME.sub("-", word).strip("-.")[:48] for word in (host or "", family, signature))
    return "-".join([utc, *(word for word in words if word)])


def text_of(value: object, limit: int) -> str | None:
    return (safe_line(value[: 8 * limit], limit) or None) if isinstance(value, str) else None


def number_of(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e15 else None  # type: ignore[arg-type]


def _refused(constant: str) -> object:
    raise ValueError(constant)


def _host(told: object) -> RecordedHost | None:
    if not isinstance(told, dict) or (name := text_of(told.get("name"), 255)) is None:
        return None
    tags: Sequence[object] = told["tags"] if isinstance(told.get("tags"), list) else ()
    price = number_of(told.get("price_per_h"))
    return RecordedHost(
        HostName(name),
        text_of(told.get("user"), 64),
        text_of(told.get("platform"), 32),
        price if price is not None and 0 <= price < 1e6 else None,
        text_of(told.get("currency"), 8),
        tuple(word for tag in tags[:16] if (word := text_of(tag, 40)) is not None),
        told.get("local") is True,
    )


def _occasion(told: object) -> Occasion | None:
    if not isinstance(told, dict):
        return None
    key, at_s, host = text_of(told.get("key"), 400), number_of(told.get("at_s")), told.get("host")
    if key is None or at_s is None or at_s < 0:
        return None
    name = text_of(host, 255)
    words = (text_of(told.get(word), 64) or "" for word in ("family", "signature", "severity"))
    return Occasion(key, at_s, None if name is None else HostName(name), *words)
