"""`cockpit scan FILE|-`: the detectors of live runs on any log, in a stream and in bounded memory."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from cockpit.domain.incidents import SEVERITIES, Finding
from cockpit.domain.scan import Scanner
from cockpit.domain.text import safe_line
from cockpit.errors import DataError, StorageError, UsageError
from cockpit.headless.incident_line import finding_fields
from cockpit.i18n import _
from cockpit.i18n.messages import describe_incident

CHUNK_BYTES: Final = 256 * 1024
FAILED: Final = 1
"""Something of the severity that was asked about, or worse, was found."""


def main(args: argparse.Namespace) -> int:
    if args.memory is not None:
        raise UsageError("scan_memory_later")
    if args.file is None:
        raise UsageError("scan_no_file")
    worst = len(SEVERITIES)
    with _opened(args.file) as stream:
        for finding in findings(stream):
            worst = min(worst, SEVERITIES.index(finding.severity))
            print(json_line(finding) if args.json else text_of(finding), flush=args.file == "-")
    if worst == len(SEVERITIES) and not args.json:
        print(_("Nothing found."), file=sys.stderr)
    return FAILED if args.fail_on and worst <= SEVERITIES.index(args.fail_on) else 0


def findings(stream: BinaryIO) -> Iterator[Finding]:
    """What a log amounts to, each incident once, as soon as nothing more can be added to it."""
    scanner = Scanner(settled=True)
    for chunk in _chunks(stream):
        yield from scanner.feed(chunk)
    yield from scanner.finish()


def _chunks(stream: BinaryIO) -> Iterable[bytes]:
    """What is there, at once: a pipe is not waited on until a whole chunk is full."""
    read = getattr(stream, "read1", stream.read)
    while chunk := read(CHUNK_BYTES):
        yield chunk


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    path = Path(file)
    if path.is_dir():
        raise DataError(path=file, why="it is a folder")
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise StorageError(path=safe_line(file), why=error.strerror or str(error)) from error


def json_line(finding: Finding) -> str:
    gpu = finding.facts.get("gpu_index")
    fields = finding_fields(finding, gpu=gpu if isinstance(gpu, int) else None)
    return json.dumps(fields)


def text_of(finding: Finding) -> str:
    """The incident on a line, the log's own line below it, then why and what to do."""
    text = describe_incident(finding)
    lines = [f"{finding.line}: {finding.severity} {finding.family} {text.summary}"]
    lines.append(f"    {safe_line(finding.text, 240)}")
    if text.cause:
        lines.append(f"    {text.cause}")
    for number, remedy in enumerate(text.remedies, 1):
        lines.append(f"    {number}. {remedy.text}")
        lines += [
            f"       --set {key}={_toml(value)}" for key, value in (remedy.patch or {}).items()
        ]
    return "\n".join(lines)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r}" if isinstance(value, str) and " " in value else str(value)
