"""Which hosts the embedded fleet has, what is built into them, and what runs there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


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


FLEET: tuple[DemoHost, ...] = (
    DemoHost("vast-a", RTX_4090, 1, "0.42 USD/h", "vast", ("4090",)),
    DemoHost("a100", A100_40, 2, "1.10 USD/h", "runpod", ("a100",)),
    DemoHost("h100", H100_80, 8, "8.90 USD/h", "lambda", ("h100",)),
)


def demo_hosts(count: int) -> tuple[DemoHost, ...]:
    """The first `count` hosts; beyond three, more of the last kind."""
    more = tuple(
        DemoHost(f"h100-{number}", H100_80, 8, "8.90 USD/h", "lambda", ("h100",))
        for number in range(2, count - 1)
    )
    return (FLEET + more)[:count]
