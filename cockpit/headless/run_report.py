"""What `run`, `attach` and `logs` print: the job's own output, or one JSON object an event.

stdout is data, stderr is talk.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Protocol

from cockpit.domain.masking import Masker
from cockpit.domain.text import Line, LineAssembler, cut_end, safe_line
from cockpit.headless.streams import OutStream, TalkStream, standard_streams
from cockpit.i18n.messages import explain

Fields = Mapping[str, object]
TALK_EVERY_S = 5.0
"""A progress bar's state, the metrics and a sample are told at most this often."""
REDRAW_EVERY_S = 0.2
_FIXED = frozenset(
    {"event", "run", "host", "family", "signature", "severity", "state", "reason", "by"}
)
"""Values of ours, in which no secret can be and nothing may be starred out."""


class RunReport(Protocol):
    """Everything that is said during a run, in the order in which it happens."""

    tick_s: float
    """How often `tick` wants to be called."""
    tells_samples: bool

    def about(self, run: str, host: str, masker: Masker) -> None:
        """From here on it is about this run."""

    async def event(self, name: str, at_s: float, fields: Fields, words: str = "") -> None:
        """Something happened. `words` is for people; empty when only machines care."""

    async def say(self, words: str) -> None:
        """Talk, on stderr whatever is printed."""

    async def output(self, data: bytes, at_s: float) -> None:
        """The job's output, secrets covered."""

    async def tick(self, at_s: float) -> None:
        """Time has passed: an unfinished line may be shown as it looks now."""

    async def jump(self, offset: int) -> None:
        """The output goes on at `offset`: what was between is not here, or the log began anew."""

    async def finish(self, at_s: float) -> None:
        """The job's output has ended."""


class _Report:
    """What the three have in common."""

    tick_s = TALK_EVERY_S
    tells_samples = False

    def __init__(self, out: OutStream, err: TalkStream) -> None:
        self._out = out
        self._err = err
        self._masker = Masker()
        self._run: str | None = None
        self._host: str | None = None

    def about(self, run: str, host: str, masker: Masker) -> None:
        self._run, self._host, self._masker = run, host, masker

    async def say(self, words: str) -> None:
        lines = self._masker.text(words).splitlines()
        await self._err.write("\n".join(safe_line(line) for line in lines))


