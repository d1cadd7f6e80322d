"""What a run is started from, as it is kept for another day: the profile's text, without whom it tells.

An address of [notify] holds a token as often as not, so the table is left out; it is read again from the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from cockpit.config.paths import Home
from cockpit.config.profile import Profile, load_profile, parse_again
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName
from cockpit.domain.past_runs import Origin
from cockpit.errors import ConfigError, StorageError, UsageError

MOST_TEXT_CHARS: Final = 256 * 1024
_LEFT_OUT: Final = "notify"


def origin_of(
    profile: Profile,
    *,
    hosts: Sequence[HostName],
    gpus: Sequence[int] | None,
    overrides: Sequence[str],
) -> Origin | None:
    """None for a profile that is too long to be kept."""
    text = profile.text
    if not text or len(text) > MOST_TEXT_CHARS:
        return None
    return Origin(
        text=without_notify(text, profile.notify.urls),
        name=profile.file_name,
        file=None if profile.path is None else str(profile.path),
        base_dir=str(profile.base_dir),
        overrides=tuple(one for one in overrides if one.partition(".")[0].strip() != _LEFT_OUT),
        hosts=tuple(hosts),
        gpus=None if gpus is None else tuple(gpus),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        notified=bool(profile.notify.urls),
    )


def without_notify(text: str, urls: Sequence[str] = ()) -> str:
    """The text less its [notify] table with its comments, and less those addresses wherever they stand."""
    try:
        document = tomlkit.parse(text)
        document.pop(_LEFT_OUT, None)
        text = tomlkit.dumps(document)
    except TOMLKitError:  # tomli takes it, or there were no profile: what it holds is not known
        return ""
    for url in sorted(urls, key=len, reverse=True):
        if len(url) > len("json://x"):
            text = text.replace(url, "")
    return text


def masked(origin: Origin, masker: Masker) -> Origin:
    """The origin without any secret's value."""
    text = masker.text(origin.text)
    overrides = tuple(masker.text(one) for one in origin.overrides)
    changed = (text, overrides) != (origin.text, origin.overrides)
    return replace(origin, text=text, overrides=overrides, masked=origin.masked or changed)


def profile_again(origin: Origin, home: Home, overrides: Sequence[str] = ()) -> Profile:
    """The profile as it was then, with whom its file tells today. Raises ProfileError, UsageError."""
    if origin.masked or not origin.text:
        raise UsageError("origin_masked", file=origin.file)
    profile = parse_again(
        origin.text,
        name=origin.name,
        file=origin.file or f"{origin.name}.toml",
        base_dir=None if origin.base_dir is None else Path(origin.base_dir),
        overrides=(*origin.overrides, *overrides),
    )
    if origin.notified and origin.file is not None:
        try:
            told = load_profile(Path(origin.file), home).notify
        except (ConfigError, StorageError):
            return profile
        profile = _with_notify(profile, told.urls)
    return profile


def is_edited(origin: Origin) -> bool:
    """Whether the file says something else by now; one that is gone does not."""
    if origin.file is None or not origin.sha256:
        return False
    try:
        text = Path(origin.file).read_bytes()[: 4 * MOST_TEXT_CHARS]
    except OSError:
        return False
    return hashlib.sha256(text).hexdigest() != origin.sha256


def _with_notify(profile: Profile, urls: Sequence[str]) -> Profile:
    told = profile.notify.model_copy(update={"urls": tuple(urls)})
    return profile.model_copy(update={"notify": told})


def toml_of(origin: Origin) -> str:
    """The text with its overrides written into it, for a profile of its own. Raises ProfileError."""
    from cockpit.config.overrides import changed_text

    return changed_text(origin.text, Profile, origin.overrides) if origin.overrides else origin.text
