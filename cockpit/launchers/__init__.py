"""One module a launcher: a run profile becomes argv, environment, ports and readiness. Pure."""

from __future__ import annotations

from cockpit.config.profile import Profile
from cockpit.launchers.base import Launch, LaunchFacts, Readiness

__all__ = ["Launch", "LaunchFacts", "Readiness", "build"]


def build(profile: Profile, facts: LaunchFacts) -> Launch:
    """The command of a profile on one host. Raises ProfileError for a kind that cannot be launched yet."""
    raise NotImplementedError
