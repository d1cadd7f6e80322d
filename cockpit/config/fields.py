"""The types of a profile's fields: the readers of `values`, as pydantic and JSON Schema know them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from cockpit.config import values
from cockpit.config.values import BadValue, Reader, T, shown
from cockpit.domain.text import safe_line


class Table(BaseModel):
    """A table of a profile: what it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)


class Money(NamedTuple):
    amount: float
    currency: str


def checked(read: Reader[T]) -> PlainValidator:
    """A reader as pydantic wants it; the error itself travels in the context."""

    def validate(value: object) -> T:
        try:
            return read(value)
        except BadValue as error:
            raise PydanticCustomError("bad_value", "bad value", {"error": error}) from error

    return PlainValidator(validate)


def _number_or_word(read_number: Reader[int], *words: str) -> Reader[int | str]:
    def read(value: object) -> int | str:
        if value in words and isinstance(value, str):
            return value
        if isinstance(value, str):
            near = values.closest(value, words)
            allowed = ("a number", *words)
            raise BadValue("not_one_of", given=shown(value), allowed=allowed, suggestion=near)
        return read_number(value)

    return read


def _length(value: object) -> int | str:
    """A number of tokens, or "32k", "1M" or "auto" as the servers take them."""
    if isinstance(value, str):
        if re.fullmatch(r"auto|[0-9]{1,9}(\.[0-9]{1,3})?[kKmMgG]?", value) is None:
            raise BadValue(
                "wrong_type", given=shown(value), expected='a length such as 8192 or "32k"'
            )
        return int(value) if value.isdecimal() else value
    return values.whole(-1, 1 << 40)(value)


def _one_or_many(value: object) -> tuple[str, ...]:
    return (values.filled(value),) if isinstance(value, str) else _names(value)


def _variable_name(value: object) -> str:
    name = values.text(value)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise BadValue("bad_variable", name=shown(name))
    return name


def _variable_value(value: object) -> str:
    """Text, or a number as it is written; true and false have no one spelling, so they need quotes."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return values.script(value)


def _version(value: object) -> str:
    condition = values.filled(value)
    one = r"\s*(?:>=|<=|==|!=|~=|>|<)?\s*[0-9]+(?:\.[0-9A-Za-z*+]+)*\s*"
    if re.fullmatch(rf"{one}(?:,{one})*", condition) is None:
        raise BadValue("bad_version", given=shown(condition))
    return condition


def _pattern(value: object) -> str:
    pattern = values.filled(value)
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadValue("bad_pattern", given=shown(pattern), why=safe_line(str(error))) from error
    return pattern


def _path_or_url(value: object) -> str:
    """A path on the run's own port, or an http address of the host itself."""
    url = values.filled(value)
    own = r"http://(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?(?:/\S*)?"
    if re.fullmatch(rf"/\S*|{own}", url) is None:
        raise BadValue("bad_url", given=shown(url))
    return url


def _forwards(value: object) -> Mapping[int, int]:
    """Port of this computer to port of the host; TOML's keys are text."""
    if not isinstance(value, dict):
        raise values.wrong_type("a table such as 8000 = 8000", value)
    ports: dict[int, int] = {}
    errors: list[BadValue] = []
    for key, target in value.items():
        if not re.fullmatch(r"[0-9]{1,5}", key) or not 1 <= int(key) <= 65535:
            errors.append(BadValue("bad_port_key", (key,)))
            continue
        try:
            ports[int(key)] = values.port(target)
        except BadValue as error:
            errors += error.inside(key)
    values.raise_all(errors)
    return ports


def _addresses(value: object) -> tuple[str, ...]:
    """Addresses with tokens in them: no error repeats one."""
    try:
        return values.list_of(values.filled)(value)
    except BadValue as error:
        raise BadValue("bad_addresses", error.path) from None


def _money(value: object) -> Money:
    return Money(*values.money(value))


_names = values.list_of(values.filled)
_COUNT_MAX = 1 << 40

_STRING = {"type": "string"}
_INTEGER: dict[str, Any] = {"type": "integer", "minimum": 0}
_STRINGS = {"type": "array", "items": {"type": "string"}}
_DURATION: dict[str, Any] = {
    "type": "string", "pattern": r"^\s*([0-9.]+\s*[A-Za-z]+\s*)+$", "examples": ["15s", "10m", "2h"],
}  # fmt: skip
_SIZE: dict[str, Any] = {
    "type": "string", "pattern": r"^\s*[0-9.]+\s*[KMGTkmgt]?i?[Bb]?\s*$", "examples": ["20 GiB"],
}  # fmt: skip
_TABLE_OF_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}

