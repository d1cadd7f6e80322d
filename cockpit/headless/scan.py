"""`cockpit scan FILE|-`: the detectors of live runs on any log, in a stream and in bounded memory."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, TypeVar

from cockpit.domain.incidents import SEVERITIES, Finding
from cockpit.domain.scan import Scanner
from cockpit.domain.text import safe_line
from cockpit.errors import DataError, StorageError, UsageError
from cockpit.headless.incident_line import finding_fields, set_options
from cockpit.i18n import _
from cockpit.i18n.messages import describe_incident

T = TypeVar("T")

CHUNK_BYTES: Final = 256 * 1024
_NOT_PLAIN: Final = {
    b"\xff\xfe": "it is UTF-16 (iconv -f UTF-16 -t UTF-8 makes plain text of it)",
    b"\xfe\xff": "it is UTF-16 (iconv -f UTF-16 -t UTF-8 makes plain text of it)",
    b"\x1f\x8b": "it is compressed (gzip -dc FILE | cockpit scan -)",
    b"\x28\xb5\x2f\xfd": "it is compressed (zstd -dc FILE | cockpit scan -)",
    b"\xfd7zXZ\x00": "it is compressed (xz -dc FILE | cockpit scan -)",
    b"BZh91AY&SY": "it is compressed (bzip2 -dc FILE | cockpit scan -)",
    b"PK\x03\x04": "it is an archive (unzip -p FILE | cockpit scan -)",
}
_LOOK_BYTES: Final = 1024
_WIDE_SHARE: Final = 0.4
_LONGEST_MARK: Final = max(map(len, _NOT_PLAIN))
FAILED: Final = 1
"""Something of the severity that was asked about, or worse, was found."""


def main(args: argparse.Namespace) -> int:
    if args.memory is not None:
        return _scan_memory(args)
    if args.file is None:
        raise UsageError("scan_no_file")
    worst = len(SEVERITIES)
    with _opened(args.file) as stream:
        for finding in findings(chunks_of(stream, args.file)):
            worst = min(worst, SEVERITIES.index(finding.severity))
            print(json_line(finding) if args.json else text_of(finding), flush=args.file == "-")
    if worst == len(SEVERITIES) and not args.json:
        print(_("Nothing found."), file=sys.stderr)
    return FAILED if args.fail_on and worst <= SEVERITIES.index(args.fail_on) else 0


def _scan_memory(args: argparse.Namespace) -> int:
    """The verdict on a table of memory readings. Raises UsageError beside a log, DataError, StorageError."""
    from cockpit.headless import scan_memory

    if args.file is not None:
        raise UsageError("scan_two_inputs")
    with _opened(args.memory) as stream:
        trend = _told(
            args.memory, lambda: scan_memory.judged(scan_memory.readings(stream, args.memory))
        )
    print(scan_memory.json_line(trend) if args.json else scan_memory.text_of(trend))
    is_met = args.fail_on is not None and trend.flagged and args.fail_on in ("warning", "notice")
    return FAILED if is_met else 0


def findings(chunks: Iterable[bytes]) -> Iterator[Finding]:
    """What a log amounts to, each incident once, as soon as nothing more can be added to it."""
    scanner = Scanner(settled=True)
    for chunk in chunks:
        yield from scanner.feed(chunk)
    yield from scanner.finish()


def chunks_of(stream: BinaryIO, file: str) -> Iterator[bytes]:
    """What is there, at once: a pipe is not waited on until a whole chunk is full.

    Raises StorageError, and DataError for what is no text: "nothing found" would be a lie.
    """
    read = getattr(stream, "read1", stream.read)
    begin = b""
    while chunk := _told(file, lambda: read(CHUNK_BYTES)):
        if len(begin) < _LONGEST_MARK:
            begin = (begin + chunk)[:_LONGEST_MARK]
            if len(begin) == len(chunk[:_LONGEST_MARK]):
                _refuse_wide(chunk[:_LOOK_BYTES], file)
            _refuse_packed(begin, file)
        yield chunk


def _refuse_wide(first: bytes, file: str) -> None:
    """UTF-16 without a mark: every other byte of its English is NUL."""
    fewer, more = sorted((first[::2].count(0), first[1::2].count(0)))
    if more > _WIDE_SHARE * len(first) > 1 and fewer < more / 10:
        raise DataError(path=safe_line(file), why=_NOT_PLAIN[b"\xff\xfe"])


def _refuse_packed(begin: bytes, file: str) -> None:
    for mark, why in _NOT_PLAIN.items():
        if begin.startswith(mark):
            raise DataError(path=safe_line(file), why=why)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = _told(file, lambda: open(file, "rb"))  # noqa: SIM115 - closed two lines below
    except IsADirectoryError:
        raise DataError(path=safe_line(file), why="it is a folder") from None
    with stream:
        yield stream


def _told(file: str, call: Callable[[], T]) -> T:
    """Raises StorageError for what the log's own file does not give."""
    try:
        return call()
    except IsADirectoryError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise StorageError(path=safe_line(file), why=why) from error


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
        lines += ["       " + text for text in set_options(remedy.patch)]
    return "\n".join(lines)
