"""Writes docs/keys.md and docs/profiles.md from the bindings and the schema; a test holds them in step.

python docs/generate.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.binding import Binding

from cockpit.config.profile_schema import json_schema
from cockpit.screens.keys import APP_BINDINGS, all_binding_ids, binding_ids

FOLDER = Path(__file__).parent
_SHOWN = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "exclamation_mark": "!",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "ampersand": "&",
    "at": "@",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "apostrophe": "'",
    "quotation_mark": '"',
}


def keys_text() -> str:
    """Every binding: its keys, its id for `[keys]`, what it does, where."""
    lines = [
        "# Keys",
        "",
        "`?` shows those that are live where you are. To remap one, name its id in `settings.toml`:",
        "",
        "```toml",
        "[keys]",
        '"theme.next" = "f8"',
        "```",
        "",
        "| keys | id | does | where |",
        "|---|---|---|---|",
    ]
    lines += sorted({_row(binding, where) for where, binding in _bindings() if binding.id})
    return "\n".join(lines) + "\n"


def _bindings() -> Iterator[tuple[str, Binding]]:
    all_binding_ids()  # imports every screen
    yield from (("everywhere", binding) for binding in APP_BINDINGS)
    for module in sorted(sys.modules):
        if not module.startswith(("cockpit.screens.", "cockpit.widgets.")):
            continue
        for found in vars(sys.modules[module]).values():
            if isinstance(found, type) and found.__module__ == module:
                bindings = vars(found).get("BINDINGS", [])
                assert binding_ids(bindings) is not None
                where = module.rpartition(".")[2].replace("_", " ")
                yield from ((where, one) for one in bindings if isinstance(one, Binding))


def _row(binding: Binding, where: str) -> str:
    keys = " ".join(f"`{_key(key)}`" for key in binding.key.split(","))
    does = binding.tooltip or binding.description
    return f"| {keys} | {binding.id} | {does} | {where} |".replace("`|`", "`\\|`")


def _key(key: str) -> str:
    return _SHOWN.get(key.strip(), key.strip())


def profiles_text() -> str:
    """Every key of a run profile, by table."""
    schema = json_schema()
    lines = [
        "# Run profiles",
        "",
        "A profile is a TOML file: `kind` says which launcher, and the table of that name what to launch.",
        "`cockpit profile check FILE` shows every mistake at once, `cockpit profile schema` prints the JSON",
        "Schema for editors, `cockpit profile new NAME --from READY` copies a ready one.",
        "",
        "## Top level",
        "",
        *_table(schema, schema, skip_tables=True),
    ]
    for name, node in schema["properties"].items():
        table = _resolved(node, schema)
        if "properties" in table:
            words = [table["description"], ""] if table.get("description") else []
            lines += ["", f"## [{name}]", "", *words, *_table(table, schema)]
    return "\n".join(lines) + "\n"


def _table(node: dict[str, Any], schema: dict[str, Any], skip_tables: bool = False) -> list[str]:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, each in node["properties"].items():
        table = _resolved(each, schema)
        if skip_tables and "properties" in table:
            continue
        default = "" if "default" not in each else f"`{_plain(each['default'])}`"
        meaning = each.get("description", "").replace("|", "\\|")
        rows.append(f"| `{key}` | {_type(table)} | {default} | {meaning} |")
    return rows


def _plain(value: object) -> str:
    return "true" if value is True else "false" if value is False else str(value)


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(f"`{choice}`" for choice in node["enum"])
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_type(each) for each in node["anyOf"]))
    examples = node.get("examples")
    shown = f", such as `{examples[0]}`" if examples else ""
    return f"{node.get('type', 'value')}{shown}"


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The node behind a `$ref`."""
    for each in (node, *node.get("anyOf", ()), *node.get("allOf", ())):
        if "$ref" in each:
            found: dict[str, Any] = schema["$defs"][each["$ref"].rpartition("/")[2]]
            return found
    return node


def main() -> None:
    (FOLDER / "keys.md").write_text(keys_text(), encoding="utf-8")
    (FOLDER / "profiles.md").write_text(profiles_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
