"""From a profile to a plan, and from a plan to what a host is asked to start."""

from __future__ import annotations

import asyncio
import secrets as randomness
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from cockpit.config.hosts import HostSpec
from cockpit.config.overrides import override_text
from cockpit.config.profile import Profile, ProfileFile, find_profiles, load_profile
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.occupancy import FREE_MEM_FRACTION
from cockpit.domain.past_runs import Origin
from cockpit.domain.placement import Card, Placement, Reserved, Wanted, place
from cockpit.domain.run_ids import new_run_id
from cockpit.domain.run_spec import Card as CardRequest
from cockpit.domain.run_spec import GpuRequest, RestartPolicy, RunSpec, StopGrace
from cockpit.engine.api import CardChoice, LaunchPlan, ProfileEntry
from cockpit.engine.around_checks import around_checks
from cockpit.engine.choosing import candidate_hosts, hosts_with_room, queue_for, wanted_cards
from cockpit.engine.code_planning import with_code
from cockpit.engine.gang_plans import agreed, as_one, gang_specs, scripts_present
from cockpit.engine.launch_checks import launch_checks, slice_checks
from cockpit.engine.launch_script import script_text
from cockpit.engine.masks import NAMES_NOTE
from cockpit.engine.meeting import Meeting
from cockpit.engine.needs import python_needs
from cockpit.engine.origins import profile_again
from cockpit.engine.readiness import READY_NOTE, encode_ready
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_secrets import env_file_of, env_file_values, secret_values
from cockpit.engine.wiring import EngineParts
from cockpit.errors import ConfigError, Fact, HostUnreachable
from cockpit.launchers import build
from cockpit.launchers.base import Launch, LaunchFacts
from cockpit.transport.base import HostTransport

_USABLE = ("live", "degraded", "stale")
_NOTED_NAMES = 64
LOG_SHARE_PCT = 5.0
"""Of the host's free space, for a log whose profile says nothing about its length."""


def overrides_of(incident: Incident) -> Sequence[str]:
    """The first remedy with a patch, as `--set` strings; empty when there is none."""
    for remedy in incident.finding.remedies:
        if remedy.patch:
            return [override_text(key, value) for key, value in remedy.patch.items()]
    return []


