"""The form of what is asked of a host: everything is looked at before anything is done."""

import re

from supervisor_files import Refused  # type: ignore[import-not-found]
from supervisor_store import RUN_ID  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Json = dict[str, Any]

CARD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,79}$")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
MAX_CARDS = 64
RESTARTS_ON = ("never", "on-failure", "always", "on-lost")


def is_text(value: "Any") -> bool:
    return isinstance(value, str) and "\0" not in value


def is_texts(value: "Any") -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def is_command(value: "Any") -> bool:
    return is_texts(value) and value[:1] not in ([], [""]) and not value[0].startswith("-")


def is_environment(value: "Any") -> bool:
    return isinstance(value, dict) and all(
        is_text(name) and bool(ENV_NAME.match(name)) and is_text(value[name]) for name in value
    )


def is_amount(value: "Any") -> bool:
    return isinstance(value, (int, float)) and 0 <= value < 1e9


def is_card(value: "Any") -> bool:
    """A uuid becomes a file's name, an index a part of an environment."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("index"), int)
        and is_text(value.get("uuid"))
        and bool(CARD_ID.match(value["uuid"]))
    )


def is_restart(value: "Any") -> bool:
    if not isinstance(value, dict) or value.get("on") not in RESTARTS_ON:
        return False
    return is_texts(value.get("resume_args")) and all(
        is_amount(value.get(key)) for key in ("max", "backoff_s")
    )


def is_request_for_cards(value: "Any") -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("cards"), list):
        return False
    cards, count = value["cards"], value.get("count")
    if not all(map(is_card, cards)) or len({card["uuid"] for card in cards}) != len(cards):
        return False
    return isinstance(count, int) and 0 < count <= MAX_CARDS and is_amount(value.get("wait_s"))


SPEC_FORM: "dict[str, Callable[[Any], bool]]" = {
    "run": lambda value: is_text(value) and bool(RUN_ID.match(value)),
    "profile": is_text,
    "kind": is_text,
    "argv": is_command,
    "cwd": is_text,
    "script": lambda value: value is None or is_text(value),
    "env": is_environment,
    "env_defaults": is_environment,
    "path_first": is_texts,
    "gpus": lambda value: value is None or is_request_for_cards(value),
    "stop": lambda value: all(is_amount(value[key]) for key in ("int_s", "term_s")),
    "run_root": lambda value: value is None or is_text(value),
    "data_dir": lambda value: value is None or is_text(value),
    "log_max_mib": lambda value: value is None or is_amount(value),
    "log_share_pct": lambda value: value is None or is_amount(value),
    "disk_free_mib": is_amount,
    "hold_s": is_amount,
    "restart": lambda value: value is None or is_restart(value),
    "expect": lambda value: value in ("end", "server"),
    "before": lambda value: value is None or is_text(value),
    "after": lambda value: value is None or is_text(value),
    "tags": is_texts,
    "notes": lambda value: isinstance(value, dict) and is_texts(list(value.values())),
}


def check_spec(spec: "Json") -> "Json":
    """A spec of the right form, or Refused with the key that is not."""
    for key, is_good in SPEC_FORM.items():
        if not is_good(spec[key]):
            raise Refused("bad_spec", key=key)
    request = spec["gpus"]
    if request is not None and request["count"] > len(request["cards"]):
        raise Refused("too_few_cards", count=request["count"], cards=len(request["cards"]))
    return spec
