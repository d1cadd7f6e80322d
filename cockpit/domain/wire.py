"""Lines of a probe in, values out: the one place where what a host says of itself is believed.

A probe writes one JSON object a line and says only what it read or what changed since:
    {"k":"hello","v":1,"interval":1.0,"facts":{…}}
    {"k":"sample","seq":3,"at":wall seconds,"mono":seconds,"source":"nvml","host":{…},"cards":[0,1],
     "gpus":[{"index":0,"util_pct":97,…}],"disks":[…],"xids":[…],"gpu_error_code":…,"gpu_error":…}
    {"k":"fault","code":"…","text":"…"}
A field that is absent is as before, null is unknown; `cards` names the cards that exist. A host
without Python writes plain lines instead (see `cockpit.domain.smi`); who reads does not notice.
A probe obeys lines on its stdin: `interval 0.5`, `focus 1`, `focus 0`, `now`, `quit`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cockpit.domain.merged_host import MergedHost
from cockpit.domain.models import HostFacts, HostName, HostSample
from cockpit.domain.smi import PlainLines
from cockpit.domain.text import safe_line

LINE_LIMIT: Final = 256 * 1024
"""Longest line that is looked at: 16 cards with hundreds of processes are a tenth of it."""
WIRE_VERSION: Final = 1
_CAREFUL_FROM: Final = 8192
_HUGE_NUMBER: Final = re.compile(rb"[0-9]{400}")


@dataclass(frozen=True, slots=True)
class Hello:
    """A probe began to speak."""

    facts: HostFacts = field(default_factory=HostFacts)
    interval_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ProbeFault:
    """A line that says what is wrong with the probe, or that cannot be believed.

    Codes of ours: line_too_long, bad_line. The probe's own: crashed, no_python.
    """

    code: str
    text: str = ""


def set_interval(seconds: float) -> bytes:
    """The line that changes a probe's time between samples, 0.2 to 60 s."""
    return b"interval %.3f\n" % min(60.0, max(0.2, seconds))


def set_focus(focused: bool) -> bytes:
    """The line that makes a probe read the slow values often, or seldom again."""
    return b"focus %d\n" % focused


SAMPLE_NOW: Final = b"now\n"
QUIT: Final = b"quit\n"

Decoded: TypeAlias = Hello | HostSample | ProbeFault | None


class SampleDecoder:
    """The stateful reader of one probe's lines; a new connection needs a new one."""

    def __init__(self, host: HostName) -> None:
        self._host = host
        self._merged = MergedHost(host)
        self._plain: PlainLines | None = None

    def feed(self, line: bytes) -> Decoded:
        """Read one line without its newline; None for a line that says nothing (yet)."""
        if len(line) > LINE_LIMIT:
            return ProbeFault("line_too_long", f"{len(line)} bytes")
        record = self._record(line)
        if record is None:
            return ProbeFault("bad_line", safe_line(line[:2048], 200)) if line.strip() else None
        kind = record.get("k")
        if kind == "sample":
            return self._merged.take(record) or ProbeFault("bad_line", "a sample without its time")
        if kind == "hello":
            return self._hello(record)
        if kind == "fault":
            code, text = record.get("code"), record.get("text")
            return ProbeFault(
                safe_line(code, 40) if isinstance(code, str) else "probe",
                safe_line(text, 400) if isinstance(text, str) else "",
            )
        return None

    def _record(self, line: bytes) -> dict[str, object] | None:
        """The line's record: a JSON object, or what plain lines added up to (empty until then)."""
        if line.startswith(b"H begin"):
            self._plain = PlainLines()
        if self._plain is None:
            return _parsed(line)
        return self._plain.feed(line.rstrip(b"\r\n")) or {}

    def _hello(self, record: Mapping[str, object]) -> Decoded:
        self._merged = MergedHost(self._host)
        self._merged.take_facts(record.get("facts"))
        self._merged.take_interval(record.get("interval"))
        return Hello(self._merged.facts, self._merged.interval_s)


def _refused(constant: str) -> object:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(parse_constant=_refused)


def _parsed(line: bytes) -> dict[str, object] | None:
    """The line's object; None when it is no JSON object that a probe of ours would write."""
    if len(line) > _CAREFUL_FROM and _HUGE_NUMBER.search(line):
        return None
    try:
        record = _DECODER.decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return record if type(record) is dict else None
