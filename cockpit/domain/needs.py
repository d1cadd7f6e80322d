"""Whether a host has what a profile needs: versions against conditions such as ">=2.4,<3"."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


def meets(version: str | None, condition: str) -> bool | None:
    """None where it cannot be told: no version, or one of a form that nobody can compare.

    A condition without an operator is a least version. A build such as 2.4.0+cu121 counts as 2.4.0.
    """
    if not version:
        return None
    try:
        wanted = SpecifierSet(",".join(_spelled(part) for part in condition.split(",")))
        return wanted.contains(Version(Version(version).public), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return None


def _spelled(part: str) -> str:
    part = part.strip()
    return part if part[:1] in "<>=!~" else f">={part}"
