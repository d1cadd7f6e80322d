"""pydantic's errors as problems of the file: our codes, the file's own spelling of each key."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from cockpit.config.document import Document
from cockpit.config.values import closest, shown

_EXPECTED = {
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "literal_error": "one of the words",
}


def report_errors(document: Document, model: type[BaseModel], error: ValidationError) -> None:
    """Add every error to the document's problems."""
    for detail in error.errors(include_url=False):
        path = detail["loc"]
        context: Mapping[str, Any] = detail.get("ctx", {})
        kind = detail["type"]
        if kind == "extra_forbidden":
            parent = table_at(model, path[:-1])
            document.unknown(path, tuple(toml_keys(parent)) if parent else ())
        elif kind == "missing":
            document.report(path, "missing_key", hint=_hint(model, path))
        elif kind == "literal_error":
            _report_word(document, path, detail["input"], str(context.get("expected", "")))
        elif kind == "bad_value":
            document.report_bad(path, context["error"])
        else:
            expected = _EXPECTED.get(kind, "what it should be")
            document.report(path, "wrong_type", given=shown(detail["input"]), expected=expected)


def _report_word(
    document: Document, path: tuple[str | int, ...], given: object, expected: str
) -> None:
    allowed = tuple(re.findall(r"'([^']*)'", expected))
    near = closest(given, allowed) if isinstance(given, str) else None
    document.report(path, "not_one_of", given=shown(given), allowed=allowed, suggestion=near)


def _hint(model: type[BaseModel], path: tuple[str | int, ...]) -> str | None:
    """What a missing key could be: the words that it may be set to, else its description."""
    parent = table_at(model, path[:-1])
    info = toml_keys(parent).get(str(path[-1])) if parent else None
    if info is None:
        return None
    words = [arg for arg in get_args(info.annotation) if isinstance(arg, str)]
    return f"one of {', '.join(words)}" if words else info.description


def toml_keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a table by the key that the file uses."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def table_at(model: type[BaseModel], path: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The table that a path of keys leads to; None when it leads to a plain value or nowhere."""
    table: type[BaseModel] | None = model
    for part in path:
        info = toml_keys(table).get(str(part)) if table is not None else None
        table = _table_of(info.annotation) if info is not None else None
    return table


def _table_of(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return next((found for arg in get_args(annotation) if (found := _table_of(arg))), None)
    return None
