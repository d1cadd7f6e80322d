"""Values of a run's secrets: from this computer's environment, its keyring, or the profile's .env file."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.domain.dotenv import parse_dotenv
from cockpit.engine.bounds import within
from cockpit.errors import LaunchFailed, Problem, ProfileError
from cockpit.transport.own_thread import in_own_thread

if TYPE_CHECKING:
    from cockpit.config.profile import Profile

log = logging.getLogger(__name__)

KEYRING_SERVICE = "cockpit"
KEYRING_LIMIT_S = 10.0
"""A keyring that is locked asks somewhere; where nobody sees it, it would never answer."""
MAX_ENV_FILE_BYTES = 256 * 1024


async def secret_values(
    names: Iterable[str], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Each name's value. Raises LaunchFailed for one that is nowhere: a run must not start without it."""
    names = tuple(names)
    values = await known_secrets(names, environ)
    for name in names:
        if name not in values:
            raise LaunchFailed("secret_missing", name=name, service=KEYRING_SERVICE)
    return values


async def known_secrets(
    names: Iterable[str], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The values of those names that have one here: the environment first, then the keyring."""
    known = os.environ if environ is None else environ
    names = tuple(names)
    values = {name: known[name] for name in names if known.get(name)}
    for name in names:
        if name not in values and (value := await _from_keyring(name)):
            values[name] = value
    return values


async def _from_keyring(name: str) -> str | None:
    try:
        return await within(KEYRING_LIMIT_S, in_own_thread(_ask_keyring, name))
    except asyncio.TimeoutError:
        log.warning("the keyring did not answer for %s", name)
        return None


def _ask_keyring(name: str) -> str | None:
    import keyring

    try:
        return keyring.get_password(KEYRING_SERVICE, name)
    except Exception as error:  # noqa: BLE001 - a backend is anybody's code, and may raise anything
        log.info("no keyring: %s", type(error).__name__)
        return None


def env_file_of(profile: Profile) -> Path | None:
    """The profile's .env file on this computer: as written when absolute, else beside the profile."""
    if profile.env.file is None:
        return None
    path = Path(profile.env.file).expanduser()
    return path if path.is_absolute() else profile.base_dir / path


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
