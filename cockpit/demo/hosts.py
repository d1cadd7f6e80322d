"""Which hosts the embedded fleet has, what is built into them, and what runs there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class CardModel:
    """A card as it is built: sizes in MiB, watts and MHz."""

    name: str
    total_mib: int
    limit_w: float
    idle_w: float
    clock_mhz: int
    ecc: bool


RTX_4090 = CardModel("NVIDIA GeForce RTX 4090", 24_564, 450.0, 18.0, 2520, ecc=False)
A100_40 = CardModel("NVIDIA A100-PCIE-40GB", 40_960, 250.0, 38.0, 1410, ecc=True)
A6000 = CardModel("NVIDIA RTX A6000", 49_140, 300.0, 21.0, 1800, ecc=True)
RTX_3090 = CardModel("NVIDIA GeForce RTX 3090", 24_576, 350.0, 24.0, 1695, ecc=False)
H100_80 = CardModel("NVIDIA H100 80GB HBM3", 81_559, 700.0, 72.0, 1980, ecc=True)


@dataclass(frozen=True, slots=True)
class DemoHost:
    """One host of the fleet."""

    name: str
    card: CardModel
    count: int
    price: str
    platform: str
    tags: tuple[str, ...]
    ram_gib: int
    disk_gib: int
    clock: float = 1.0
    """How many seconds of the host pass in one of this computer."""

    def facts(self, pace: float) -> dict[str, object]:
        """What the simulated host shows beside its cards; with a quicker script its fast clock is quicker too."""
        return {
            "ram_mib": self.ram_gib * 1024,
            "disk_mib": self.disk_gib * 1024,
            "clock": self.clock if self.clock == 1.0 else self.clock / max(pace, LEAST_CLOCK_PACE),
        }

    def cards(self, token: str) -> list[dict[str, object]]:
        """What the simulated driver finds; uuids differ from one demo to the next."""
        return [self._card(index, token) for index in range(self.count)]

    def _card(self, index: int, token: str) -> dict[str, object]:
        digest = hashlib.sha256(f"{token}/{self.name}/{index}".encode()).hexdigest()
        uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
        return {
            "uuid": f"GPU-{uuid}",
            "name": self.card.name,
            "bus_id": f"00000000:{index + 1:02X}:00.0",
            "total_mib": self.card.total_mib,
            "limit_w": self.card.limit_w,
            "idle_w": self.card.idle_w,
            "clock_mhz": self.card.clock_mhz,
            "ecc": self.card.ecc,
        }


LEAST_CLOCK_PACE = 0.5
"""Processes are listed every few seconds: on a clock that is quicker yet, a leak is a row of steps."""
LEAK_CLOCK = 60.0
"""A leak is told from a warm-up within the hour: on the host that shows one an hour is a minute."""

FLEET: tuple[DemoHost, ...] = (
    DemoHost("vast-a", RTX_4090, 1, "0.42 USD/h", "vast", ("4090",), 126, 200),
    DemoHost("a100", A100_40, 2, "1.10 USD/h", "runpod", ("a100", "time-x60"), 250, 400, LEAK_CLOCK),
    DemoHost("h100", H100_80, 8, "8.90 USD/h", "lambda", ("h100",), 1771, 22_000),
    DemoHost("a6000", A6000, 2, "0.98 USD/h", "runpod", ("a6000",), 188, 300),
    DemoHost("vast-b", RTX_3090, 4, "0.72 USD/h", "vast", ("3090",), 252, 500),
)  # fmt: skip


def demo_hosts(count: int) -> tuple[DemoHost, ...]:
    """The first `count` hosts; beyond those that are named, more H100 nodes."""
    more = tuple(
        replace(FLEET[2], name=f"h100-{number}") for number in range(2, count - len(FLEET) + 2)
    )
    return (FLEET + more)[:count]
