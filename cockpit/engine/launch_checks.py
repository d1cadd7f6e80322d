"""What was looked at before a launch, and what a person should know of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cockpit.config.profile import Profile
from cockpit.domain.pipes import hides_the_exit_code
from cockpit.domain.placement import Card, Placement
from cockpit.engine.api import Check
from cockpit.engine.fleet import HostState
from cockpit.engine.needs import host_needs
from cockpit.engine.sh_checks import sh_checks
from cockpit.errors import Fact
from cockpit.launchers.base import Launch


def launch_checks(
    state: HostState, profile: Profile, launch: Launch, placement: Placement, *, is_up: bool
) -> tuple[Check, ...]:
    """`is_up`: there is a connection, whatever its samples say."""
    checks = [_connected(state, bool(placement.cards), is_up)]
    if state.facts is not None and not state.facts.python:
        checks += sh_checks(state.host, profile, placement)
    if placement.queued:
        checks.append(Check("cards_queued", "warning"))
    elif placement.cards:
        checks.append(Check("cards_free", "ok", {"count": len(placement.cards)}))
    checks += host_needs(profile, state.facts, placement.cards)
    checks += [Check(notice, "warning") for notice in launch.notices]
    if hides_the_exit_code(launch.argv):
        checks.append(Check("pipe_hides_code", "warning"))
    return tuple(checks)


_DIVIDING = frozenset(
    ("--tensor-parallel-size", "-tp", "--tp-size", "--tp_size", "--tp", "--num-shard")
)


def slice_checks(cards: Sequence[Card], launch: Launch) -> tuple[Check, ...]:
    """What slices of cards (MIG) cannot do: a program sees one of them, and they exchange nothing."""
    slices = [card for card in cards if card.slice]
    words = [word for each in launch.argv for word in each.split("=", 1)]
    divided = any(
        word in _DIVIDING and after.isdigit() and int(after) > 1 for word, after in pairwise(words)
    )
    if slices and divided:
        return (Check("mig_no_tensor_parallel", "warning", {"count": len(slices)}),)
    if len(slices) > 1:
        return (Check("mig_one_each", "warning", {"count": len(slices)}),)
    return ()


def _connected(state: HostState, for_cards: bool, is_up: bool) -> Check:
    """A run without cards asks nothing of the driver."""
    if state.link == "live" or (is_up and not for_cards):
        return Check("host_connected", "ok", {"host": state.host})
    if state.link == "degraded" and state.code is not None:
        facts = {key: value for key, value in state.why.items() if _is_plain(value)}
        return Check(state.code, "warning", {"host": state.host, **facts})  # type: ignore[dict-item]
    return Check("host_not_fresh", "warning", {"host": state.host})


def _is_plain(value: Fact) -> bool:
    return value is None or isinstance(value, str | int | float)
