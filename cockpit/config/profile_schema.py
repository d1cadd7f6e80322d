"""JSON Schema of a run profile, made of the same classes that read it."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from cockpit.config.profile import Profile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Defaults as JSON has them: a tuple is a list."""

    def encode_default(self, dft: Any) -> Any:
        return to_jsonable_python(dft)


def json_schema() -> dict[str, Any]:
    """For editors: what the loader checks of each key, descriptions included."""
    schema = Profile.model_json_schema(by_alias=True, schema_generator=_Generator)
    schema["required"] = [key for key in schema["required"] if key != "name"]
    return {"$schema": _DIALECT, **_without_inner_defaults(schema), "title": "cockpit run profile"}


def _without_inner_defaults(node: Any) -> Any:
    """Drop defaults that are not written as a person writes them: 15.0 for "15s", a whole table."""
    if isinstance(node, list):
        return [_without_inner_defaults(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _without_inner_defaults(value) for key, value in node.items()}
    if "default" in kept and not _is_plain(kept):
        del kept["default"]
    return kept


def _is_plain(schema: dict[str, Any]) -> bool:
    """Whether the default is of the schema's own plain type."""
    types = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list}
    expected = types.get(str(schema.get("type")))
    return expected is not None and isinstance(schema["default"], expected)
