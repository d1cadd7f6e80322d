"""Cards that can be seen now, for a profile that found no room: so that a person may choose otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.domain.models import GpuSample, HostName
from cockpit.domain.occupancy import card_use, main_process
from cockpit.engine.api import CardChoice
from cockpit.i18n import _

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi


def known_cards(engine: EngineApi) -> list[CardChoice]:
    """Free ones first, then by how much of them is left."""
    cards = [
        CardChoice(
            host, gpu.index, gpu.name, _free_mib(gpu), gpu.mem_total_mib, _holder(engine, host, gpu)
        )
        for host, state in engine.fleet.hosts.items()
        if state.latest is not None and state.link in ("live", "degraded")
        for gpu in state.latest.gpus
        if gpu.error is None
    ]
    return sorted(cards, key=lambda card: (card.holder is not None, -(card.free_mib or 0)))


def _free_mib(gpu: GpuSample) -> int | None:
    if gpu.mem_total_mib is None or gpu.mem_used_mib is None:
        return None
    return gpu.mem_total_mib - gpu.mem_used_mib


def _holder(engine: EngineApi, host: HostName, gpu: GpuSample) -> str | None:
    for view in engine.runs.all():
        if view.host == host and not view.ended and gpu.index in view.gpus:
            return view.profile
    process = main_process(gpu)
    if process is not None:
        return ":".join(part for part in (process.user, process.name) if part) or _("a process")
    return None if card_use(gpu) == "free" else _("somebody")
