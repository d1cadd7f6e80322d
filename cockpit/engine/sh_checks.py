"""What a person should know before a run on a host without Python, and what such a host cannot do at all."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.config.profile import Profile
from cockpit.domain.models import HostName
from cockpit.domain.placement import Placement
from cockpit.engine.api import Check


def sh_checks(host: HostName, profile: Profile, placement: Placement) -> list[Check]:
    checks = [Check("sh_only_run", "warning", {"host": host})]
    if placement.cards and not placement.queued:
        checks.append(Check("sh_only_no_lock", "warning", {"host": host}))
    for what in _beyond_a_shell(profile, placement):
        checks.append(Check("sh_only_cannot", "blocked", {"host": host, "what": what}))
    return checks


def _beyond_a_shell(profile: Profile, placement: Placement) -> Iterator[str]:
    """By the names that a profile has for them."""
    present = {
        "[gpus] wait": placement.queued,
        "[restart]": profile.restart.on != "never",
        "[hooks] before": profile.hooks.before,
        "[hooks] after": profile.hooks.after,
        "[code]": profile.code is not None,
        "[fetch]": profile.fetch is not None,
        "nodes": (profile.nodes or 1) > 1,
    }
    return (name for name, is_there in present.items() if is_there)
