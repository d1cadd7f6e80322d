"""How the cards are joined: NVLinks between two cards, else the nearest thing that both hang on.

Runs on hosts: Python >= 3.6, stdlib and NVIDIA's own pynvml only. Read once, some time after the start.
"""

from probe_xids import bus_key  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANCESTORS = {0: "board", 10: "switch", 20: "switches", 30: "bridge", 40: "node", 50: "system"}
LINKS_MAX, CARDS_MAX = 18, 16


def topology(nvml: "Any", cards: "list[Any]") -> "list[str]":
    """One word for each pair of cards: "0-1 nvlink x12", "0-2 node"."""
    alive = [card for card in cards[:CARDS_MAX] if card.handle is not None]
    links = _nvlinks(nvml, alive)
    told = []
    for place, one in enumerate(alive):
        for two in alive[place + 1 :]:
            joined = links.get((one.index, two.index), 0)
            name = "nvlink x%d" % joined if joined else _ancestor(nvml, one.handle, two.handle)
            if name:
                told.append("%d-%d %s" % (one.index, two.index, name))
    return told


def _ancestor(nvml: "Any", one: "Any", two: "Any") -> "str | None":
    try:
        return ANCESTORS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(one, two))
    except (nvml.NVMLError, AttributeError):
        return None


def _nvlinks(nvml: "Any", cards: "list[Any]") -> "dict[tuple[int, int], int]":
    """Active links by pair of cards; links to a switch lead to every card and are counted for all pairs."""
    by_bus = {bus_key(card.now.get("bus_id")): card.index for card in cards}
    found = {}  # type: dict[tuple[int, int], int]
    switched = {}  # type: dict[int, int]
    for card in cards:
        for link in range(LINKS_MAX):
            try:
                if nvml.nvmlDeviceGetNvLinkState(card.handle, link) != 1:
                    continue
                other = by_bus.get(
                    bus_key(nvml.nvmlDeviceGetNvLinkRemotePciInfo(card.handle, link).busId)
                )
            except (nvml.NVMLError, AttributeError, ValueError):
                break
            if other is None:
                switched[card.index] = switched.get(card.index, 0) + 1
            elif other > card.index:
                found[(card.index, other)] = found.get((card.index, other), 0) + 1
    for one in switched:
        for two in switched:
            if one < two:
                found.setdefault((one, two), min(switched[one], switched[two]))
    return found
