"""What our own instruments say about an incident: the card's memory before it, and who is on the card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.domain.incidents import Incident
from cockpit.domain.models import GpuSample
from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_text
from cockpit.engine.fleet import HostState, history_key
from cockpit.i18n import _
from cockpit.widgets.drawing import padded
from cockpit.widgets.gauges import spark
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import Para, Role

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

BEFORE_S = 600
_CELLS = 24
_MOST_PROCESSES = 4


def proof_paras(engine: EngineApi, incident: Incident, look: Look, *, indent: int) -> list[Para]:
    """The curve with the moment marked and the card's processes, as far as they are known."""
    state = None if incident.host is None else engine.fleet.hosts.get(incident.host)
    gpu = None if state is None else _card(state, incident)
    if state is None or gpu is None:
        return []
    rows = [_curve(engine, state, gpu, incident, look, indent), _company(gpu, indent)]
    return [row for row in rows if row is not None]


def _card(state: HostState, incident: Incident) -> GpuSample | None:
    cards = () if state.latest is None else state.latest.gpus
    return next((gpu for gpu in cards if gpu.index == incident.gpu), None)


def _curve(
    engine: EngineApi, state: HostState, gpu: GpuSample, incident: Incident, look: Look, indent: int
) -> Para | None:
    """The highest reading of each part of the ten minutes before; nothing when they are gone."""
    history = state.history.get(history_key(gpu))
    if history is None or state.latest is None or not gpu.mem_total_mib:
        return None
    opened_s = incident.opened_s + state.latest.at_s - engine.wall_s()
    peaks: list[int | None] = [None] * _CELLS
    for at_s, used in zip(history.at_s, history.mem_used_mib, strict=True):
        place = int((at_s - opened_s + BEFORE_S) * _CELLS / BEFORE_S)
        if used is not None and 0 <= place < _CELLS:
            known = peaks[place]
            peaks[place] = used if known is None else max(known, used)
    read = [peak for peak in peaks if peak is not None]
    if not read:
        return None
    words = _("{used} of {total}, 10 min before it").format(
        used=mib_text(read[-1], width=0), total=mib_text(gpu.mem_total_mib, width=0)
    )
    pieces: tuple[tuple[str, Role], ...] = (
        (padded(_("memory"), 10), "muted"),
        (spark(peaks, gpu.mem_total_mib, look.glyphs), "ok"),
        (look.glyphs.lost, "fatal"),
        ("  " + words, "muted"),
    )
    return Para(pieces, indent, 10)


def _company(gpu: GpuSample, indent: int) -> Para | None:
    """Who is on the card by now."""
    if gpu.processes_age_s is None:
        return None
    shown = [
        f"{safe_line(one.name or _('process'), 24)} pid {one.pid} {mib_text(one.mem_used_mib, width=0)}"
        for one in sorted(gpu.processes, key=lambda one: -(one.mem_used_mib or 0))[:_MOST_PROCESSES]
    ]
    if len(gpu.processes) > _MOST_PROCESSES:
        shown.append(_("and {n} more").format(n=len(gpu.processes) - _MOST_PROCESSES))
    text = ", ".join(shown) or _("nobody")
    return Para(((padded(_("on it now"), 10), "muted"), (text, "muted")), indent, 10)
