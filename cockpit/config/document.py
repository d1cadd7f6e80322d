"""A TOML file read once: its values, where each of them stands, and the problems found in it so far."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tomli

from cockpit.config.paths import tilde
from cockpit.config.toml_lines import KeyPath, TomlLines, scan
from cockpit.config.values import BadValue, Reader, closest, shown
from cockpit.domain.text import cut_end, safe_line
from cockpit.errors import ConfigError, Fact, Problem, StorageError

MAX_BYTES = 1 << 20
"""Larger than any file that a person writes by hand."""
_KEY_CELLS = 60
_LONG_NUMBER = re.compile(r"[0-9_]{1000}")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")


@dataclass(slots=True)
class Document:
    """Values, places and problems of one file; readers add problems, the owner raises them together."""

    file: str
    data: dict[str, object] = field(default_factory=dict)
    lines: TomlLines = field(default_factory=TomlLines)
    problems: list[Problem] = field(default_factory=list)
    overridden: set[KeyPath] = field(default_factory=set)
    """Keys that the command line gave: their mistakes are not the file's."""
    text: str = field(default="", repr=False)
    """The file as it was read."""

    def report(self, path: KeyPath, code: str, **facts: Fact) -> None:
        """Add a problem of the key at `path`."""
        by_hand = any(path[:length] in self.overridden for length in range(1, len(path) + 1))
        place = None if by_hand else self.lines.find(path)
        self.problems.append(
            Problem(
                code,
                file="--set" if by_hand else self.file,
                line=place.line if place else None,
                column=place.column if place else None,
                key=dotted(path),
                **facts,
            )
        )

    def report_bad(self, path: KeyPath, error: BadValue) -> None:
        for each in (error, *error.more):
            self.report((*path, *each.path), each.code, **each.facts)

    def table(
        self, path: KeyPath, raw: object, readers: Mapping[str, Reader[object]]
    ) -> dict[str, object]:
        """The values of a flat table; unknown keys and wrong values become problems."""
        if not isinstance(raw, dict):
            self.report(path, "wrong_type", expected="a table", given=shown(raw))
            return {}
        values: dict[str, object] = {}
        for key, value in raw.items():
            if key not in readers:
                self.unknown((*path, key), readers)
                continue
            try:
                values[key] = readers[key](value)
            except BadValue as error:
                self.report_bad((*path, key), error)
        return values

    def unknown(self, path: KeyPath, known: Mapping[str, object] | tuple[str, ...]) -> None:
        word = str(path[-1])
        self.report(
            path, "unknown_key", suggestion=closest(word, known), known=tuple(sorted(known))
        )

    def sorted_problems(self) -> tuple[Problem, ...]:
        return tuple(sorted(self.problems, key=lambda problem: (problem.line or 0, problem.key)))


def dotted(path: KeyPath) -> str:
    """The path as it would be written for `--set`: gpus.count, hosts."a.b", args[1]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            name = cut_end(safe_line(part), _KEY_CELLS)
            name = name if plain else f'"{name}"'
            text += f".{name}" if text else name
    return text


def read_document(path: Path, error: type[ConfigError] = ConfigError) -> Document:
    """Read a file. Raises `error` for what is not TOML, StorageError, FileNotFoundError."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise StorageError(path=tilde(path), why=problem.strerror or str(problem)) from problem
    return parse_document(content, safe_line(tilde(path)), error)


def parse_document(content: bytes, file: str, error: type[ConfigError] = ConfigError) -> Document:
    """The document of a file's bytes. Raises `error` for what is not TOML."""
    if len(content) > MAX_BYTES:
        raise error(file=file, problems=(Problem("file_too_large", file=file, limit=MAX_BYTES),))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise error(file=file, problems=(Problem("not_utf8", file=file, line=line),)) from problem
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError as problem:
        raise error(file=file, problems=(_syntax_problem(str(problem), text, file),)) from problem
    except RecursionError as problem:
        raise error(
            file=file, problems=(Problem("toml_syntax", file=file, why="nested too deep"),)
        ) from problem
    except ValueError as problem:  # Python reads no number of thousands of digits
        raise error(file=file, problems=(_long_number(text, file),)) from problem
    return Document(file, data, _places(text), text=text)


def _places(text: str) -> TomlLines:
    """Lines are a courtesy: a file that the scanner cannot follow is still read."""
    try:
        return scan(text)
    except (IndexError, ValueError, RecursionError):
        return TomlLines()


def _long_number(text: str, file: str) -> Problem:
    match = _LONG_NUMBER.search(text)
    line = text.count("\n", 0, match.start()) + 1 if match else None
    return Problem("toml_syntax", file=file, line=line, why="a number is too long")


def _syntax_problem(message: str, text: str, file: str) -> Problem:
    match = _AT.search(message)
    line = text.count("\n") + 1
    column: int | None = None
    if match is not None and match[1]:
        line, column = int(match[1]), int(match[2])
    why = cut_end(safe_line(_AT.sub("", message).strip()), 2 * _KEY_CELLS)
    return Problem("toml_syntax", file=file, line=line, column=column, why=why)
