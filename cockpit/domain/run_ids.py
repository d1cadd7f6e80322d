"""Run ids: short, readable, sortable within a profile by time, and unique without asking a host."""

from __future__ import annotations

import re
import unicodedata

from cockpit.domain.models import RunId

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""What a run id looks like, here and on the host: it names a folder and is put into an environment."""

RANDOM_BITS = 15
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME_CHARS = 40
_EPOCH_S = 1_735_689_600
"""2025-01-01: six digits of base 32 count its seconds until 2059."""


def new_run_id(name: str, wall_s: float, random: int) -> RunId:
    """`qwen-lora-` + six digits of time + three of `random`, of which 15 bits are used."""
    seconds = max(0, int(wall_s) - _EPOCH_S)
    return RunId(f"{_slug(name)}-{_base32(seconds, 6)}{_base32(random, 3)}")


def is_run_id(text: str) -> bool:
    return RUN_ID.fullmatch(text) is not None


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_NAME_CHARS].rstrip("-") or "run"


def _base32(number: int, digits: int) -> str:
    return "".join(_ALPHABET[(number >> 5 * place) & 31] for place in reversed(range(digits)))
