"""Which secrets a run's output may hold. Beside its mirror stands where they come from, never what they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from cockpit.domain.masking import Masker
from cockpit.engine.run_secrets import env_file_values, known_secrets
from cockpit.errors import ConfigError

NAMES_NOTE = "secrets"
"""A run's note on its host: names of its secrets, for a computer that did not start it."""
_MAX_NAMES = 64
_MAX_BYTES = 64 * 1024


def remember(folder: Path, names: Iterable[str], env_file: Path | None) -> None:
    """Keep, in a run's folder of ours, by what its secrets are found again."""
    text = json.dumps(
        {"names": list(names), "env_file": None if env_file is None else str(env_file)}
    )
    fd = os.open(
        folder / "secrets.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)


def has_secrets(folder: Path) -> bool:
    """Whether secrets were given from here to the run of that folder."""
    return (folder / "secrets.json").exists()


def environ_masker(noted: str) -> Masker:
    """What this computer's environment alone knows of the names that a host noted."""
    names = noted.split()[:_MAX_NAMES]
    return Masker(os.environ.get(name, "") for name in names if name.isidentifier())


async def masker_of(folder: Path, noted: str) -> Masker:
    """A masker of what is known here. `noted` is the host's word: it may name variables and no more."""
    names, env_file = _remembered(folder)
    values = list((await known_secrets(names)).values())
    if env_file is not None:
        with suppress(ConfigError):  # it is gone, or was changed: nothing to mask by
            values += env_file_values(env_file).values()
    values += [
        os.environ.get(name, "") for name in noted.split()[:_MAX_NAMES] if name.isidentifier()
    ]
    return Masker(values)


def _remembered(folder: Path) -> tuple[list[str], Path | None]:
    try:
        with (folder / "secrets.json").open("rb") as file:
            value = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError):
        return [], None
    if not isinstance(value, dict):
        return [], None
    names, env_file = value.get("names"), value.get("env_file")
    kept = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return kept[:_MAX_NAMES], Path(env_file) if isinstance(env_file, str) else None
