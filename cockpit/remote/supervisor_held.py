"""Memory of a run's cards that nothing gives back after a stop: told, since the next run will miss it."""

import time

from supervisor_driver import free_by_nvml, free_by_smi, in_child  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

SLACK_MIB = 256
"""A driver keeps a little, and frees the rest a moment after the process is gone."""
PATIENCE_S = 5.0


class HeldMemory:
    """Compares what is free on the reserved cards with what was free before the job. Pids tell nothing
    here: in a container the driver names processes by the host's."""

    def __init__(self) -> None:
        self.free_mib: "list[int | None]" = []
        """Before the job, in the order of the run's cards."""

    def note(self, cards: "list[Json]") -> None:
        if cards:
            free = free_by_card()
            self.free_mib = [free.get(card["uuid"]) for card in cards]

    def still(self, cards: "list[Json]", spec: "Json") -> "list[list[int]]":
        """[index, MiB] of each card that has less free than before; cards that others share tell nothing."""
        if not any(self.free_mib) or (spec.get("gpus") or {}).get("share"):
            return []
        until = time.monotonic() + PATIENCE_S
        while True:
            held = self._held(cards)
            if not held or time.monotonic() > until:
                return held
            time.sleep(0.25)

    def _held(self, cards: "list[Json]") -> "list[list[int]]":
        free = free_by_card()
        found = []
        for number, card in enumerate(cards[: len(self.free_mib)]):
            before, now = self.free_mib[number], free.get(card["uuid"])
            if before is not None and now is not None and before - now > SLACK_MIB:
                found.append([card["index"], before - now])
        return found


def free_by_card() -> "dict[str, int]":
    return dict(in_child(free_by_nvml, 10.0) or in_child(free_by_smi, 20.0))