class Launcher:
    """Plans and specs, from the home's profiles and the fleet's present state."""

    def __init__(
        self,
        parts: EngineParts,
        book: RunBook,
        is_up: Callable[[HostName], bool],
        transports: Mapping[HostName, HostTransport],
    ) -> None:
        self._parts = parts
        self._book = book
        self._is_up = is_up
        self._transports = transports

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

    def _profile(self, source: str | Origin, overrides: Sequence[str]) -> Profile:
        if isinstance(source, Origin):
            return profile_again(source, self._parts.home, overrides)
        return load_profile(source, self._parts.home, overrides)

    # -- plan -------------------------------------------------------------------------------

    async def plan(
        self,
        source: str | Origin,
        *,
        hosts: Sequence[HostName],
        gpus: Sequence[int] | None,
        overrides: Sequence[str],
    ) -> LaunchPlan:
        """Raises ProfileError, UsageError, LaunchFailed, NotNow, HostUnreachable."""
        profile = await asyncio.to_thread(self._profile, source, overrides)
        candidates = candidate_hosts(profile, self._parts.hosts, hosts)
        wanted = wanted_cards(profile, gpus)
        if profile.nodes is not None and profile.nodes > 1:
            return await self._several(profile, profile.nodes, candidates, wanted)
        if wanted is None:
            host = candidates[self._first_up(candidates)]
            return await self._complete(self._plan(profile, host, None, None))
        samples = self._samples(candidates)
        placement = place(samples, wanted, self._reserved())
        if placement.host is None:
            placement = queue_for(profile, samples, wanted, placement)
        assert placement.host is not None
        return await self._complete(
            self._plan(profile, candidates[placement.host], wanted, placement)
        )

    async def _several(
        self,
        profile: Profile,
        count: int,
        candidates: Mapping[HostName, HostSpec],
        wanted: Wanted | None,
    ) -> LaunchPlan:
        """The first hosts with room, each with its rank. Raises NotNow, ProfileError."""
        states = self._parts.fleet.hosts
        up = [host for host in candidates if self._is_up(host) or states[host].link in _USABLE]
        samples = {host: states[host].latest for host in up if states[host].link in _USABLE}
        places = hosts_with_room(profile, up, samples, wanted, self._reserved())
        facts_of = LaunchFacts(
            nodes=count, master_addr=candidates[places[0].host].host or "127.0.0.1"
        )
        plans = [
            self._plan(
                profile, candidates[one.host], wanted, one.cards, replace(facts_of, node_rank=rank)
            )
            for rank, one in enumerate(places[:count])
        ]
        plans = list(await asyncio.gather(*(self._complete(plan) for plan in plans)))
        checks = await asyncio.gather(
            agreed(plans, self._transports), scripts_present(plans, self._transports)
        )
        return as_one(plans, chain(*checks))

    async def gang_specs(
        self, plan: LaunchPlan, first: RunSpec, meeting: Meeting
    ) -> Sequence[RunSpec]:
        """What each host of the plan is asked to start. Raises LaunchFailed, ProfileError."""
        return await gang_specs(plan, first, meeting, self.spec)

    async def _complete(self, plan: LaunchPlan) -> LaunchPlan:
        """With what takes a moment: the packages of its Python, and the code that it sends."""
        assert plan.launch is not None
        asked = await python_needs(plan.profile, plan.launch, self._transports.get(plan.host))
        plan = replace(plan, checks=(*plan.checks, *asked))
        return await with_code(plan, self._book.of_host(plan.host))

    def _first_up(self, candidates: Mapping[HostName, HostSpec]) -> HostName:
        """A run without cards needs a connection, and no sample."""
        states = self._parts.fleet.hosts
        for host in candidates:
            if self._is_up(host) or states[host].link in _USABLE:
                return host
        raise self._none_ready(candidates)

    def _samples(self, candidates: Mapping[HostName, HostSpec]) -> list[HostSample]:
        """The newest sample of each host that can be used. Raises HostUnreachable when there is none."""
        states = [self._parts.fleet.hosts[host] for host in candidates]
        samples = [s.latest for s in states if s.latest is not None and s.link in _USABLE]
        if not samples:
            raise self._none_ready(candidates)
        return samples

    def _none_ready(self, candidates: Mapping[HostName, HostSpec]) -> HostUnreachable:
        first = next((self._parts.fleet.hosts[host] for host in candidates), None)
        why: dict[str, Fact] = {
            "host": ", ".join(candidates),
            "why": first.code if first is not None else None,
        }
        return HostUnreachable("no_host_ready", **why)

    def _reserved(self) -> Reserved:
        """Cards that a run holds, whether or not its processes use them yet."""
        return {
            (view.host, slice_ or index): str(view.run)
            for view in self._book.all()
            if not view.ended and view.state != "queued"
            for index, slice_ in zip_longest(view.gpus, view.slices[: len(view.gpus)])
        }

    def _plan(
        self,
        profile: Profile,
        host: HostSpec,
        wanted: Wanted | None,
        placement: Placement | None,
        facts: LaunchFacts | None = None,
    ) -> LaunchPlan:
        found = placement or Placement(host.name, (), ())
        take = len(found.cards) if wanted is None else wanted.number(len(found.cards))
        cards = found.cards[:take]
        indices = tuple(card.index for card in cards)
        visible = tuple(card.slice or str(card.index) for card in cards)
        launch = build(profile, replace(facts or LaunchFacts(), gpus=indices, visible=visible))
        return LaunchPlan(
            profile=profile,
            host=host.name,
            cards=tuple(_choice(card) for card in cards),
            candidates=tuple(_choice(card) for card in found.candidates),
            argv=launch.argv,
            cwd=launch.cwd,
            env_set=dict(launch.env),
            env_secret_names=launch.secret_names,
            forwards=launch.forwards,
            script=script_text(launch),
            price_per_h=host.price_per_h,
            currency=host.currency,
            checks=(
                *launch_checks(
                    self._parts.fleet.hosts[host.name],
                    profile,
                    launch,
                    found,
                    is_up=self._is_up(host.name),
                ),
                *slice_checks(cards, launch),
                *around_checks(profile, host),
            ),
            launch=launch,
            acceptable=tuple(card.index for card in found.cards),
            slices=tuple(card.slice for card in found.cards),
            queued=found.queued,
        )

    # -- spec -------------------------------------------------------------------------------

    async def spec(self, plan: LaunchPlan) -> RunSpec:
        """What the plan's host is asked to start, secrets included. Raises LaunchFailed, ProfileError."""
        profile, launch = plan.profile, plan.launch
        assert launch is not None, "a plan that this launcher made has its launch"
        secrets = await self._secrets(profile, launch)
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
            secrets=secrets,
            gpus=self._gpu_request(plan),
            stop=StopGrace(profile.stop.int_s, profile.stop.term_s),
            run_root=self._parts.hosts[plan.host].run_root,
            data_dir=self._parts.hosts[plan.host].data_dir,
            log_max_mib=profile.log.max_mib,
            log_share_pct=None if "max_mib" in profile.log.model_fields_set else LOG_SHARE_PCT,
            disk_free_mib=(profile.needs.disk_mib or 0) if profile.needs is not None else 0,
            restart=_restart_policy(profile),
            expect="server" if profile.is_server else "end",
            before=profile.hooks.before,
            after=profile.hooks.after,
            tags=profile.tags,
            notes=_notes(launch, secrets),
        )

    async def _secrets(self, profile: Profile, launch: Launch) -> dict[str, str]:
        values: dict[str, str] = {}
        env_file = env_file_of(profile)
        if env_file is not None:
            values |= await asyncio.to_thread(env_file_values, env_file)
        return values | await secret_values(launch.secret_names)

    def _gpu_request(self, plan: LaunchPlan) -> GpuRequest | None:
        if not plan.cards:
            return None
        gpus = plan.profile.gpus
        uuids = self._uuids(plan.host)
        cards = tuple(
            CardRequest(index, slice_ or uuids.get(index, f"index-{index}"))
            for index, slice_ in zip_longest(plan.acceptable, plan.slices)
        )
        if gpus is None:
            return GpuRequest(cards=cards, count=len(plan.cards))
        return GpuRequest(
            cards=cards,
            count=len(plan.cards),
            min_free_mib=_least_free_mib(plan, gpus.min_free_mib, gpus.share),
            wait_s=gpus.wait_s or 0.0,
            share=gpus.share,
        )

    def _uuids(self, host: HostName) -> dict[int, str]:
        latest = self._parts.fleet.hosts[host].latest
        return {} if latest is None else {gpu.index: gpu.uuid for gpu in latest.gpus if gpu.uuid}


def _restart_policy(profile: Profile) -> RestartPolicy:
    said = profile.restart
    return RestartPolicy(said.on, said.max, said.backoff_s, said.resume_args)


def _least_free_mib(plan: LaunchPlan, said: int | None, share: bool) -> int | None:
    """While a run waits, its host must tell a card that came free from one that a stranger still holds."""
    totals = [
        card.total_mib
        for card in plan.candidates
        if card.host == plan.host and card.index in plan.acceptable and card.total_mib
    ]
    if share or not plan.queued or not totals:
        return said
    return max(said or 0, int((1 - FREE_MEM_FRACTION) * min(totals)))


def _choice(card: Card) -> CardChoice:
    memory = card.free_mib, card.total_mib
    return CardChoice(card.host, card.index, card.name, *memory, card.holder, card.slice)


def _notes(launch: Launch, secrets: Mapping[str, str]) -> dict[str, str]:
    notes = {} if launch.ready is None else {READY_NOTE: encode_ready(launch.ready)}
    if secrets:
        notes[NAMES_NOTE] = " ".join(sorted(secrets)[:_NOTED_NAMES])
    return notes
