"""The engine's half that knows about jobs, over real agents on plain pipes: no SSH and no probe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent
from cockpit.engine.clock import SystemClock
from cockpit.engine.events import Event, EventBus, IncidentChanged, RunChanged
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.runs import Runs
from cockpit.engine.wiring import EngineParts
from cockpit.transport.base import HostTransport
from tests.agents import PipeTransport

HERE = HostName("here")


class Pipes(PipeTransport):
    """A link that holds until it is cut; its agents die with it."""

    connected = True

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.forwarded: list[int] = []

    def cut(self) -> None:
        self.connected = False
        self.kill()

    async def forward(self, local_port: int, remote_port: int, remote_host: str = "") -> int:
        self.forwarded.append(local_port)
        return local_port

    def unforward(self, local_port: int) -> None:
        self.forwarded.remove(local_port)


def raise_it(error: Exception) -> None:
    raise error


@dataclass
class Bench:
    """Runs of one host, what they told, and the host's home."""

    folder: Path
    runs: Runs
    parts: EngineParts
    make_agent: list[Callable[[HostSpec, HostTransport], RunAgent]]
    told: list[Event] = field(default_factory=list)
    transports: list[Pipes] = field(default_factory=list)

    @property
    def host_home(self) -> Path:
        return self.folder / "host"

    def connect(self) -> Pipes:
        self.host_home.mkdir(exist_ok=True)
        transport = Pipes(self.host_home)
        self.transports.append(transport)
        self.runs.host_up(self.parts.hosts[HERE], cast(HostTransport, transport))
        return transport

    def cut(self) -> None:
        self.transports[-1].cut()
        self.runs.host_down(HERE)

    def profile(self, name: str, script: str, more: str = "") -> str:
        path = self.folder / f"{name}.toml"
        text = f"name = '{name}'\nkind = 'command'\n[command]\nscript = '''{script}'''\n{more}"
        path.write_text(text)
        return str(path)

    async def launched(self, name: str, script: str, more: str = "") -> RunView:
        plan = await self.runs.plan(self.profile(name, script, more))
        view = self.runs.book.get(await self.runs.launch(plan))
        assert view is not None
        return view

    async def ended(self, run: RunView) -> RunView:
        def now() -> RunView | None:
            view = self.runs.book.get(run.run)
            return view if view is not None and view.ended else None

        await until(now, f"{run.run} ends")
        view = now()
        assert view is not None
        return view

    def states(self, run: RunView) -> list[str]:
        return [
            event.view.state
            for event in self.told
            if isinstance(event, RunChanged) and event.view.run == run.run
        ]

    def incidents(self) -> list[IncidentChanged]:
        return [event for event in self.told if isinstance(event, IncidentChanged)]


def make_bench(
    folder: Path, *, follow_live: bool = True, sample: HostSample | None = None
) -> Bench:
    specs = {HERE: HostSpec(name=HERE, local=True)}
    clock = SystemClock()
    bus = EventBus(raise_it)
    fleet = FleetStore(specs)
    if sample is not None:
        fleet.record(sample, clock.now_s())
    home = Home(folder / "cockpit")
    home.root.mkdir(exist_ok=True)
    parts = EngineParts(home, specs, clock, bus, fleet, IncidentDesk(bus, clock))
    makers: list[Callable[[HostSpec, HostTransport], RunAgent]] = [
        lambda _spec, transport: cast(Pipes, transport).agent()
    ]
    runs = Runs(
        parts,
        lambda spec, transport: makers[-1](spec, transport),
        lambda: 0.0,
        follow_live=follow_live,
    )
    bench = Bench(folder, runs, parts, makers)
    bus.subscribe(bench.told.append)
    return bench


async def until(
    holds: Callable[[], object], what: str = "condition", limit_s: float = 60.0
) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + limit_s
    while not holds():
        assert loop.time() < deadline_s, f"never: {what}"
        await asyncio.sleep(0.02)
