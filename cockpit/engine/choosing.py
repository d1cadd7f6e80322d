"""Where a profile may go: which hosts, which cards, and what was short when there is no room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cockpit.config.hosts import HostSpec, host_unknown
from cockpit.config.profile import Profile
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.placement import Card, Placement, Reserved, Wanted, place
from cockpit.errors import Fact, NotNow, Problem, ProfileError


def candidate_hosts(
    profile: Profile, hosts: Mapping[HostName, HostSpec], chosen: Sequence[str] = ()
) -> dict[HostName, HostSpec]:
    """The hosts that a run may go to, in the order of preference: the chosen ones, the profile's, those with
    one of its tags, all. Raises UsageError, ProfileError for a host that is not configured.
    """
    known = tuple(hosts)
    for name in chosen:
        if name not in hosts:
            raise host_unknown(name, known)
    named = profile.candidate_hosts
    missing = [name for name in named if name not in hosts]
    if not chosen and missing:
        key = "from" if profile.from_hosts else "hosts"
        problems = tuple(
            Problem("profile_host_unknown", key=key, host=name, known=known) for name in missing
        )
        raise ProfileError(problems=problems, name=profile.name)
    names = tuple(chosen) or named or _tagged(profile, hosts) or known
    return {HostName(name): hosts[HostName(name)] for name in names}


def _tagged(profile: Profile, hosts: Mapping[HostName, HostSpec]) -> tuple[str, ...]:
    return tuple(name for name, spec in hosts.items() if set(profile.tags) & set(spec.tags))


def wanted_cards(profile: Profile, gpus: Sequence[int] | None) -> Wanted | None:
    """What is asked for; None: the run reserves nothing."""
    table = profile.gpus
    if gpus is not None:
        share = table.share if table is not None else False
        least = table.min_free_mib if table is not None else None
        return Wanted(len(gpus), tuple(gpus), least, share)
    if table is None:
        return None
    count = None if table.wanted == "all" else table.wanted
    indices = None if table.index is None else tuple(table.index)
    return Wanted(count, indices, table.min_free_mib, table.share)


@dataclass(frozen=True, slots=True)
class Room:
    """A host that has room; `cards` is None for a run that reserves none."""

    host: HostName
    cards: Placement | None


def hosts_with_room(
    profile: Profile,
    up: Sequence[HostName],
    samples: Mapping[HostName, HostSample | None],
    wanted: Wanted | None,
    reserved: Reserved,
) -> list[Room]:
    """Of the hosts that are up those with room, as many as the profile has nodes or more. Raises NotNow."""
    found = []
    for host in up:
        sample = samples.get(host)
        if wanted is None:
            found.append(Room(host, None))
        elif sample is not None:
            cards = place([sample], wanted, reserved)
            if cards.host is not None:
                found.append(Room(host, cards))
    if len(found) < (profile.nodes or 1):
        ready = ", ".join(room.host for room in found) or None
        facts: dict[str, Fact] = {"nodes": profile.nodes, "found": len(found), "hosts": ready}
        raise NotNow("gang_too_few_hosts", profile=profile.name, **facts)
    return found


def _that_would_do(cards: Sequence[Card], wanted: Wanted | None) -> tuple[Card, ...]:
    """Cards that may come free; empty when the host can never have enough."""
    if wanted is None:
        return ()
    if wanted.indices is not None:
        named = tuple(
            card
            for index in wanted.indices
            for card in cards
            if card.index == index and card.obstacle not in ("lost", "absent")
        )
        return named if {card.index for card in named} == set(wanted.indices) else ()
    alive = tuple(
        card
        for card in cards
        if card.obstacle not in ("lost", "absent") and _is_large(card, wanted)
    )
    return alive if alive and len(alive) >= (wanted.count or len(cards)) else ()


def _is_large(card: Card, wanted: Wanted) -> bool:
    least = wanted.min_free_mib
    return least is None or card.total_mib is None or card.total_mib >= least


def _shortage_facts(
    profile: Profile, wanted: Wanted | None, candidates: Sequence[Card]
) -> dict[str, Fact]:
    least = wanted.min_free_mib if wanted is not None else None
    hosts = dict.fromkeys(card.host for card in candidates)
    return {
        "profile": profile.name,
        "count": wanted.count if wanted is not None else None,
        "min_free_mib": least,
        "min_free": None if least is None else f"{least / 1024:.4g} GiB",
        "free_cards": sum(card.obstacle is None for card in candidates),
        "cards": len(candidates),
        "nearest": tuple(_room(host, candidates) for host in hosts),
        "holders": tuple(
            f"{card.host}:{card.index} {card.holder}" for card in candidates[:16] if card.holder
        ),
    }


def _room(host: HostName, candidates: Sequence[Card]) -> str:
    """ "a100 1/2, 14.5 GiB": free cards of all, and the most memory that one has left."""
    cards = [card for card in candidates if card.host == host]
    free = sum(card.obstacle is None for card in cards)
    largest_mib = max((card.free_mib or 0 for card in cards), default=0)
    return f"{host} {free}/{len(cards)}, {largest_mib / 1024:.3g} GiB"


def queue_for(
    profile: Profile, samples: Sequence[HostSample], wanted: Wanted, shortage: Placement
) -> Placement:
    """Wait on the first host that has enough cards at all, when the profile allows it. Raises NotNow."""
    wait_s = profile.gpus.wait_s if profile.gpus is not None else None
    for sample in samples:
        cards = tuple(card for card in shortage.candidates if card.host == sample.host)
        fit = _that_would_do(cards, wanted)
        if wait_s and fit:
            return Placement(sample.host, fit, shortage.candidates, queued=True)
    raise NotNow(**_shortage_facts(profile, wanted, shortage.candidates))