class JsonReport(_Report):
    """One object a line, written at once: a reader in a pipe acts on it."""

    tells_samples = True

    def __init__(self, out: OutStream, err: TalkStream) -> None:
        super().__init__(out, err)
        self._assembler = LineAssembler()
        self._rows = 0
        self._redrawn: dict[int, Line] = {}
        self._told_open = ""

    async def event(self, name: str, at_s: float, fields: Fields, words: str = "") -> None:
        await self._out.write(self._encoded(name, at_s, fields))

    async def output(self, data: bytes, at_s: float) -> None:
        await self._lines(self._assembler.feed(data), at_s)

    async def tick(self, at_s: float) -> None:
        """A bar's state now: of the unfinished line, and of rows above it that were drawn again."""
        assembler = self._assembler
        states = [(line.offset, line.text) for line in self._redrawn.values()]
        self._redrawn.clear()
        is_bar = assembler.open_bar or bool(states)
        if is_bar and assembler.open_text != self._told_open:
            self._told_open = assembler.open_text
            states.append((assembler.open_offset, self._told_open))
        for offset, text in states:
            fields = {"offset": offset, "text": text, "progress": True}
            await self._out.write(self._encoded("log", at_s, fields))

    async def jump(self, offset: int) -> None:
        await self._lines(self._assembler.finish(), 0.0)
        self._assembler = LineAssembler(offset=offset, number=self._assembler.number)

    async def finish(self, at_s: float) -> None:
        await self._lines(self._assembler.finish(), at_s)
        await self.tick(at_s)

    async def _lines(self, lines: Sequence[Line], at_s: float) -> None:
        told = []
        head = self._encoded("log", at_s, {}).decode().removesuffix("}\n")
        for line in lines:
            if line.replaces:
                self._redrawn[self._rows - line.replaces] = line
            else:
                self._rows += 1
                text = encode_basestring(line.text)
                told.append(f'{head}, "offset": {line.offset}, "text": {text}}}\n')
        if told:
            self._told_open = ""
            await self._out.write("".join(told).encode("utf-8", "replace"))

    def _encoded(self, name: str, at_s: float, fields: Fields) -> bytes:
        value: dict[str, object] = {"event": name, "run": self._run, "host": self._host}
        value["at_s"] = round(at_s, 3)
        value |= {key: self._covered(key, item) for key, item in fields.items()}
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"

    def _covered(self, key: str, value: object) -> object:
        if isinstance(value, str):
            return value if key in _FIXED else self._masker.text(value)
        if isinstance(value, Mapping):
            return {name: self._covered(name, item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._covered(key, item) for item in value]
        return value


class PlainReport(_Report):
    """The job's output into a pipe or file, byte for byte; our own words on stderr."""

    async def event(self, name: str, at_s: float, fields: Fields, words: str = "") -> None:
        await self.say(words)

    async def output(self, data: bytes, at_s: float) -> None:
        await self._out.write(data)

    async def tick(self, at_s: float) -> None: ...

    async def jump(self, offset: int) -> None: ...

    async def finish(self, at_s: float) -> None: ...


class TerminalReport(_Report):
    """The job's output on a terminal: harmless, a progress bar as one line that changes."""

    tick_s = REDRAW_EVERY_S

    def __init__(self, out: OutStream, err: TalkStream) -> None:
        super().__init__(out, err)
        self._assembler = LineAssembler()
        self._rows = 0
        self._redrawn: dict[int, str] = {}
        self._drawn = ""

    async def event(self, name: str, at_s: float, fields: Fields, words: str = "") -> None:
        await self.say(words)

    async def say(self, words: str) -> None:
        if words:
            await self._write(self._wiped())
            await super().say(words)

    async def output(self, data: bytes, at_s: float) -> None:
        await self._lines(self._assembler.feed(data))

    async def tick(self, at_s: float) -> None:
        newest = next(reversed(self._redrawn.values()), "")
        text = cut_end(self._assembler.open_text or newest, max(8, _columns() - 1))
        if text != self._drawn:
            await self._write(self._wiped() + text)
            self._drawn = text

    async def jump(self, offset: int) -> None:
        await self._lines(self._assembler.finish())
        self._assembler = LineAssembler(offset=offset, number=self._assembler.number)

    async def finish(self, at_s: float) -> None:
        await self._lines(self._assembler.finish())
        await self._write(self._wiped() + "".join(f"{row}\n" for row in self._redrawn.values()))
        self._redrawn.clear()

    async def _lines(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if line.replaces:
                self._redrawn[self._rows - line.replaces] = line.text
            else:
                self._rows += 1
        rows = "".join(f"{line.text}\n" for line in lines if not line.replaces)
        if rows:
            await self._write(self._wiped() + rows)

    def _wiped(self) -> str:
        drawn, self._drawn = self._drawn, ""
        return "\r\x1b[K" if drawn else ""

    async def _write(self, text: str) -> None:
        if text:
            await self._out.write(text.encode("utf-8", "replace"))


def make_report(as_json: bool) -> RunReport:
    """The report that fits where stdout leads."""
    if as_json:
        return JsonReport(*standard_streams())
    if sys.stdout.isatty():
        return TerminalReport(*standard_streams())
    return PlainReport(*standard_streams())


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return 80


def words_for(code: str, facts: Mapping[str, object]) -> str:
    """A line or two for a person, made from a code and its facts."""
    message = explain(code, facts)
    return f"{message.headline} {message.body}".strip()
