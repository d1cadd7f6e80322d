"""The fleet's newest state and its short history: written by the links, pulled by whoever draws."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from cockpit.domain.models import GpuSample, HostFacts, HostName, HostSample, LinkState
from cockpit.domain.occupancy import is_idle
from cockpit.errors import Fact

HISTORY_SAMPLES = 900
"""Points kept for each card: 15 minutes at 1 Hz."""
HISTORY_CARDS = 64
"""Cards of one host that have a past; replaced and renamed ones are forgotten beyond it."""


@dataclass(slots=True)
class GpuHistory:
    """One card's recent past; None where a value was missing. All deques have the same length."""

    at_s: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY_SAMPLES))
    util_pct: deque[int | None] = field(default_factory=lambda: deque(maxlen=HISTORY_SAMPLES))
    mem_used_mib: deque[int | None] = field(default_factory=lambda: deque(maxlen=HISTORY_SAMPLES))

    def append(self, at_s: float, gpu: GpuSample) -> None:
        self.at_s.append(at_s)
        self.util_pct.append(gpu.util_pct)
        self.mem_used_mib.append(gpu.mem_used_mib)


@dataclass(slots=True)
class HostState:
    """What is known of one host. Only FleetStore writes it."""

    host: HostName
    link: LinkState = "connecting"
    code: str | None = None
    """Code of what is wrong (unreachable, host_key_changed, driver_mismatch, …); None when nothing is."""
    why: dict[str, Fact] = field(default_factory=dict)
    """Facts for the sentence that `code` makes."""
    latest: HostSample | None = None
    received_s: float | None = None
    """Our monotonic clock at the arrival of `latest`."""
    facts: HostFacts | None = None
    history: dict[str, GpuHistory] = field(default_factory=dict)
    """By gpu uuid, or "index:N" for a card without one."""
    retry_at_s: float | None = None
    """Our monotonic clock at the next try; None while connected or connecting."""
    key_type: str | None = None
    fingerprint: str | None = None
    """The verified key; while `link` is host_key, the key that was offered."""
    known_fingerprint: str | None = None
    address: str | None = None
    latency_s: float | None = None
    noise: bytes = b""
    faults: int = 0
    """Lines of its sampler that were no sample, since we began."""
    idle_since_s: float | None = None
    """Our monotonic clock when its cards were seen to be free first; None while one is not."""
    version: int = 0

    def idle_s(self, now_s: float) -> float | None:
        """How long all of its cards have been free, as far as they were watched; None when that is not known."""
        if self.idle_since_s is None or self.link not in ("live", "degraded"):
            return None
        return max(0.0, now_s - self.idle_since_s)

    def age_s(self, now_s: float) -> float | None:
        """Seconds since the newest sample arrived, by the same monotonic clock."""
        return None if self.received_s is None else max(0.0, now_s - self.received_s)


def _forget_absent(state: HostState, sample: HostSample) -> None:
    """A host may name new cards for ever; only those that it has now keep their past."""
    present = {history_key(gpu) for gpu in sample.gpus[:HISTORY_CARDS]}
    for key in [key for key in state.history if key not in present]:
        del state.history[key]


def history_key(gpu: GpuSample) -> str:
    return gpu.uuid or f"index:{gpu.index}"


class FleetStore:
    """Every host's state under one version counter; it knows nobody who reads it."""

    def __init__(self, hosts: Iterable[HostName] = ()) -> None:
        self.hosts: dict[HostName, HostState] = {host: HostState(host) for host in hosts}
        self.version = 0

    def add(self, host: HostName) -> HostState:
        state = self.hosts.setdefault(host, HostState(host))
        self._touch(state)
        return state

    def remove(self, host: HostName) -> None:
        self.hosts.pop(host, None)
        self.version += 1

    def record(self, sample: HostSample, received_s: float) -> HostState:
        """Take a sample that arrived at `received_s` of our monotonic clock."""
        state = self.hosts[sample.host]
        state.latest, state.received_s, state.facts = sample, received_s, sample.facts
        if not is_idle(sample.gpus):
            state.idle_since_s = None
        elif state.idle_since_s is None:
            state.idle_since_s = received_s
        history, at_s = state.history, sample.at_s
        for gpu in sample.gpus:
            key = history_key(gpu)
            card = history.get(key)
            if card is None:
                card = history[key] = GpuHistory()
            card.append(at_s, gpu)
        if len(state.history) > HISTORY_CARDS:
            _forget_absent(state, sample)
        self._touch(state)
        return state

    def set_link(
        self, host: HostName, link: LinkState, /, code: str | None = None, **why: Fact
    ) -> LinkState:
        """Change a link's state; returns the state before."""
        state = self.hosts[host]
        before = state.link
        state.link, state.code, state.why = link, code, dict(why)
        self._touch(state)
        return before

    def update(self, host: HostName, /, **changes: object) -> None:
        """Set plain fields of a host's state (address, latency_s, retry_at_s, fingerprint, …)."""
        state = self.hosts[host]
        for name, value in changes.items():
            setattr(state, name, value)
        self._touch(state)

    def changed_since(self, version: int) -> list[HostName]:
        return [state.host for state in self.hosts.values() if state.version > version]

    def _touch(self, state: HostState) -> None:
        self.version += 1
        state.version = self.version
