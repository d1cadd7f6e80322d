"""Recordings for tests: made by the real recorder from samples, logs and findings, on a clock of the test's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from cockpit.config.paths import Home
from cockpit.config.spec import HostSpec
from cockpit.domain.incident_proof import Proof
from cockpit.domain.incidents import Evidence, Finding
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.recording import Header, Occasion, RecordedHost, header_record
from cockpit.domain.runs import RunView
from cockpit.domain.sample_record import sample_record
from cockpit.domain.wire import SampleDecoder
from cockpit.engine.events import Event, EventBus, RunChanged
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.recorder import Recorder
from cockpit.engine.recording_rows import incident_fields, line_of, log_fields, run_fields
from cockpit.engine.run_book import RunBook
from tests.builders.samples import AT_S, gpu, host_sample, process

BOX = HostName("vast-a")
RUN = RunId("qwen-lora-20231114-221000-a1b2")
SECRET = 'hf_TOKENvalue"12345'
OOM_LINE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."
OOM = Finding(
    "gpu_oom",
    "torch-oom",
    "fatal",
    facts={"tried_mib": 1792, "free_mib": 808},
    offset=400,
    line=11,
    text=OOM_LINE,
    cause="gpu_oom",
)


class StepClock:
    """Moves when a test says so."""

    def __init__(self) -> None:
        self.at_s = AT_S

    def now_s(self) -> float:
        return self.at_s

    def wall_s(self) -> float:
        return self.at_s


class Flight:
    """A recorder with everything around it."""

    def __init__(self, folder: Path, hosts: Iterable[HostName] = (BOX,), **how: object) -> None:
        self.home = Home(folder)
        self.clock = StepClock()
        self.hosts = {
            name: HostSpec(name, user="alice", price_per_h=0.42, currency="USD") for name in hosts
        }
        self.fleet = FleetStore(self.hosts)
        self.failures: list[Exception] = []
        self.events: list[Event] = []
        self.bus = EventBus(self.failures.append)
        self.bus.subscribe(self.events.append)
        self.desk = IncidentDesk(self.bus, self.clock)
        self.desk.testify = lambda finding, place, at_s: Proof()
        self.recorder = Recorder(
            self.home, self.hosts, self.clock, self.bus, self.fleet, self.desk, **how,  # type: ignore[arg-type]
        )  # fmt: skip
        self.book = RunBook(lambda view, before: self._changed(view, before))
        self.recorder.watches(self.book)
        self.recorder.knows({RUN: Masker([SECRET])})
        self._decoders = {name: SampleDecoder(name) for name in self.hosts}

    def _changed(self, view: RunView, before: RunView | None) -> None:
        self.bus.publish(RunChanged(view, before, self.clock.at_s))

    def sample(self, host: HostName = BOX, *, used_mib: int = 20_480, command: str = "") -> None:
        """A tick of a host, as its probe would say it."""
        seq = int(self.clock.at_s - AT_S)
        held = process(command=command or "python train.py", run=RUN)
        card = gpu(0, mem_used_mib=used_mib, processes=(held,))
        self.wire(host, host_sample(host, gpus=(card, gpu(1, util_pct=0)), seq=seq))

    def wire(self, host: HostName, sample: HostSample) -> None:
        line = json.dumps(sample_record(sample)).encode()
        decoded = self._decoders[host].feed(line)
        assert isinstance(decoded, HostSample)
        self.fleet.record(decoded, self.clock.at_s)
        if self.fleet.hosts[host].link == "connecting":
            self.fleet.set_link(host, "live")
        self.recorder.took(host, line, decoded)

    def run(self, **changes: object) -> RunView:
        values: dict[str, object] = {
            "run": RUN, "profile": "qwen-lora", "kind": "command", "host": BOX, "state": "running",
            "gpus": (0,), "started_s": AT_S - 60, "command": ("python", "train.py"),
        }  # fmt: skip
        return self.book.record(RunView(**(values | changes)))  # type: ignore[arg-type]

    def oom(self) -> None:
        self.desk.report(
            OOM, host=BOX, gpu=0, run=RUN, profile="qwen-lora",
            evidence=(Evidence(self.clock.at_s, "log", OOM_LINE, 400, 11),),
        )  # fmt: skip

    @property
    def files(self) -> list[Path]:
        return sorted(self.home.recordings.glob("*")) if self.home.recordings.exists() else []


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def written(path: Path, *lines: object, packed: bool = True) -> Path:
    """A file of lines that a test made up: objects as JSON, bytes as they are."""
    data = b"".join(
        (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines
    )
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path


def header(*hosts: str, at_s: float | None = AT_S + 30) -> dict[str, object]:
    occasion = None
    if at_s is not None:
        occasion = Occasion(
            f"run:{RUN}/gpu_oom/torch-oom", at_s, BOX, "gpu_oom", "torch-oom", "fatal"
        )
    known = tuple(RecordedHost(HostName(name), user="alice") for name in hosts or (BOX,))
    return header_record(Header(known, occasion, "0.1.0"))


def story(path: Path, seconds: int = 60) -> Path:
    """A minute of a run that runs out of memory at its middle, written without a recorder: always the same bytes."""
    flight = Flight(path.parent / "unused", least=None)
    lines: list[object] = [header()]
    offset = 0
    for second in range(seconds):
        at_s = flight.clock.at_s = AT_S + second
        used_mib = min(24_400, 12_000 + 400 * second)
        card = gpu(0, mem_used_mib=used_mib, processes=(process(run=RUN, mem_used_mib=used_mib),))
        sample = host_sample(BOX, gpus=(card, gpu(1, util_pct=0, mem_used_mib=1)), seq=second)
        lines.append(json.loads(line_of(at_s, "wire", BOX, {"line": sample_record(sample)})))
        if second == 1:
            lines.append(json.loads(line_of(at_s, "run", BOX, run_fields(flight.run()))))
        words = f"step {second} loss {3 - second / 100:.2f}\n" if second != 30 else OOM_LINE + "\n"
        piece = log_fields(RUN, offset, second + 1, words.encode())
        lines.append(json.loads(line_of(at_s, "log", BOX, piece)))
        offset += len(words)
        if second == 30:
            flight.oom()
            (incident,) = flight.desk.all()
            lines.append(json.loads(line_of(at_s, "incident", BOX, incident_fields(incident))))
    lines.append({"t": AT_S + seconds, "k": "end", "host": None})
    return written(path, *lines)
