"""What a value of a TOML file may be: plain readers, each of which returns the value or says what is wrong with it."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from cockpit.config.address import is_own_name
from cockpit.config.toml_lines import KeyPath
from cockpit.domain.text import cut_end, safe_line
from cockpit.domain.units import UnitError, parse_duration, parse_money, parse_price, parse_size
from cockpit.errors import Fact

T = TypeVar("T")
Reader: TypeAlias = Callable[[object], T]

MAX_TEXT_CHARS = 64 * 1024
_SHOWN_CELLS = 60


class BadValue(ValueError):
    """A value that cannot be taken; `path` leads from the key to the element that is to blame.

    `more` are the other mistakes of the same value: a list may have several.
    """

    def __init__(self, code: str, path: KeyPath = (), **facts: Fact) -> None:
        self.code = code
        self.path = path
        self.facts = facts
        self.more: tuple[BadValue, ...] = ()
        super().__init__(code)

    def inside(self, part: str | int) -> list[BadValue]:
        """This and its `more`, as mistakes of the value that holds it at `part`."""
        return [
            BadValue(error.code, (part, *error.path), **error.facts) for error in (self, *self.more)
        ]


def raise_all(errors: list[BadValue]) -> None:
    """Raise the first error with the rest in its `more`."""
    if errors:
        errors[0].more = tuple(errors[1:])
        raise errors[0]


def shown(value: object) -> str:
    """A value as it would be written, harmless and short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):  # Python writes no number of thousands of digits
        text = "…"
    return cut_end(safe_line(text), _SHOWN_CELLS)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    if len(word) > _SHOWN_CELLS:
        return None
    folded = {name.lower().replace("-", "_"): name for name in known}
    near = difflib.get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.7)
    return folded[near[0]] if near else None


def wrong_type(expected: str, value: object) -> BadValue:
    return BadValue("wrong_type", expected=expected, given=shown(value))


def text(value: object) -> str:
    """One line without control characters."""
    return _text(value, allowed="\t")


def script(value: object) -> str:
    """Text that may have several lines."""
    return _text(value, allowed="\t\n\r")


def _text(value: object, *, allowed: str) -> str:
    if not isinstance(value, str):
        raise wrong_type("text", value)
    if len(value) > MAX_TEXT_CHARS:
        raise BadValue("too_long", limit=MAX_TEXT_CHARS)
    for char in value:
        if char not in allowed and unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise BadValue("control_character", character=f"U+{ord(char):04X}")
    return value


def filled(value: object) -> str:
    """A line that is not empty."""
    line = text(value)
    if not line.strip():
        raise BadValue("empty")
    return line


def own_name(value: object) -> str:
    name = text(value)
    if not is_own_name(name):
        raise BadValue("bad_name", given=shown(name))
    return name


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong_type("true or false", value)
    return value


def whole(low: int, high: int) -> Reader[int]:
    """A whole number from `low` to `high`."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type("a whole number", value)
        if not low <= value <= high:
            raise BadValue("out_of_range", given=shown(value), low=low, high=high)
        return value

    return read


port = whole(1, 65535)


def number(low: float, high: float) -> Reader[float]:
    """A number from `low` to `high`, whole or not."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type("a number", value)
        if not low <= value <= high:
            raise BadValue("out_of_range", given=shown(value), low=low, high=high)
        return float(value)

    return read


def one_of(*allowed: str) -> Reader[str]:
    def read(value: object) -> str:
        if not isinstance(value, str):
            raise wrong_type("text", value)
        if value not in allowed:
            raise BadValue(
                "not_one_of",
                given=shown(value),
                allowed=allowed,
                suggestion=closest(value, allowed),
            )
        return value

    return read


def list_of(read_item: Reader[T], *, at_least: int = 0) -> Reader[tuple[T, ...]]:
    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            raise wrong_type("a list", value)
        if len(value) < at_least:
            raise BadValue("empty")
        items: list[T] = []
        errors: list[BadValue] = []
        for position, item in enumerate(value):
            try:
                items.append(read_item(item))
            except BadValue as error:
                errors += error.inside(position)
        raise_all(errors)
        return tuple(items)

    return read


def mapping_of(read_key: Reader[str], read_item: Reader[T]) -> Reader[Mapping[str, T]]:
    def read(value: object) -> Mapping[str, T]:
        if not isinstance(value, dict):
            raise wrong_type("a table", value)
        items: dict[str, T] = {}
        errors: list[BadValue] = []
        for key, item in value.items():
            try:
                items[read_key(key)] = read_item(item)
            except BadValue as error:
                errors += error.inside(key)
        raise_all(errors)
        return items

    return read


def _quantity(parse: Callable[[str], T], expected: str) -> Reader[T]:
    """A text with a unit; a bare number gets the error that says so."""

    def read(value: object) -> T:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise wrong_type(expected, value)
        try:
            return parse(value if isinstance(value, str) else shown(value))
        except UnitError as error:
            raise BadValue(error.code, (), **{**error.facts, "given": shown(value)}) from error

    return read


size_mib = _quantity(parse_size, 'a size, such as "20 GiB"')
duration_s = _quantity(parse_duration, 'a time, such as "15s"')
price = _quantity(parse_price, 'a price, such as "0.42 USD/h"')
money = _quantity(parse_money, 'an amount, such as "5 USD"')


def duration_or_off(value: object) -> float | None:
    """A time, or false for never."""
    if value is False:
        return None
    return duration_s(value)
