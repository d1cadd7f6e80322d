"""A host's state as plain words: one block a host, no colour, no redraw; each line can stand alone when watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cockpit.config.hosts import HostSpec
from cockpit.domain.cells import cut_middle
from cockpit.domain.models import GpuSample, HostSample, ProcessSample
from cockpit.domain.units import duration_text, mib_pair_text, mib_text, price_text
from cockpit.engine.fleet import HostState
from cockpit.i18n.messages import explain

STATE_WORDS = {
    "connecting": "connecting",
    "live": "live",
    "degraded": "degraded",
    "stale": "stale",
    "unreachable": "unreachable",
    "auth_failed": "no access",
    "host_key": "host key",
}
NOTHING = "n/a"


def reason(state: HostState) -> str | None:
    """Why the host is not live: its driver's own words where there are any; None when it is."""
    if state.code is None:
        return None
    if state.link == "degraded" and state.latest is not None and state.latest.gpu_error:
        return state.latest.gpu_error
    return _sentence(state)


def _sentence(state: HostState) -> str:
    facts = {**state.why, "host": state.host, "fingerprint": state.fingerprint}
    return explain(state.code or "", facts).headline.replace("**", "")


def host_lines(spec: HostSpec, state: HostState, now_s: float | None) -> Iterator[tuple[str, str]]:
    """(what the line is about, its text): the host itself first, then each card. Without `now_s` no line ages."""
    yield spec.name, "  ".join(_host_parts(spec, state, now_s))
    if state.latest is not None:
        for gpu in state.latest.gpus:
            yield f"{spec.name}:{gpu.index}", "  ".join(_gpu_parts(gpu))


def _host_parts(spec: HostSpec, state: HostState, now_s: float | None) -> Iterator[str]:
    yield f"{STATE_WORDS[state.link]:<11}"
    why = reason(state)
    if why is not None:
        yield _sentence(state) if state.code == "no_driver" else why
    age_s = None if now_s is None else state.age_s(now_s)
    if state.link not in ("live", "degraded") and age_s is not None:
        yield f"last sample {duration_text(age_s)} ago"
    if state.latest is not None:
        yield from _sample_parts(state.latest)
    if spec.price_per_h is not None:
        yield price_text(spec.price_per_h, spec.currency)
    platform = spec.platform or (state.facts.platform if state.facts else None)
    if platform is not None:
        yield platform


def _sample_parts(sample: HostSample) -> Iterator[str]:
    yield cards_text(sample.gpus)
    yield f"cpu {_pct(sample.cpu_pct)}"
    yield f"ram {mib_pair_text(sample.mem_used_mib, sample.mem_total_mib)}"
    for disk in sample.disks:
        yield f"{cut_middle(disk.mount, 24)} {mib_text(disk.free_mib).strip()} free"


def cards_text(gpus: Iterable[GpuSample]) -> str:
    """ "8 x H100 80GB HBM3", each model once."""
    counts: dict[str, int] = {}
    for gpu in gpus:
        name = gpu.name.removeprefix("NVIDIA ").removeprefix("GeForce ") or "GPU"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "no GPU"


def _gpu_parts(gpu: GpuSample) -> Iterator[str]:
    if gpu.error is not None and gpu.mem_used_mib is None:
        yield gpu.error
        return
    yield f"{_pct(gpu.util_pct):>4}"
    yield mib_pair_text(gpu.mem_used_mib, gpu.mem_total_mib)
    yield NOTHING if gpu.temp_c is None else f"{gpu.temp_c}°C"
    yield _power(gpu)
    if gpu.throttle:
        yield "throttled: " + ", ".join(gpu.throttle)
    if gpu.ecc_uncorrected:
        yield f"{gpu.ecc_uncorrected} uncorrected memory errors"
    if gpu.mig:
        yield "MIG"
    if gpu.error is not None:
        yield gpu.error
    yield users_text(gpu.processes)


def _power(gpu: GpuSample) -> str:
    if gpu.power_w is None:
        return f"{NOTHING:>4} W"
    limit = "" if gpu.power_limit_w is None else f"/{gpu.power_limit_w:.0f}"
    return f"{gpu.power_w:.0f}{limit} W"


def users_text(processes: Iterable[ProcessSample]) -> str:
    """Who uses the card: a run's name, else the program and its user."""
    users = list(dict.fromkeys(_user(process) for process in processes))
    return ", ".join(users[:4]) + (f" and {len(users) - 4} more" if len(users) > 4 else "")


def _user(process: ProcessSample) -> str:
    if process.run is not None:
        return process.run
    name = cut_middle(process.name or f"pid {process.pid}", 24)
    return name if process.user is None else f"{name} ({process.user})"


def _pct(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}%"
