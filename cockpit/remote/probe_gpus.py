"""Every card of the host, tier by tier: opened once, each card for itself, taking turns.

Runs on hosts: Python >= 3.6, stdlib and NVIDIA's own pynvml only, on a thread that a driver may hang.
"""

import time

from probe_card import (  # type: ignore[import-not-found]
    LIBRARY_GONE,
    LOST,
    UNKNOWN,
    Card,
    CardReader,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from probe_processes import ProcessReader  # type: ignore[import-not-found]

INIT_CODES = {
    4: "nvml_denied",
    9: "no_driver",
    12: "no_driver",
    18: "driver_mismatch",
    UNKNOWN: "nvml_lost",
}
CARDS_MAX = 64
TIERS_S = (2.0, 5.0, 15.0)
"""Clocks and power; processes; ECC, link and the like."""
FOCUS_TIERS_S = (1.0, 2.0, 10.0)
PCIE_ROUND_S, RETRY_S = 10.0, 5.0
PCIE_RATES = ("pcie_rx_mib_s", "pcie_tx_mib_s")
SLACK_S = 0.05


class GpuReader:
    """NVML and the cards it has. Not thread-safe: one thread owns it."""

    def __init__(
        self, nvml: "Any", processes: "ProcessReader", host_total_bytes: "int | None"
    ) -> None:
        self.nvml = nvml
        self.values = CardReader(nvml, host_total_bytes)
        self.processes = processes
        self.cards = []  # type: list[Card]
        self.facts = {}  # type: dict[str, Any]
        self.pcie_due = None  # type: float | None
        self.pcie_next = 0

    def open(self) -> "tuple[str, str] | None":
        """Open the library and every card; None, or (code, words) of what stands in the way."""
        nvml = self.nvml
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            return self.init_error(error)
        version = self._try(nvml.nvmlSystemGetCudaDriverVersion)
        self.facts = {"driver": self._try(nvml.nvmlSystemGetDriverVersion)}
        self.facts["cuda"] = "%d.%d" % (version // 1000, version % 1000 // 10) if version else None
        if not count:
            return ("no_gpu", "No devices were found")
        self.cards = [Card(index) for index in range(min(count, CARDS_MAX))]
        return None

    def init_error(self, error: "Any") -> "tuple[str, str]":
        words = "Failed to initialize NVML: " + self.words(error)
        return (INIT_CODES.get(error.value, "nvml_error"), words)

    def close(self) -> None:
        self.cards = []
        self._try(self.nvml.nvmlShutdown)

    def words(self, error: "Any") -> str:
        """The driver's own words, not the binding's."""
        try:
            return str(self.nvml.nvmlErrorString(error.value))
        except (self.nvml.NVMLError, AttributeError, ValueError):
            return str(error)

    def _try(self, call: "Callable[..., Any]") -> "Any":
        try:
            return call()
        except (self.nvml.NVMLError, AttributeError, ValueError):
            return None

    def read(self, focus: bool) -> "list[dict[str, Any]]":
        """Read what is due of every card. Raises NVMLError when the library itself is gone."""
        now = time.monotonic()
        for card in self.cards:
            if card.failed and now < card.retry_at:
                continue
            self._guarded(card, now, self._read_card, now, focus)
        self._take_pcie_turn(now, focus)
        return [fresh for fresh in [card.changes() for card in self.cards] if fresh]

    def all_unknown(self) -> bool:
        """Whether every card answers "Unknown Error": the container lost its access."""
        return bool(self.cards) and all(
            card.failed and card.now.get("error_code") == "unknown" for card in self.cards
        )

    def _guarded(self, card: Card, now: float, read: "Callable[..., None]", *args: "Any") -> None:
        """One card's failure is that card's alone."""
        try:
            read(card, *args)
        except self.nvml.NVMLError as error:
            if error.value in LIBRARY_GONE:
                raise
            self._fail(card, now, error)

    def _fail(self, card: Card, now: float, error: "Any") -> None:
        """Keep who the card is and why it failed, and forget the rest."""
        text = self.words(error)
        if card.handle is None:
            text = "Unable to determine the device handle for GPU %d: %s" % (card.index, text)
        card.failed, card.retry_at, card.handle = True, now + RETRY_S, None
        card.due = [0.0, 0.0, 0.0]
        card.processes, card.unified, card.mig = None, False, False
        code = LOST.get(error.value, "unknown")
        kept = {name: card.now.get(name) for name in ("uuid", "name", "bus_id")}
        card.now = dict(kept, error=text, error_code=code)
        card.sent = {name: card.sent[name] for name in card.now if name in card.sent}

    def _read_card(self, card: Card, now: float, focus: bool) -> None:
        values = self.values
        if card.handle is None:
            values.identify(card)
        slow = self._due(card, 2, now, focus)
        if slow:
            values.read_mig_mode(card)
        values.read_fast(card)
        if self._due(card, 0, now, focus):
            values.read_medium(card)
        if slow:
            values.read_slow(card)
        if self._due(card, 1, now, focus):
            self._read_processes(card)
        card.failed = False
        card.now["error"] = card.now["error_code"] = None

    def _due(self, card: Card, tier: int, now: float, focus: bool) -> bool:
        """Whether a tier is due; all cards in the same tick, since waking up is the greater cost."""
        period = (FOCUS_TIERS_S if focus else TIERS_S)[tier]
        if card.due[tier] - SLACK_S <= now or card.due[tier] > now + period:
            card.due[tier] = now + period
            return True
        return False

    def _take_pcie_turn(self, now: float, focus: bool) -> None:
        """Traffic on the bus takes 40 ms a card to count: one card at a time, and only on focus."""
        if not focus:
            if self.pcie_due is not None:
                self.pcie_due = None
                for card in self.cards:
                    card.now.update(dict.fromkeys(PCIE_RATES))
            return
        if self.pcie_due is not None and now < self.pcie_due - SLACK_S:
            return
        self.pcie_due = now + PCIE_ROUND_S / max(1, len(self.cards))
        self.pcie_next = (self.pcie_next + 1) % max(1, len(self.cards))
        card = self.cards[self.pcie_next]
        if not card.failed:
            self._guarded(card, now, self.values.read_pcie)

    def _read_processes(self, card: Card) -> None:
        listed = self.processes.of_card(self.values, card)
        if listed is None:
            return
        card.processes = listed
        if card.unified:
            known = [one["mem_used_mib"] for one in listed if one["mem_used_mib"] is not None]
            card.now["mem_used_mib"] = sum(known) if known or not listed else None
