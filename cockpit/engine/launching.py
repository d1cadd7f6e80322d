"""From a profile to a plan, and from a plan to what a host is asked to start."""

from __future__ import annotations

import asyncio
import secrets as randomness
from collections.abc import Mapping, Sequence
from pathlib import Path

from cockpit.config.hosts import HostSpec
from cockpit.config.profile import Profile, ProfileFile, find_profiles, load_profile
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.placement import Card, Placement, place
from cockpit.domain.run_ids import new_run_id
from cockpit.domain.run_spec import Card as CardRequest
from cockpit.domain.run_spec import GpuRequest, RunSpec, StopGrace
from cockpit.engine.api import CardChoice, Check, LaunchPlan, ProfileEntry
from cockpit.engine.choosing import candidate_hosts, queue_for, wanted_cards
from cockpit.engine.launch_script import script_text
from cockpit.engine.readiness import encode_ready
from cockpit.engine.run_secrets import env_file_values, secret_values
from cockpit.engine.wiring import EngineParts
from cockpit.errors import ConfigError, Fact, HostUnreachable
from cockpit.launchers import build
from cockpit.launchers.base import Launch, LaunchFacts

READY_NOTE = "ready"
_USABLE = ("live", "degraded", "stale")


def overrides_of(incident: Incident) -> Sequence[str]:
    """The first remedy with a patch, as `--set` strings; empty when there is none."""
    for remedy in incident.finding.remedies:
        if remedy.patch:
            return [f"{key}={_toml_value(value)}" for key, value in remedy.patch.items()]
    return []


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Launcher:
    """Plans and specs, from the home's profiles and the fleet's present state."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts

    # -- profiles ---------------------------------------------------------------------------

    def profiles(self) -> Sequence[ProfileEntry]:
        return [self._entry(file) for file in find_profiles(self._parts.home)]

    def _entry(self, file: ProfileFile) -> ProfileEntry:
        home, path = self._parts.home, file.path
        try:
            profile = load_profile(str(path), home)
        except ConfigError as error:
            return ProfileEntry(path.stem, path, file.origin, "?", "", max(1, len(error.problems)))
        return ProfileEntry(path.stem, path, file.origin, profile.kind, profile.description)

    # -- plan -------------------------------------------------------------------------------

    async def plan(
        self,
        source: str,
        *,
        hosts: Sequence[HostName],
        gpus: Sequence[int] | None,
        overrides: Sequence[str],
    ) -> LaunchPlan:
        profile = await asyncio.to_thread(load_profile, source, self._parts.home, overrides)
        candidates = candidate_hosts(profile, self._parts.hosts, hosts)
        samples = self._samples(candidates)
        wanted = wanted_cards(profile, gpus)
        if wanted is None:
            free = Placement(samples[0].host, (), ())
            return self._plan(profile, candidates[samples[0].host], free, queued=False)
        placement = place(samples, wanted)
        queued = placement.host is None
        if queued:
            placement = queue_for(profile, samples, wanted, placement)
        assert placement.host is not None
        return self._plan(profile, candidates[placement.host], placement, queued)

    def _samples(self, candidates: Mapping[HostName, HostSpec]) -> list[HostSample]:
        """The newest sample of each host that can be used. Raises HostUnreachable when there is none."""
        states = [self._parts.fleet.hosts[host] for host in candidates]
        samples = [s.latest for s in states if s.latest is not None and s.link in _USABLE]
        if not samples:
            why: dict[str, Fact] = {"host": ", ".join(candidates), "why": states[0].code}
            raise HostUnreachable("no_host_ready", **why)
        return samples

    def _plan(
        self, profile: Profile, host: HostSpec, placement: Placement, queued: bool
    ) -> LaunchPlan:
        indices = tuple(card.index for card in placement.cards)
        launch = build(profile, LaunchFacts(gpus=indices))
        secret_names = launch.secret_names
        return LaunchPlan(
            profile=profile,
            host=host.name,
            cards=tuple(_choice(card) for card in placement.cards),
            candidates=tuple(_choice(card) for card in placement.candidates),
            argv=launch.argv,
            cwd=launch.cwd,
            env_set=dict(launch.env),
            env_secret_names=secret_names,
            forwards=launch.forwards,
            script=script_text(launch, indices),
            price_per_h=host.price_per_h,
            currency=host.currency,
            checks=self._checks(host, placement, queued),
            launch=launch,
        )

    def _checks(self, host: HostSpec, placement: Placement, queued: bool) -> tuple[Check, ...]:
        state = self._parts.fleet.hosts[host.name]
        checks = [Check("host_connected", "ok" if state.link == "live" else "warning")]
        if state.facts is not None and not state.facts.python:
            checks.append(Check("no_python", "blocked", {"host": host.name}))
        if placement.candidates:
            verdict = Check("cards_free", "ok", {"count": len(placement.cards)})
            checks.append(Check("cards_queued", "warning") if queued else verdict)
        return tuple(checks)

    # -- spec -------------------------------------------------------------------------------

    def spec(self, plan: LaunchPlan) -> RunSpec:
        """What the plan's host is asked to start, secrets included. Raises LaunchFailed, ProfileError."""
        profile, launch = plan.profile, plan.launch
        assert launch is not None, "a plan that this launcher made has its launch"
        host = self._parts.hosts[plan.host]
        wall_s = self._parts.clock.wall_s()
        return RunSpec(
            run=new_run_id(profile.name, wall_s, randomness.randbits(15)),
            profile=profile.name,
            kind=profile.kind,
            argv=launch.argv,
            cwd=launch.cwd,
            env=launch.env,
            env_defaults=launch.env_defaults,
            path_first=launch.path_first,
            secrets=self._secrets(profile, launch),
            gpus=self._gpu_request(plan),
            stop=StopGrace(profile.stop.int_s, profile.stop.term_s),
            run_root=host.run_root,
            log_max_mib=profile.log.max_mib,
            tags=profile.tags,
            notes=_notes(launch),
        )

    def _secrets(self, profile: Profile, launch: Launch) -> dict[str, str]:
        values: dict[str, str] = {}
        if profile.env.file is not None:
            values |= env_file_values(self._local_path(profile, profile.env.file))
        return values | secret_values(launch.secret_names)

    def _local_path(self, profile: Profile, written: str) -> Path:
        """A path of this computer: as written when absolute, else beside the profile."""
        path = Path(written).expanduser()
        return path if path.is_absolute() else profile.base_dir / path

    def _gpu_request(self, plan: LaunchPlan) -> GpuRequest | None:
        if not plan.cards:
            return None
        gpus = plan.profile.gpus
        uuids = self._uuids(plan.host)
        queued = any(check.code == "cards_queued" for check in plan.checks)
        count = cards_to_take(plan, queued)
        return GpuRequest(
            cards=tuple(
                CardRequest(card.index, uuids.get(card.index, f"index-{card.index}"))
                for card in plan.cards
            ),
            count=count,
            min_free_mib=gpus.min_free_mib if gpus is not None else None,
            wait_s=(gpus.wait_s or 0.0) if gpus is not None else 0.0,
            share=gpus.share if gpus is not None else False,
        )

    def _uuids(self, host: HostName) -> dict[int, str]:
        latest = self._parts.fleet.hosts[host].latest
        return {} if latest is None else {gpu.index: gpu.uuid for gpu in latest.gpus if gpu.uuid}


def cards_to_take(plan: LaunchPlan, queued: bool) -> int:
    """While queueing, more cards may do than are needed; otherwise exactly the chosen ones are taken."""
    wanted = plan.profile.gpus.wanted if plan.profile.gpus is not None else None
    if queued and isinstance(wanted, int):
        return min(wanted, len(plan.cards))
    return len(plan.cards)


def _choice(card: Card) -> CardChoice:
    return CardChoice(card.host, card.index, card.name, card.free_mib, card.total_mib, card.holder)


def _notes(launch: Launch) -> dict[str, str]:
    return {} if launch.ready is None else {READY_NOTE: encode_ready(launch.ready)}
