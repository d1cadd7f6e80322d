from __future__ import annotations

import json
import re
import warnings

from cockpit.config.kinds import KIND_TABLES
from cockpit.config.profile import Profile
from cockpit.config.profile_problems import toml_keys
from cockpit.config.profile_schema import json_schema


def test_the_schema_names_every_key_and_is_json() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = json.loads(json.dumps(json_schema()))
    assert set(schema["properties"]) == set(toml_keys(Profile))
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["kind"]
    assert set(schema["properties"]["kind"]["enum"]) == set(KIND_TABLES)


def test_each_kind_asks_for_its_own_table() -> None:
    rules = {rule["then"]["required"][0] for rule in json_schema()["allOf"]}
    assert rules == set(KIND_TABLES)


def test_times_and_sizes_are_text_with_a_unit() -> None:
    tables = json_schema()["$defs"]
    stop_int = tables["StopTable"]["properties"]["int"]
    min_free = tables["GpusTable"]["properties"]["min_free"]
    assert re.search(stop_int["pattern"], "15s")
    assert not re.search(stop_int["pattern"], "15")
    assert re.search(min_free["pattern"], "20 GiB")
    assert "default" not in stop_int


def test_toml_knows_no_null() -> None:
    assert "null" not in json.dumps(json_schema())
