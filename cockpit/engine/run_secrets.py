"""Values of a run's secrets: from this computer's environment, its keyring, or the profile's .env file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from cockpit.domain.dotenv import parse_dotenv
from cockpit.errors import LaunchFailed, Problem, ProfileError

KEYRING_SERVICE = "cockpit"
MAX_ENV_FILE_BYTES = 256 * 1024


def secret_values(names: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Each name's value. Raises LaunchFailed for one that is nowhere: a run must not start without it."""
    known = os.environ if environ is None else environ
    return {name: _value(name, known) for name in names}


def _value(name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name) or _from_keyring(name)
    if not value:
        raise LaunchFailed("secret_missing", name=name, service=KEYRING_SERVICE)
    return value


def _from_keyring(name: str) -> str | None:
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError:
        return None


def env_file_values(path: Path) -> dict[str, str]:
    """A .env file's variables; they travel like secrets. Raises ProfileError with every bad line."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ENV_FILE_BYTES + 1)
    except OSError as error:
        problem = Problem("env_file_unreadable", file=str(path), why=error.strerror or str(error))
        raise ProfileError(problems=(problem,)) from error
    if len(data) > MAX_ENV_FILE_BYTES:
        raise ProfileError(problems=(Problem("env_file_too_large", file=str(path)),))
    variables, bad = parse_dotenv(data.decode("utf-8", "replace"))
    if bad:
        raise ProfileError(
            problems=tuple(Problem("env_file_line", file=str(path), line=item.line) for item in bad)
        )
    return variables
