"""JSON Schema of a run profile, made of the same classes that read it."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from cockpit.config.kinds import KIND_TABLES
from cockpit.config.profile import Profile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Defaults as JSON has them: a tuple is a list."""

    def encode_default(self, dft: Any) -> Any:
        return to_jsonable_python(dft)


def json_schema() -> dict[str, Any]:
    """For editors: what the loader checks of each key, descriptions included."""
    schema = _plain(Profile.model_json_schema(by_alias=True, schema_generator=_Generator))
    schema["required"] = [key for key in schema["required"] if key != "name"]
    kinds = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"required": [kind]}}
        for kind in KIND_TABLES
    ]
    return {"$schema": _DIALECT, **schema, "title": "cockpit run profile", "allOf": kinds}


def _plain(node: Any) -> Any:
    """Without what TOML or a person would not write: null, 15.0 for "15s", a whole table as default."""
    if isinstance(node, list):
        return [_plain(item) for item in node if item != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items()}
    if len(kept.get("anyOf", ())) == 1:
        kept |= kept.pop("anyOf")[0]
    if "default" in kept and not _is_of_type(kept["default"], str(kept.get("type"))):
        del kept["default"]
    return kept


def _is_of_type(value: object, name: str) -> bool:
    """Whether a default is of the schema's own plain type."""
    if name in ("integer", "number"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    types: dict[str, type] = {"string": str, "boolean": bool, "array": list}
    return name in types and isinstance(value, types[name])
