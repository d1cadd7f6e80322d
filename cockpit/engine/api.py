"""What the front ends may ask of the engine. Screens and headless are written against this alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from cockpit.domain.code_files import CodePlan
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.domain.runs import RunView
from cockpit.engine.events import OnEvent
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incidents_api import IncidentsApi

if TYPE_CHECKING:  # pydantic loads after the first paint
    from cockpit.config.hosts import HostSpec
    from cockpit.config.profile import Profile
    from cockpit.launchers.base import Launch


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """A profile that can be chosen. One with mistakes is listed too, with the number of them."""

    name: str
    path: Path
    origin: Literal["home", "shipped", "file"]
    kind: str
    description: str
    problems: int = 0


@dataclass(frozen=True, slots=True)
class CardChoice:
    """A card that a launch would take, and what speaks against it."""

    host: HostName
    index: int
    name: str
    free_mib: int | None
    total_mib: int | None
    holder: str | None = None
    """Who uses it: a run's name, user:command, or None when it is free."""
    slice: str = ""
    """The uuid of a slice of a card that is split; empty for a whole card."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at before a launch."""

    code: str
    verdict: Literal["ok", "warning", "blocked", "unknown"]
    facts: dict[str, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Where, with what and at what price a run would start. Making one sends nothing to start it."""

    profile: Profile
    host: HostName
    cards: tuple[CardChoice, ...]
    candidates: tuple[CardChoice, ...]
    """Every card of every host that was considered, as it is now."""
    argv: tuple[str, ...]
    cwd: str
    env_set: dict[str, str]
    """What we set, secrets excluded."""
    env_secret_names: tuple[str, ...]
    forwards: tuple[tuple[int, int], ...]
    script: str
    """Exactly what the host's shell would run, for a person to read; secrets are names only."""
    price_per_h: float | None
    currency: str | None
    checks: tuple[Check, ...] = ()
    launch: Launch | None = None
    """What the launcher made of the profile; secrets are names only."""
    acceptable: tuple[int, ...] = ()
    """Indices of the host's cards that would do, the best first: as many as `cards` are taken."""
    slices: tuple[str, ...] = ()
    """For each of `acceptable` the uuid of the slice that is meant; empty for a whole card."""
    queued: bool = False
    """No such card is free now: the run waits on the host, and `cards` are those it may get."""
    code: CodePlan | None = None
    """What [code] would send; None without it, and when it cannot be listed (a check says why)."""

    origin: Origin | None = None
    """What it was planned from, as it is kept with the run."""
    nodes: tuple[LaunchPlan, ...] = ()
    """Of a run on several hosts: the plans of ranks 1 and up. This one is rank 0's."""

    @property
    def blocked(self) -> bool:
        return any(check.verdict == "blocked" for check in self.all_checks)

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Of every host."""
        return self.checks + tuple(check for node in self.nodes for check in node.checks)

    @property
    def total_price_per_h(self) -> float | None:
        """Of every host; None when one is not known, or is in another currency."""
        prices = [node.price_per_h for node in (self, *self.nodes)]
        if any(node.currency != self.currency for node in self.nodes) or None in prices:
            return None
        return sum(price for price in prices if price is not None)


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A port of this computer's loopback that leads to a port of a host while it is connected."""

    local_port: int
    remote_port: int
    is_open: bool
    code: str = ""
    """Why it is not open: port_taken, …; empty while the host is not connected."""


@dataclass(frozen=True, slots=True)
class Around:
    """What goes along with a run, as far as this cockpit does it."""

    forwards: tuple[Forwarded, ...] = ()
    model: str = ""
    """The name under which a server answers, by its own words."""
    steps: tuple[tuple[float, str, str], ...] = ()
    """(when, code, words) of hooks and messages, the newest last."""


@dataclass(frozen=True, slots=True)
class StopReport:
    """What a stop came to. `left` is empty when nothing of the run is left."""

    run: RunId
    signals: tuple[str, ...]
    left: tuple[int, ...] = ()
    left_commands: tuple[str, ...] = ()
    stuck: tuple[int, ...] = ()
    """Those of `left` that hang in the kernel: no signal reaches them."""
    held_mib: tuple[tuple[int, int], ...] = ()
    """(card, MiB) that is still held on the run's cards although nothing of it is left."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a run's log as it is shown: harmless text, colours apart."""

    number: int
    """From 1, by newline, in the whole log."""
    offset: int
    text: str
    spans: tuple[tuple[int, int, str], ...] = ()
    """(start, end, style) with styles such as "bold red", parsed from the log's own colours."""
    at_s: float | None = None
    """Our wall clock when it arrived live; None for what was there before."""
    severity: Literal["fatal", "warning", "notice"] | None = None
    """Set on lines that opened an incident."""


@dataclass(frozen=True, slots=True)
class LogHit:
    """Where a text stands in a run's log, in bytes."""

    offset: int
    size: int
    """Of the whole log, when it was looked at."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """Lines of a log around a place; their numbers count from the part's own beginning."""

    lines: tuple[LogLine, ...]
    size: int
    """Of the whole log."""
    excerpt: str = ""
    """What stands at the place itself, harmless."""
    start: int = 0
    """The first byte of its first line."""
    end: int = 0
    """The byte after its last line: the next part begins there."""


@dataclass(frozen=True, slots=True)
class LinePlace:
    """Where a line of a log begins."""

    offset: int
    size: int
    """Of the whole log."""
    missing: int = 0
    """So many lines fewer has the log than were asked for."""
    uncounted_bytes: int = 0
    """Before it, which the host has not any more: lines in there count for nothing."""


class RunLog(Protocol):
    """A bounded window on a run's log that grows by itself while someone watches it."""

    @property
    def version(self) -> int:
        """Goes up with every change."""

    @property
    def first_number(self) -> int:
        """Number of the oldest line kept."""

    @property
    def total_lines(self) -> int:
        """Lines seen from the start of the log, kept or not."""

    @property
    def total_bytes(self) -> int: ...

    @property
    def open_text(self) -> str:
        """The unterminated last line: a prompt, or the present state of a progress bar."""

    @property
    def ended(self) -> bool: ...

    def __len__(self) -> int:
        """Lines kept."""

    def line(self, position: int) -> LogLine:
        """The line at `position` of those kept, 0 being the oldest."""

    def close(self) -> None:
        """Stop watching; the lines stay readable."""


class RunStore(Protocol):
    """Every run we know of, newest first, under one version counter."""

    @property
    def version(self) -> int: ...

    def all(self) -> Sequence[RunView]: ...

    def get(self, run: RunId) -> RunView | None: ...


class EngineApi(IncidentsApi, Protocol):
    """One engine, used by the TUI and by headless alike. All of it runs on one asyncio loop."""

    @property
    def fleet(self) -> FleetStore: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def hosts(self) -> dict[HostName, HostSpec]: ...

    def now_s(self) -> float:
        """The monotonic clock that `HostState.age_s` wants."""

    def wall_s(self) -> float: ...

    def subscribe(self, listener: OnEvent) -> Callable[[], None]: ...

    async def start(self) -> None:
        """Begin to connect every host; returns at once."""

    async def close(self) -> None:
        """Let go of every host. Runs go on."""

    def focus(self, host: HostName | None) -> None:
        """The host that is looked at: sampled at 2 Hz, slow readings included."""

    def set_interval(self, seconds: float) -> None:
        """Time between samples, 0.2 to 60."""

    def probe_now(self, hosts: Sequence[HostName] = ()) -> None:
        """Reconnect or sample at once; empty means every host."""

    def connect(self, host: HostName) -> None: ...

    def disconnect(self, host: HostName) -> None: ...

    async def add_host(self, name: str, pasted: str, *, replace: bool = False) -> HostSpec:
        """Record a host in hosts.toml and begin to connect it. Raises UsageError, StorageError."""

    async def remove_host(self, host: HostName) -> None: ...

    async def reload_hosts(self) -> None:
        """Read hosts.toml again after an edit. Raises ConfigError, and keeps what was."""

    async def trust(self, host: HostName, fingerprint: str) -> None:
        """Accept the offered key (first contact) or replace the known one, if it is this one.

        Raises HostKeyChanged when the host offers another key by now.
        """

    def shell_argv(self, host: HostName) -> list[str]:
        """The command that opens a shell on the host in this terminal, by the system's ssh."""

    def profiles(self) -> Sequence[ProfileEntry]: ...

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        """Resolve a profile (name or path). Raises ProfileError, NotNow, UsageError, TransportError."""

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        """A run of the past from the profile text and the overrides of then, and more of these.

        Raises RunUnknown for one that was not started from here, and what `plan` raises.
        """

    def past(self, run: RunId) -> PastRun | None:
        """The run as its host last spoke of it, and when."""

    async def past_incidents(self, run: RunId) -> Sequence[Incident]:
        """What is remembered of a run's incidents, the newest first."""

    async def set_remark(self, run: RunId, remark: str) -> None:
        """Write a line to a run. Raises RunUnknown, StorageError."""

    def around(self, run: RunId) -> Around: ...

    def host_forwards(self, host: HostName) -> Sequence[Forwarded]:
        """The ports that hosts.toml forwards from this host."""

    async def launch(self, plan: LaunchPlan) -> RunId:
        """Start it; returns once the host has it on disk. Raises LaunchFailed, NotNow, TransportError."""

    async def stop(self, run: RunId) -> StopReport:
        """The stop ladder, to its end. Raises RunUnknown, TransportError."""

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        """Send INT, TERM or KILL to a process that still is the one that was shown."""

    def log(self, run: RunId) -> RunLog:
        """Watch a run's log. Raises RunUnknown."""

    def fetch(self, run: RunId) -> bool:
        """Begin to fetch the run's results, whether they were fetched before or not; steps tell what comes of it.

        False when its profile asked for none, or it was started from another computer. Raises RunUnknown.
        """

    async def search_log(
        self,
        run: RunId,
        text: str,
        offset: int,
        *,
        backward: bool,
        on_progress: Callable[[float], None],
        is_regex: bool = False,
    ) -> LogHit | None:
        """The nearest place of a text in the whole log on the host. Raises RunUnknown, RunError, TransportError."""

    async def line_place(
        self, run: RunId, number: int, *, on_progress: Callable[[float], None]
    ) -> LinePlace:
        """Where a line of the whole log begins, counted on the host. Raises as `search_log`."""

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        """The lines around a byte of the whole log. Raises RunUnknown, TransportError."""

    async def log_page(self, run: RunId, offset: int, *, older: bool) -> LogPart:
        """The lines before a part's start, or behind its end. Raises RunUnknown, TransportError."""

    async def save_log(self, run: RunId, target: Path) -> int:
        """Copy the run's whole log, byte for byte, to a file on this computer; returns its size.

        Never replaces a file that exists. Raises RunUnknown, StorageError, TransportError.
        """

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        """The first remedy with a patch, as `--set` strings; empty when there is none."""
