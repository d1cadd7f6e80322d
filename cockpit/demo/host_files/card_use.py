"""How a demo job holds a card: a small file that the simulated driver reads, gone with the process."""

from __future__ import annotations

import json
import os


def visible_cards() -> list[int]:
    """The host's cards that this process may use, as CUDA would see them."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    return [int(part) for part in text.split(",") if part.strip().isdigit()]


class CardUse:
    """This process's share of one card."""

    def __init__(self, gpu: int) -> None:
        folder = os.environ["COCKPIT_DEMO_GPUS"]
        self._path = os.path.join(folder, "use-%d-%d.json" % (os.getpid(), gpu))
        self._gpu = gpu

    def hold(self, mem_mib: float, util: float, power: float | None = None) -> None:
        """`power` is its share of what the card may draw; it follows from use where nothing is said."""
        value: dict[str, object] = {"pid": os.getpid(), "gpu": self._gpu, "mem_mib": int(mem_mib)}
        _put(self._path, {**value, "util": util, "power": power})

    def release(self) -> None:
        if os.path.exists(self._path):
            os.unlink(self._path)


def total_mib(gpu: int) -> int:
    """The card's memory, as built in."""
    path = os.path.join(os.environ["COCKPIT_DEMO_GPUS"], "cards.json")
    with open(path, encoding="utf-8") as file:
        return int(json.load(file)[gpu]["total_mib"])


def fail(gpu: int, xid: int) -> None:
    """The card reports an error of its own, as the driver tells whoever listens."""
    folder = os.environ["COCKPIT_DEMO_GPUS"]
    _put(os.path.join(folder, "xid-%d-%d.json" % (os.getpid(), gpu)), {"gpu": gpu, "xid": xid})


def pace() -> float:
    """How long a second of the script takes: less than one where a test will not wait."""
    return float(os.environ.get("COCKPIT_DEMO_PACE", "1"))


def clock_factor() -> float:
    """How many seconds of this host pass in one of this computer."""
    path = os.path.join(os.environ["COCKPIT_DEMO_GPUS"], "host.json")
    if not os.path.exists(path):
        return 1.0
    with open(path, encoding="utf-8") as file:
        return float(json.load(file).get("clock", 1.0))


def _put(path: str, value: dict[str, object]) -> None:
    fresh = path + ".new"
    with open(fresh, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(fresh, path)
