"""`--set gpus.count=2`: one key of a profile, typed by the schema and not by how it looks."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence

import tomli
import tomlkit
from pydantic import BaseModel, TypeAdapter, ValidationError

from cockpit.config.document import Document
from cockpit.config.kinds import SERVER_KINDS
from cockpit.config.profile_problems import table_at, toml_keys
from cockpit.config.toml_lines import KeyPath
from cockpit.config.values import shown

_NOTHING = object()


def apply_overrides(document: Document, model: type[BaseModel], overrides: Sequence[str]) -> None:
    """Put every override into the document's values; what cannot be read is reported."""
    for text in overrides:
        key, equals, value = text.partition("=")
        path = _key_path(key) if equals else None
        if path is None:
            document.overridden.add((text,))
            document.report((text,), "bad_override", given=shown(text))
            continue
        if path[0] in SERVER_KINDS and len(path) > 1:
            path = (path[0], path[1].replace("-", "_"), *path[2:])
        document.overridden.add(path)
        _put(document, path, _typed(model, path, value))


def override_text(key: str, value: object) -> str:
    """The `--set` that makes `key` that value: how a remedy's patch travels."""
    return f"{key}={value if isinstance(value, str) else tomlkit.item(value).as_string()}"


def _key_path(key: str) -> tuple[str, ...] | None:
    """The parts of a dotted key, quotes as in TOML."""
    try:
        node: object = tomli.loads(f"{key.strip()} = 0") if "\n" not in key else 0
    except (ValueError, RecursionError):  # a number may be too long even for TOML
        return None
    parts: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        name, node = next(iter(node.items()))
        parts.append(name)
    return tuple(parts) if node == 0 and parts else None


def _typed(model: type[BaseModel], path: tuple[str, ...], text: str) -> object:
    """The first reading of the text that the schema takes there; the text itself when it takes none."""
    fits = _Schema(model, path)
    return next((value for value in _readings(text) if fits.takes(value)), text)


def _readings(text: str) -> Iterator[object]:
    """As a list if it looks like one, as it stands, as TOML has it, as the items of a list."""
    value = _toml(text)
    if isinstance(value, list):
        yield value
    yield text
    if value is not _NOTHING:
        yield value
    items = _toml(f"[{text}]")
    if items is not _NOTHING:
        yield items
    yield [part.strip() for part in text.split(",")]


def _toml(text: str) -> object:
    if "\n" in text:
        return _NOTHING
    try:
        return tomli.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # a number may be too long even for TOML
        return _NOTHING


class _Schema:
    """What the schema takes at one path, which may lead into a table of free keys such as env.set."""

    def __init__(self, model: type[BaseModel], path: tuple[str, ...]) -> None:
        self._adapter: TypeAdapter[object] | None = None
        self._inner: tuple[str, ...] = ()
        for length in range(len(path), 0, -1):
            table = table_at(model, path[: length - 1])
            info = toml_keys(table).get(path[length - 1]) if table is not None else None
            if info is not None:
                self._adapter = TypeAdapter(info.rebuild_annotation())
                self._inner = path[length:]
                break

    def takes(self, value: object) -> bool:
        if self._adapter is None:
            return False
        for key in reversed(self._inner):
            value = {key: value}
        try:
            self._adapter.validate_python(value)
        except ValidationError:
            return False
        return True


def _put(document: Document, path: KeyPath, value: object) -> None:
    """Set the value, making tables on the way; a plain value in the way is reported."""
    table = document.data
    for length, part in enumerate(path[:-1], start=1):
        inner = table.setdefault(str(part), {})
        if not isinstance(inner, dict):
            document.report(path, "not_a_table", other=".".join(map(str, path[:length])))
            return
        table = inner
    table[str(path[-1])] = value


def changed_text(text: str, model: type[BaseModel], overrides: Sequence[str]) -> str:
    """The TOML with the overrides written into it, comments kept; what cannot be read is left out."""
    document = tomlkit.parse(text)
    for override in overrides:
        key, equals, value = override.partition("=")
        path = _key_path(key) if equals else None
        if path is None:
            continue
        if path[0] in SERVER_KINDS and len(path) > 1:
            path = (path[0], _as_spelt(document.get(path[0]), path[1]), *path[2:])
        table: MutableMapping[str, object] = document
        for part in path[:-1]:
            inner = table.setdefault(part, tomlkit.table())
            if not isinstance(inner, MutableMapping):
                break
            table = inner
        else:
            table[path[-1]] = _typed(model, path, value)
    return tomlkit.dumps(document)


def _as_spelt(table: object, key: str) -> str:
    """A server's key with `-` or `_`, as the table has it."""
    keys = list(table) if isinstance(table, MutableMapping) else []
    same = [one for one in keys if str(one).replace("-", "_") == key.replace("-", "_")]
    return str(same[0]) if same else key
