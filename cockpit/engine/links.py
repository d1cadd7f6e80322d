"""All links of an engine, and the one timer that judges how fresh they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.engine.link import HostLink, LinkParts
from cockpit.engine.sampler import Cadence

INTERVAL_LEAST_S = 0.2
INTERVAL_MOST_S = 60.0
FOCUS_INTERVAL_S = 0.5
TIMER_LEAST_S = 0.1
TIMER_MOST_S = 1.0
ASLEEP_S = 20.0
"""The wall clock went this much further than ours: this computer slept, and its connections may be dead."""


class Links:
    def __init__(self, parts: LinkParts, interval_s: float = 1.0) -> None:
        self._parts = parts
        self._links: dict[HostName, HostLink] = {}
        self._interval_s = interval_s
        self._focused: HostName | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._started = False
        self._wall_ahead_s = self._wall_minus_own()

    def get(self, host: HostName) -> HostLink | None:
        return self._links.get(host)

    def start(self) -> None:
        """Begin to connect every host, and every host that is added from here on."""
        self._started = True
        for link in self._links.values():
            link.start()
        if self._timer is None:
            self._on_timer()

    async def close(self) -> None:
        """Let go of all hosts at once, within seconds."""
        self._started = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def set_hosts(self, specs: Iterable[HostSpec]) -> None:
        """Take over a new list: hosts that are as they were keep their link."""
        wanted = {spec.name: spec for spec in specs}
        changed = [link for host, link in self._links.items() if wanted.get(host) != link.spec]
        for link in changed:
            del self._links[link.host]
        await asyncio.gather(*(link.close() for link in changed))
        for link in changed:
            if link.host not in wanted:
                self._parts.fleet.remove(link.host)
        for host, spec in wanted.items():
            if host not in self._links:
                self._add(spec)

    def _add(self, spec: HostSpec) -> None:
        link = HostLink(spec, self._parts, self._cadence(spec.name))
        self._links[spec.name] = link
        if self._started:
            link.start()

    def focus(self, host: HostName | None) -> None:
        self._focused = host
        self._pass_cadence_on()

    def set_interval(self, seconds: float) -> None:
        self._interval_s = min(INTERVAL_MOST_S, max(INTERVAL_LEAST_S, seconds))
        self._pass_cadence_on()

    def probe_now(self, hosts: Sequence[HostName] = ()) -> None:
        for host in hosts or tuple(self._links):
            if host in self._links:
                self._links[host].probe_now()

    def disconnect(self, host: HostName) -> None:
        if host in self._links:
            self._links[host].disconnect()

    def _cadence(self, host: HostName) -> Cadence:
        if host == self._focused:
            return Cadence(min(self._interval_s, FOCUS_INTERVAL_S), focused=True)
        return Cadence(self._interval_s)

    def _pass_cadence_on(self) -> None:
        for host, link in self._links.items():
            link.set_cadence(self._cadence(host))

    def _on_timer(self) -> None:
        ahead_s = self._wall_minus_own()
        if ahead_s - self._wall_ahead_s > ASLEEP_S:
            for link in self._links.values():
                link.doubt()
        self._wall_ahead_s = ahead_s
        wait_s = self._judge()
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._on_timer)

    def _wall_minus_own(self) -> float:
        return self._parts.clock.wall_s() - self._parts.clock.now_s()

    def _judge(self) -> float:
        """Judge every host; returns seconds until the next one may have gone stale."""
        now_s = self._parts.clock.now_s()
        wait_s = TIMER_MOST_S
        for link in self._links.values():
            deadline_s = link.judge(now_s)
            if deadline_s is not None:
                wait_s = min(wait_s, deadline_s - now_s)
        return max(TIMER_LEAST_S, wait_s)
