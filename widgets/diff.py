"""A profile change as lines: what stands there now, and what would stand there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.widgets.text_pane import Para, code


def toml_value(value: object) -> str:
    """A value as TOML writes it, in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} = {toml_value(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False)


def value_at(document: Mapping[str, object], dotted: str) -> object | None:
    """The value under a dotted key; None when it is not set."""
    found: object = document
    for part in dotted.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def patch_paras(
    patch: Mapping[str, object], before: Mapping[str, object] | None, *, indent: int = 0
) -> list[Para]:
    """`- key = old` and `+ key = new` for each key. Without the profile only what would be set."""
    lines: list[Para] = []
    for key, new in patch.items():
        old = None if before is None else value_at(before, key)
        if old is not None:
            lines += _changed(key, old, new, indent)
        else:
            lines.append(code((f"+ {key} = {safe_line(toml_value(new))}", "ok"), indent=indent))
    return lines


def _changed(key: str, old: object, new: object, indent: int) -> list[Para]:
    return [
        code((f"- {key} = {safe_line(toml_value(old))}", "fatal"), indent=indent),
        code((f"+ {key} = {safe_line(toml_value(new))}", "ok"), indent=indent),
    ]


def override_paras(overrides: Sequence[str], *, indent: int = 0) -> list[Para]:
    """`--set` strings as they would be given."""
    return [code((f"--set {safe_line(one)}", "ok"), indent=indent) for one in overrides] or [
        code((_("no change of the profile"), "muted"), indent=indent)
    ]
