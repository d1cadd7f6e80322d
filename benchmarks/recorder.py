"""What the flight recorder costs: CPU for each sample, and memory for 100 hosts with 8 cards after eleven minutes.

python -m benchmarks.recorder [HOSTS]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

from cockpit.config.paths import Home
from cockpit.config.spec import HostSpec
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.sample_record import sample_record
from cockpit.domain.wire import SampleDecoder
from cockpit.engine.events import EventBus
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.recorder import Recorder
from tests.builders.samples import AT_S, h100, host_sample, process

TICKS = 660
CARDS = 8


class StepClock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.at_s = AT_S

    def now_s(self) -> float:
        return self.at_s

    def wall_s(self) -> float:
        return self.at_s


def first_line(name: str) -> bytes:
    cards = [h100(n, processes=(process(4000 + n),), processes_age_s=0.0) for n in range(CARDS)]
    return json.dumps(sample_record(host_sample(name, gpus=cards))).encode()


def tick_line(tick: int, dice: random.Random) -> bytes:
    """As the probe writes one: what was read, and of the rest what changed."""
    cards: list[dict[str, object]] = []
    for index in range(CARDS):
        card: dict[str, object] = {
            "index": index,
            "util_pct": dice.randint(90, 100),
            "mem_util_pct": dice.randint(30, 60),
            "mem_used_mib": 70_000 + dice.randint(0, 300),
        }
        if tick % 2 == 0:
            card |= {
                "temp_c": dice.randint(60, 64),
                "power_w": round(dice.uniform(500, 700), 1),
                "sm_clock_mhz": 1980 - 15 * dice.randint(0, 3),
            }
        if tick % 3 == 0:
            card["processes"] = [
                {
                    "pid": 4000 + index, "name": "python", "user": "root", "mem_used_mib": 69_000,
                    "command": "python train.py --lr 1e-4", "cpu_pct": round(dice.uniform(90, 120), 1),
                    "started_ticks": 123456,
                }
            ]  # fmt: skip
        cards.append(card)
    host = {
        "cpu_pct": round(dice.uniform(10, 30), 1), "load1": round(dice.uniform(5, 9), 2),
        "mem_used_mib": 100_000 + dice.randint(0, 500), "uptime_s": 86_400.0 + tick,
        "net_rx_mib_s": round(dice.uniform(0, 9), 2), "net_tx_mib_s": round(dice.uniform(0, 9), 2),
    }  # fmt: skip
    told = {"k": "sample", "seq": tick, "at": AT_S + tick, "mono": 1000.0 + tick, "host": host}
    return json.dumps({**told, "gpus": cards}).encode()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    dice, clock = random.Random(7), StepClock()
    hosts = {HostName(f"h{n}"): HostSpec(HostName(f"h{n}")) for n in range(count)}
    fleet, bus = FleetStore(hosts), EventBus(lambda error: None)
    desk = IncidentDesk(bus, clock)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Home(Path(folder)), hosts, clock, bus, fleet, desk)
        decoders = {name: SampleDecoder(name) for name in hosts}
        for name, decoder in decoders.items():
            fleet.record(sample_of(decoder, first_line(name)), 0.0)
        spent_s, wire_bytes = 0.0, 0
        for tick in range(TICKS):
            clock.at_s = AT_S + tick
            told = []
            for name, decoder in decoders.items():
                line = tick_line(tick, dice)
                wire_bytes += len(line)
                told.append((name, line, sample_of(decoder, line)))
            begun_s = time.process_time()
            for name, line, sample in told:
                recorder.took(name, line, sample)
            spent_s += time.process_time() - begun_s
    samples = TICKS * count
    print(
        f"{count} hosts x {CARDS} cards, {TICKS} s at 1 Hz, {wire_bytes / samples:.0f} bytes a sample"
    )
    print(
        f"CPU: {1e6 * spent_s / samples:.1f} us a sample, {100 * spent_s / TICKS:.2f} % of a core"
    )
    print(f"memory: {recorder.size_bytes / 2**20:.1f} MiB of frames")
    print(f"kept: {recorder.kept_s():.0f} s of the host that keeps the least")


def sample_of(decoder: SampleDecoder, line: bytes) -> HostSample:
    sample = decoder.feed(line)
    assert isinstance(sample, HostSample)
    return sample


if __name__ == "__main__":
    main()