Text: TypeAlias = Annotated[str, checked(values.text), WithJsonSchema(_STRING)]
Filled: TypeAlias = Annotated[
    str, checked(values.filled), WithJsonSchema({"type": "string", "minLength": 1})
]
Script: TypeAlias = Annotated[str, checked(values.script), WithJsonSchema(_STRING)]
Name: TypeAlias = Annotated[
    str, checked(values.own_name),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}),
]  # fmt: skip
Flag: TypeAlias = Annotated[bool, checked(values.flag), WithJsonSchema({"type": "boolean"})]
Count: TypeAlias = Annotated[int, checked(values.whole(0, _COUNT_MAX)), WithJsonSchema(_INTEGER)]
Positive: TypeAlias = Annotated[
    int, checked(values.whole(1, _COUNT_MAX)), WithJsonSchema({"type": "integer", "minimum": 1})
]
Whole: TypeAlias = Annotated[
    int, checked(values.whole(-_COUNT_MAX, _COUNT_MAX)), WithJsonSchema({"type": "integer"})
]
Port: TypeAlias = Annotated[
    int, checked(values.port), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 65535})
]
Fraction: TypeAlias = Annotated[
    float, checked(values.number(0, 1)),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]  # fmt: skip
Number: TypeAlias = Annotated[
    float, checked(values.number(0, 1e15)), WithJsonSchema({"type": "number", "minimum": 0})
]
Real: TypeAlias = Annotated[
    float, checked(values.number(-1e15, 1e15)), WithJsonSchema({"type": "number"})
]
Texts: TypeAlias = Annotated[
    tuple[str, ...], checked(values.list_of(values.text)), WithJsonSchema(_STRINGS)
]
Argv: TypeAlias = Annotated[
    tuple[str, ...], checked(values.list_of(values.script, at_least=1)),
    WithJsonSchema({**_STRINGS, "minItems": 1}),
]  # fmt: skip
Args: TypeAlias = Annotated[
    tuple[str, ...], checked(values.list_of(values.script)), WithJsonSchema(_STRINGS)
]
Names: TypeAlias = Annotated[
    tuple[str, ...], checked(values.list_of(values.own_name)), WithJsonSchema(_STRINGS)
]
OneOrMany: TypeAlias = Annotated[
    tuple[str, ...], checked(_one_or_many), WithJsonSchema({"anyOf": [_STRING, _STRINGS]})
]
Addresses: TypeAlias = Annotated[tuple[str, ...], checked(_addresses), WithJsonSchema(_STRINGS)]
Globs: TypeAlias = Annotated[
    tuple[str, ...], checked(values.list_of(values.filled, at_least=1)),
    WithJsonSchema({**_STRINGS, "minItems": 1}),
]  # fmt: skip
Cards: TypeAlias = Annotated[
    tuple[int, ...], checked(values.list_of(values.whole(0, 255), at_least=1)),
    WithJsonSchema({"type": "array", "items": _INTEGER, "minItems": 1}),
]  # fmt: skip
CardCount: TypeAlias = Annotated[
    int | Literal["all"], checked(_number_or_word(values.whole(1, 256), "all")),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]}),
]  # fmt: skip
ProcessCount: TypeAlias = Annotated[
    int | str, checked(_number_or_word(values.whole(1, 4096), "gpu", "cpu", "auto")),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["gpu", "cpu", "auto"]}]}),
]  # fmt: skip
Length: TypeAlias = Annotated[
    int | str, checked(_length), WithJsonSchema({"type": ["integer", "string"]})
]
SizeMib: TypeAlias = Annotated[int, checked(values.size_mib), WithJsonSchema(_SIZE)]
DurationS: TypeAlias = Annotated[float, checked(values.duration_s), WithJsonSchema(_DURATION)]
DurationOrOff: TypeAlias = Annotated[
    float | None, checked(values.duration_or_off),
    WithJsonSchema({"anyOf": [_DURATION, {"const": False}]}),
]  # fmt: skip
MoneyAmount: TypeAlias = Annotated[
    Money, checked(_money), WithJsonSchema({"type": "string", "examples": ["5 USD"]})
]
VersionCondition: TypeAlias = Annotated[
    str, checked(_version), WithJsonSchema({"type": "string", "examples": [">=2.4"]})
]
VersionConditions: TypeAlias = Annotated[
    Mapping[str, str], checked(values.mapping_of(values.filled, _version)),
    WithJsonSchema(_TABLE_OF_STRINGS),
]  # fmt: skip
Variables: TypeAlias = Annotated[
    Mapping[str, str], checked(values.mapping_of(_variable_name, _variable_value)),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
]  # fmt: skip
VariableNames: TypeAlias = Annotated[
    tuple[str, ...], checked(values.list_of(_variable_name)), WithJsonSchema(_STRINGS)
]
Pattern: TypeAlias = Annotated[
    str, checked(_pattern), WithJsonSchema({"type": "string", "format": "regex"})
]
PathOrUrl: TypeAlias = Annotated[str, checked(_path_or_url), WithJsonSchema(_STRING)]
Forwards: TypeAlias = Annotated[
    Mapping[int, int], checked(_forwards),
    WithJsonSchema({
        "type": "object",
        "patternProperties": {"^[0-9]{1,5}$": {"type": "integer", "minimum": 1, "maximum": 65535}},
        "additionalProperties": False,
    }),
]  # fmt: skip
