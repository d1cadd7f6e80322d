"""Short words about a host and a card for the places where a sentence does not fit."""

from __future__ import annotations

import re

from cockpit.domain.models import GpuSample, HostSample
from cockpit.domain.occupancy import IDLE_TOLD_S
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, mib_text
from cockpit.engine.fleet import HostState
from cockpit.i18n import _
from cockpit.i18n.sentences import listed

LOW_DISK_FRACTION = 0.05
LOW_DISK_MIB = 20 * 1024
FRESH_S = 2.5
_NOISE = re.compile(
    r"\b(NVIDIA|GeForce|Tesla|Graphics Device|SXM\d?|PCIe|PCIE|HBM\d\w?|NVL)\b", re.IGNORECASE
)


def short_card(name: str) -> str:
    """ "NVIDIA A100-SXM4-40GB" -> "A100 40GB"."""
    plain = _NOISE.sub(" ", safe_line(name, 64).replace("-", " "))
    return " ".join(plain.split())


def cards_text(sample: HostSample) -> str:
    """ "8 x H100 80GB", or every model with its count where they differ."""
    counts: dict[str, int] = {}
    for gpu in sample.gpus:
        model = short_card(gpu.name) or _("GPU")
        counts[model] = counts.get(model, 0) + 1
    return " + ".join(f"{count} x {model}" for model, count in counts.items())


def worst_disk_text(sample: HostSample) -> tuple[str, bool]:
    """The fullest disk in a few cells, and whether it is worth a warning."""
    known = [disk for disk in sample.disks if disk.free_mib is not None and disk.total_mib]
    if not known:
        return "", False
    worst = min(known, key=lambda disk: (disk.free_mib or 0) / (disk.total_mib or 1))
    free, total = worst.free_mib or 0, worst.total_mib or 1
    low = free < LOW_DISK_FRACTION * total or free < min(LOW_DISK_MIB, 0.25 * total)
    mount = safe_line(worst.mount, 24)
    return f"{mount} {mib_text(free, width=0)} {_('free')}", low


def age_text(state: HostState, now_s: float) -> str:
    """Age of the newest numbers in whole seconds; empty while they are fresh."""
    age_s = state.age_s(now_s)
    if age_s is None or age_s < FRESH_S:
        return ""
    return duration_text(int(age_s)) if age_s >= 10 else f"{int(age_s)} s"


def reason(state: HostState, now_s: float) -> str:
    """Why a host is not simply live, in a few words; empty when it is."""
    if state.link == "live" or (state.link == "connecting" and state.code is None):
        return "" if state.link == "live" else _("connecting")
    words = _short_words(state)
    age = age_text(state, now_s)
    if age and state.link == "stale":
        words = _("no answer for {age}").format(age=age)
    elif age and state.link != "degraded":
        words = _("{words}, numbers are {age} old").format(words=words, age=age)
    return listed((words, _retry_words(state, now_s)))


def _retry_words(state: HostState, now_s: float) -> str:
    if state.link == "host_key":
        return _("t shows its key")
    if state.retry_at_s is None:
        return ""
    left_s = max(0, round(state.retry_at_s - now_s))
    return _("next try in {left_s} s").format(left_s=left_s)


def _short_words(state: HostState) -> str:
    by_code = {
        "link_lost": _("link lost"),
        "host_key_unknown": _("new here"),
        "host_key_changed": _("its key changed"),
        "auth_failed": _("no key was accepted"),
        "proxy_no_exec": _("a proxy that runs no commands"),
        "driver_mismatch": _("driver and library differ"),
        "nvml_lost": _("this container lost its GPUs"),
        "no_driver": _("no NVIDIA driver"),
        "no_gpu": _("no NVIDIA card"),
        "no_python": _("no Python 3.6 or newer"),
        "driver_hung": _("the driver hangs"),
    }
    by_link = {
        "connecting": _("connecting"),
        "stale": _("no answer"),
        "unreachable": _("not reachable"),
        "auth_failed": _("no key was accepted"),
        "host_key": _("its key is not trusted"),
        "degraded": _("no GPU numbers"),
    }
    return by_code.get(state.code or "") or by_link.get(state.link, "")


def sentence(state: HostState, now_s: float) -> str:
    """Why a host shows no cards, as a whole sentence where there is room for one."""
    from cockpit.i18n.messages import explain, knows

    latest = state.latest
    if state.link in ("live", "degraded") and latest is not None:
        words = latest.gpu_error or reason(state, now_s) or _("no NVIDIA card on this host")
        return safe_line(words, 200)
    if state.link in ("connecting", "live") and state.code is None:
        return _("waiting for the first numbers") if state.link == "live" else _("connecting …")
    if not state.code or not knows(state.code):
        return reason(state, now_s)
    headline = explain(state.code, {"host": state.host, **state.why}).headline
    more = _retry_words(state, now_s)
    return safe_line(f"{headline}  {more}" if more else headline, 300)


def source_text(sample: HostSample) -> str:
    """Where the numbers come from, when it is not NVML."""
    return "" if sample.source == "nvml" else _("by {source}").format(source=sample.source)


def temp_is_throttled(gpu: GpuSample) -> bool:
    """A power cap is normal under load; heat and the board's own brakes are not."""
    return any(
        reason in ("thermal_sw", "thermal_hw", "hw_slowdown", "power_brake")
        for reason in gpu.throttle or ()
    )


def idle_text(state: HostState, now_s: float) -> str:
    """ "idle 37 m" for a host that costs and does nothing; empty before that is worth a word."""
    idle_s = state.idle_s(now_s)
    if idle_s is None or idle_s < IDLE_TOLD_S:
        return ""
    return _("idle {time}").format(time=duration_text(idle_s - idle_s % 60))
