"""Every number of a card in words: what it is, where it was read, how old it is."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.domain.models import GpuSample
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, mib_pair_text
from cockpit.engine.fleet import HostState
from cockpit.i18n import _, ngettext
from cockpit.widgets.card_line import SPARK_BIN_S, Holder, holder_text, power_text
from cockpit.widgets.drawing import padded
from cockpit.widgets.text_pane import Para, code, heading

_NAME_CELLS = 14


def explain_card(state: HostState, gpu: GpuSample, holder: Holder, now_s: float) -> list[Para]:
    """The card under the cursor, for the help page."""
    title = _("GPU {index} of {host}, {age} ago, by {source}").format(
        index=gpu.index,
        host=safe_line(state.host, 60),
        age=duration_text(state.age_s(now_s)),
        source=_source(state),
    )
    facts = card_facts(gpu, holder)
    if gpu.error is None:
        facts.pop("error")
    return [heading(title), *(_row(fact) for fact in facts.values())]


def explain_number(
    state: HostState, gpu: GpuSample, holder: Holder, now_s: float, column: str
) -> str:
    """One number of a card, for the pointer that rests on it."""
    fact = card_facts(gpu, holder).get(column)
    if fact is None:
        return ""
    read = _("read {age} ago by {source}").format(
        age=duration_text(state.age_s(now_s)), source=_source(state)
    )
    return f"{fact.name} {fact.value}: {fact.meaning}; {read}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A number of a card in words."""

    name: str
    value: str
    meaning: str


def card_facts(gpu: GpuSample, holder: Holder) -> dict[str, Fact]:
    """By the name of the column that shows it."""
    util = "n/a" if gpu.util_pct is None else f"{gpu.util_pct} %"
    temp = "n/a" if gpu.temp_c is None else f"{gpu.temp_c} C"
    spark = _("utilisation, one cell for {bin:.0f} s").format(bin=SPARK_BIN_S)
    memory = mib_pair_text(gpu.mem_used_mib, gpu.mem_total_mib).strip()
    return {
        "error": Fact(_("error"), safe_line(gpu.error or "", 200), _("the driver's own words")),
        "util": Fact(_("utilisation"), util, _("time in which a kernel ran, of the last period")),
        "spark": Fact(_("sparkline"), _("0 to 100 %"), spark),
        "memory": Fact(_("memory"), memory, _("held by programs, of the card's own")),
        "temp": Fact(_("temperature"), temp, _("of the chip; ! when heat or a brake slows it")),
        "power": Fact(_("power"), power_text(gpu), _("drawn now, of the limit that is set")),
        "user": Fact(_("used by"), holder_text(gpu, holder), _processes_words(gpu)),
        "index": Fact(_("card"), safe_line(gpu.name, 60) or "n/a", safe_line(gpu.uuid, 60)),
    }


def _row(fact: Fact) -> Para:
    return code(
        (padded(fact.name, _NAME_CELLS), "muted"),
        (padded(fact.value, 16) + "  ", "text"),
        (fact.meaning, "muted"),
    )


def _source(state: HostState) -> str:
    source = state.latest.source if state.latest is not None else ""
    return {"nvml": "NVML", "proc": "/proc"}.get(source, source or "n/a")


def _processes_words(gpu: GpuSample) -> str:
    if gpu.processes_age_s is None:
        return _("processes were not read")
    words = ngettext("{n} process", "{n} processes", len(gpu.processes)).format(
        n=len(gpu.processes)
    )
    age = duration_text(gpu.processes_age_s)
    return words + (
        ", " + _("read {age} before the rest").format(age=age) if gpu.processes_age_s else ""
    )
