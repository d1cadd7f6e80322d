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

    def hold(self, mem_mib: float, util: float) -> None:
        value = {"pid": os.getpid(), "gpu": self._gpu, "mem_mib": int(mem_mib), "util": util}
        fresh = self._path + ".new"
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(fresh, self._path)

    def release(self) -> None:
        if os.path.exists(self._path):
            os.unlink(self._path)


def total_mib(gpu: int) -> int:
    """The card's memory, as built in."""
    path = os.path.join(os.environ["COCKPIT_DEMO_GPUS"], "cards.json")
    with open(path, encoding="utf-8") as file:
        return int(json.load(file)[gpu]["total_mib"])
