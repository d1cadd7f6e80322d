"""Where profiles are: a path, the home's folder, the ones that ship with cockpit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cockpit
from cockpit.config.address import is_own_name
from cockpit.config.paths import Home, expanded, is_there, tilde
from cockpit.config.values import closest, shown
from cockpit.errors import ProfileError

SHIPPED_DIR = Path(cockpit.__file__).parent / "profiles"
_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A profile that can be chosen by `name`; nothing of it was read yet."""

    name: str
    path: Path
    origin: Literal["home", "shipped", "file"]


def find_profiles(home: Home) -> list[ProfileFile]:
    """The home's profiles, then the shipped ones that none of the home hides, by name."""
    own = _in_folder(home.profiles_dir, "home")
    hidden = {profile.name for profile in own}
    shipped = [p for p in _in_folder(SHIPPED_DIR, "shipped") if p.name not in hidden]
    return own + shipped


def resolve_profile(source: str | Path, home: Home) -> ProfileFile:
    """The file that `source` means. A path has a `/` or ends in .toml. Raises ProfileError."""
    text = str(source)
    if isinstance(source, Path) or "/" in text or text.endswith(_SUFFIX):
        path = expanded(text)
        if not is_there(path):
            raise ProfileError("profile_missing", path=shown(text).strip('"'))
        return ProfileFile(path.stem, path, "file")
    known = {profile.name: profile for profile in find_profiles(home)}
    if text in known:
        return known[text]
    raise ProfileError(
        "profile_unknown",
        name=shown(text).strip('"') or '""',
        suggestion=closest(text, known),
        looked=(tilde(home.profiles_dir), tilde(SHIPPED_DIR)),
    )


def _in_folder(folder: Path, origin: Literal["home", "shipped"]) -> list[ProfileFile]:
    try:
        paths = sorted(folder.glob(f"*{_SUFFIX}"))
    except OSError:
        return []
    return [
        ProfileFile(path.stem, path, origin)
        for path in paths
        if is_own_name(path.stem) and is_there(path)
    ]
