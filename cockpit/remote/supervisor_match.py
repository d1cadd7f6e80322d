"""What a search looks for in a piece of a log, and where it stands in it, to the byte."""

import re
import signal

from supervisor_files import Refused, to_bytes  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    Json = dict[str, Any]

PATTERN_BYTES = 512
LINE_BYTES = 64 * 1024
"""A regular expression sees one line at a time, and no more of a longer one."""
PIECE_S = 0.25
"""A regular expression has so long for a piece: nothing else of this program goes on meanwhile."""


class TooSlow(Exception):
    """A regular expression did not come to an end in time."""


def matcher_of(request: "Json") -> "Exact | AnyCase | ByLine":
    text = request["text"]
    raw = to_bytes(text)
    if not 0 < len(raw) <= PATTERN_BYTES:
        raise Refused("bad_request", key="text")
    any_case = request.get("ignore_case") is True
    if request.get("regex") is True:
        return ByLine(text, any_case)
    if any_case and not all(byte < 128 for byte in raw):
        return AnyCase(text)
    return Exact(raw, any_case)


class Exact:
    """Bytes as they are, or ASCII letters in any case."""

    before = 0

    def __init__(self, pattern: bytes, any_case: bool) -> None:
        self._pattern = pattern.lower() if any_case else pattern
        self._any_case = any_case
        self.behind = len(pattern) - 1

    def find(self, data: bytes, start: int, end: int, last: bool) -> "int | None":
        """Place of the first match that begins within [start, end), or of the last one."""
        if self._any_case:
            data = data.lower()
        stop = end + self.behind
        look = data.rfind if last else data.find
        found = look(self._pattern, start, stop)
        return None if found < 0 else found


class AnyCase:
    """Text with letters of any alphabet, in any case. A letter may be longer in the other case."""

    def __init__(self, text: str) -> None:
        self._regex = re.compile(re.escape(text), re.IGNORECASE)
        self.before = 3
        self.behind = 4 * len(text)

    def find(self, data: bytes, start: int, end: int, last: bool) -> "int | None":
        return _place(self._regex, _text(data), 0, start, end, last)


class ByLine:
    """A regular expression over lines, which is stopped when it takes too long."""

    before = behind = LINE_BYTES

    def __init__(self, text: str, any_case: bool) -> None:
        try:
            self._regex = re.compile(text, re.IGNORECASE if any_case else 0)
        except (re.error, OverflowError, RecursionError) as error:
            raise Refused("bad_pattern", why=str(error)[:200]) from error

    def find(self, data: bytes, start: int, end: int, last: bool) -> "int | None":
        """Raises TooSlow."""
        before = signal.signal(signal.SIGALRM, _too_slow)
        try:
            signal.setitimer(signal.ITIMER_REAL, PIECE_S)
            return self._find(data, start, end, last)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _find(self, data: bytes, start: int, end: int, last: bool) -> "int | None":
        for line_start, line in _lines(data, start, end, last):
            place = _place(self._regex, _text(line), line_start, start, end, last)
            if place is not None:
                return place
        return None


def _too_slow(_number: int, _frame: object) -> None:
    raise TooSlow


def _text(data: bytes) -> str:
    """Every byte comes back from it, whatever it is."""
    return data.decode("utf-8", "surrogateescape")


def _place(regex: "Any", text: str, base: int, start: int, end: int, last: bool) -> "int | None":
    """Where the first or the last match in the range begins. A match of nothing is none."""
    found, counted, at = None, 0, base
    for match in regex.finditer(text):
        at += len(to_bytes(text[counted : match.start()]))
        counted = match.start()
        if start <= at < end and match.end() > match.start():
            found = at
            if not last:
                break
    return found


def _lines(data: bytes, start: int, end: int, last: bool) -> "Iterator[tuple[int, bytes]]":
    """The lines that reach into [start, end) with their places, from the nearest on; long ones in pieces."""
    first = data.rfind(b"\n", 0, start) + 1
    places = []
    while first < end:
        stop = data.find(b"\n", first, first + LINE_BYTES)
        is_cut = stop < 0
        stop = min(len(data), first + LINE_BYTES) if is_cut else stop
        places.append((first, stop))
        first = stop if is_cut else stop + 1
        if is_cut and stop >= len(data):
            break
    for first, stop in reversed(places) if last else places:
        yield first, data[first:stop]
