"""What `run` and `attach` print: the job's own output, or one JSON object an event. stdout is data, stderr is talk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import BinaryIO, Protocol, TextIO

from cockpit.domain.lines import Line
from cockpit.domain.masking import MaskedStream, Masker
from cockpit.domain.text import cut_end, safe_line
from cockpit.i18n.messages import explain


class RunReport(Protocol):
    """Everything that is said during a run, in the order in which it happens."""

    def event(self, name: str, fields: Mapping[str, object], words: str = "") -> None:
        """Something happened. `words` is for people; empty when only machines care."""

    def log_bytes(self, data: bytes) -> None:
        """The job's output as it came."""

    def log_lines(self, lines: list[Line]) -> None: ...

    def open_line(self, offset: int, text: str) -> None:
        """The unfinished last line as it looks now; called seldom."""

    def finish(self) -> None:
        """The job's output has ended."""


class JsonReport:
    """One object a line, flushed at once: a reader in a pipe acts on it."""

    def __init__(self, out: TextIO, run: str, host: str, masker: Masker) -> None:
        self.run = run
        self.host = host
        self.masker = masker
        self._out = out
        self.at_s = 0.0

    def event(self, name: str, fields: Mapping[str, object], words: str = "") -> None:
        value = {"event": name, "run": self.run or None, "host": self.host or None}
        value["at_s"] = round(self.at_s, 3)  # type: ignore[assignment]
        text = json.dumps({**value, **fields}, ensure_ascii=False)
        self._out.write(self.masker.text(text) + "\n")
        self._out.flush()

    def log_bytes(self, data: bytes) -> None: ...

    def log_lines(self, lines: list[Line]) -> None:
        for line in lines:
            self.event("log", {"offset": line.offset, "text": line.text})

    def open_line(self, offset: int, text: str) -> None:
        self.event("log", {"offset": offset, "text": text, "progress": True})

    def finish(self) -> None: ...


class PlainReport:
    """The job's output into a pipe or file, byte for byte; our own words on stderr."""

    def __init__(self, out: BinaryIO, err: TextIO, masker: Masker) -> None:
        self._out = out
        self._err = err
        self._masker = masker
        self._stream: MaskedStream = masker.stream()

    def event(self, name: str, fields: Mapping[str, object], words: str = "") -> None:
        if words:
            print(self._masker.text(words), file=self._err, flush=True)

    def log_bytes(self, data: bytes) -> None:
        self._write(self._stream.feed(data))

    def log_lines(self, lines: list[Line]) -> None: ...

    def open_line(self, offset: int, text: str) -> None: ...

    def finish(self) -> None:
        self._write(self._stream.finish())

    def _write(self, data: bytes) -> None:
        if data:
            self._out.write(data)
            self._out.flush()


class TerminalReport:
    """The job's output on a terminal: harmless, a progress bar as one line that changes."""

    def __init__(self, out: TextIO, err: TextIO, masker: Masker, columns: int) -> None:
        self._out = out
        self._err = err
        self._masker = masker
        self._columns = columns
        self._open = False

    def event(self, name: str, fields: Mapping[str, object], words: str = "") -> None:
        if words:
            self._clear()
            self._out.flush()
            shown = "\n".join(safe_line(line) for line in self._masker.text(words).splitlines())
            print(shown, file=self._err, flush=True)

    def log_bytes(self, data: bytes) -> None: ...

    def log_lines(self, lines: list[Line]) -> None:
        self._clear()
        self._out.write("".join(f"{line.text}\n" for line in lines))
        self._out.flush()

    def open_line(self, offset: int, text: str) -> None:
        self._clear()
        self._out.write(cut_end(text, max(8, self._columns - 1)))
        self._open = bool(text)
        self._out.flush()

    def finish(self) -> None:
        self._clear()
        self._out.flush()

    def _clear(self) -> None:
        if self._open:
            self._out.write("\r\x1b[K")
            self._open = False


def make_report(as_json: bool, run: str, host: str, masker: Masker) -> RunReport:
    """The report that fits where stdout leads."""
    if as_json:
        return JsonReport(sys.stdout, run, host, masker)
    if sys.stdout.isatty():
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
        return TerminalReport(sys.stdout, sys.stderr, masker, columns)
    return PlainReport(sys.stdout.buffer, sys.stderr, masker)


def words_for(code: str, facts: Mapping[str, object]) -> str:
    """One line for a person, made from a code and its facts."""
    plain = {key: value for key, value in facts.items() if isinstance(value, str | int | float)}
    message = explain(code, plain)
    return f"{message.headline} {message.body}".strip()
