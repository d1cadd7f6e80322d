"""A simulated `pynvml` for the demo fleet: the part of NVIDIA's interface that cockpit reads, without a driver.

The folder in `COCKPIT_DEMO_GPUS` holds `cards.json` (what is built in) and one `use-PID-N.json` for each
process that holds a card, `xid-*.json` for each error of a card. A card's numbers follow from who lives;
faults are injected through `faults.json`.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import time
import types
from typing import Any

import simulated_host

NVML_SUCCESS = 0
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_TIMEOUT = 10
NVML_ERROR_GPU_IS_LOST = 15
nvmlMemory_v2 = 0x02000028
nvmlEventTypeXidCriticalError = 8
MIB = 1 << 20

_WORDS = {
    1: "Uninitialized",
    3: "Not Supported",
    6: "Not Found",
    9: "Driver Not Loaded",
    10: "Timeout",
    15: "GPU is lost",
    18: "Driver/library version mismatch",
    999: "Unknown Error",
}


class _PrintableStructure(ctypes.Structure):
    """The base of NVIDIA's structures."""


class c_nvmlUtilization_t(_PrintableStructure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class c_nvmlMemory_v2_t(_PrintableStructure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(_WORDS.get(value, "error %d" % value))
        self.value = value


def nvmlErrorString(value: int) -> str:
    return _WORDS.get(value, "Unknown Error")


class _Card:
    def __init__(self, index: int, facts: dict[str, Any]) -> None:
        self.index = index
        self._as_parameter_ = ctypes.c_void_p(index + 1)  # a handle is an opaque pointer
        self.uuid = str(facts["uuid"])
        self.name = str(facts["name"])
        self.bus_id = str(facts["bus_id"])
        self.total = int(facts["total_mib"])
        self.limit_w = float(facts["limit_w"])
        self.idle_w = float(facts["idle_w"])
        self.clock_mhz = int(facts["clock_mhz"])
        self.ecc = bool(facts["ecc"])


_cards: list[_Card] = []
_uses: dict[int, list[dict[str, Any]]] = {}
_uses_at = 0.0
_REFRESH_S = 0.2


def _folder() -> str:
    return os.environ["COCKPIT_DEMO_GPUS"]


def _read(name: str) -> Any:
    try:
        with open(os.path.join(_folder(), name), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def nvmlInit() -> None:
    facts = _read("cards.json")
    if not isinstance(facts, list):
        raise NVMLError(9)
    code = _fault("init")
    if code:
        raise NVMLError(code)
    _cards[:] = [_Card(index, each) for index, each in enumerate(facts)]
    host = _read("host.json")
    if isinstance(host, dict):
        simulated_host.furnish(host)


def nvmlShutdown() -> None:
    _cards.clear()


def _fault(name: str) -> int:
    faults = _read("faults.json")
    return int(faults.get(name, 0)) if isinstance(faults, dict) else 0


def _alive(pid: int) -> bool:
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def _uses_of(card: _Card) -> list[dict[str, Any]]:
    global _uses_at
    now = time.monotonic()
    if now - _uses_at > _REFRESH_S:
        _uses_at = now
        _uses.clear()
        for name in os.listdir(_folder()):
            if name.startswith("use-"):
                use = _read(name)
                if isinstance(use, dict) and _alive(int(use["pid"])):
                    _uses.setdefault(int(use["gpu"]), []).append(use)
    return _uses.get(card.index, [])


def _wave(card: _Card, period_s: float, depth: float) -> float:
    """A slow, repeatable ripple in [-depth, depth], another one for each card."""
    phase = (hash_of(card.uuid) % 1000) / 1000.0
    return depth * math.sin(2.0 * math.pi * (time.time() / period_s + phase))


def hash_of(text: str) -> int:
    value = 5381
    for char in text:
        value = (value * 33 + ord(char)) & 0xFFFFFFFF
    return value


def _util(card: _Card) -> int:
    uses = _uses_of(card)
    if not uses:
        return 0
    wanted = max(float(use.get("util", 95)) for use in uses)
    return max(0, min(100, round(wanted + _wave(card, 7.0, 3.0) + _wave(card, 2.3, 2.0))))


def nvmlDeviceGetCount() -> int:
    return len(_cards)


def nvmlDeviceGetHandleByIndex(index: int) -> _Card:
    card = _cards[index]
    _check(card)
    return card


def _check(card: _Card) -> None:
    code = _fault("gpu%d" % card.index)
    if code:
        raise NVMLError(code)


def nvmlSystemGetDriverVersion() -> str:
    return "550.90.07"


def nvmlSystemGetCudaDriverVersion() -> int:
    return 12040


def nvmlDeviceGetUUID(card: _Card) -> str:
    return card.uuid


def nvmlDeviceGetName(card: _Card) -> str:
    return card.name


def nvmlDeviceGetPciInfo(card: _Card) -> Any:
    return types.SimpleNamespace(busId=card.bus_id)


def nvmlDeviceGetUtilizationRates(card: _Card) -> Any:
    _check(card)
    util = _util(card)
    return c_nvmlUtilization_t(util, util * 6 // 10)


def nvmlDeviceGetMemoryInfo(card: _Card, version: int = 0) -> Any:
    _check(card)
    held = sum(int(use["mem_mib"]) for use in _uses_of(card))
    reserved = 430
    used = min(card.total, held + (0 if version else reserved)) * MIB
    total = card.total * MIB
    return c_nvmlMemory_v2_t(2, total, reserved * MIB, total - used, used)


def nvmlDeviceGetTemperature(card: _Card, sensor: int = 0) -> int:
    return round(31 + 0.36 * _util(card) + _wave(card, 40.0, 2.0))


def nvmlDeviceGetPowerUsage(card: _Card) -> int:
    uses = _uses_of(card)
    given = max((float(use["power"]) for use in uses if use.get("power") is not None), default=None)
    share = _util(card) / 100.0 if given is None else given
    watts = card.idle_w + (card.limit_w * 0.93 - card.idle_w) * share + _wave(card, 3.1, 4.0)
    return max(0, round(1000 * watts))


def nvmlDeviceGetEnforcedPowerLimit(card: _Card) -> int:
    return round(1000 * card.limit_w)


def nvmlDeviceGetClockInfo(card: _Card, clock: int) -> int:
    return card.clock_mhz if _util(card) > 5 else 210


def nvmlDeviceGetMaxClockInfo(card: _Card, clock: int) -> int:
    return card.clock_mhz + 300


def nvmlDeviceGetCurrentClocksThrottleReasons(card: _Card) -> int:
    return 0x4 if _util(card) > 97 else 0 if _util(card) > 5 else 0x1


def nvmlDeviceGetPersistenceMode(card: _Card) -> int:
    return 1


def nvmlDeviceGetTotalEccErrors(card: _Card, kind: int, counter: int) -> int:
    if not card.ecc:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return 0


def nvmlDeviceGetRemappedRows(card: _Card) -> tuple[int, int, int, int]:
    if not card.ecc:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return (0, 0, 0, 0)


def nvmlDeviceGetRetiredPages(card: _Card, why: int) -> list[int]:
    raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


def nvmlDeviceGetFanSpeed(card: _Card) -> int:
    if card.ecc:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return 30 + _util(card) // 3


def nvmlDeviceGetCurrPcieLinkGeneration(card: _Card) -> int:
    return 5 if card.ecc else 4


def nvmlDeviceGetCurrPcieLinkWidth(card: _Card) -> int:
    return 16


def nvmlDeviceGetMaxPcieLinkGeneration(card: _Card) -> int:
    return nvmlDeviceGetCurrPcieLinkGeneration(card)


def nvmlDeviceGetMaxPcieLinkWidth(card: _Card) -> int:
    return nvmlDeviceGetCurrPcieLinkWidth(card)


def nvmlDeviceGetPcieThroughput(card: _Card, way: int) -> int:
    return _util(card) * (900 if way else 400)


def nvmlDeviceGetMigMode(card: _Card) -> tuple[int, int]:
    if not card.ecc:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return (0, 0)


def nvmlDeviceGetMaxMigDeviceCount(card: _Card) -> int:
    return 0


def nvmlDeviceGetComputeRunningProcesses(card: _Card) -> list[Any]:
    _check(card)
    return [
        types.SimpleNamespace(pid=int(use["pid"]), usedGpuMemory=int(use["mem_mib"]) * MIB)
        for use in _uses_of(card)
    ]


def nvmlDeviceGetGraphicsRunningProcesses(card: _Card) -> list[Any]:
    return []


nvmlDeviceGetComputeRunningProcesses_v3 = nvmlDeviceGetComputeRunningProcesses
nvmlDeviceGetGraphicsRunningProcesses_v3 = nvmlDeviceGetGraphicsRunningProcesses


class _EventSet:
    """Errors that were there before nobody hears of."""

    def __init__(self) -> None:
        self.told = set(_xid_files())


def _xid_files() -> list[str]:
    names = os.listdir(_folder())
    return sorted(name for name in names if name.startswith("xid-") and name.endswith(".json"))


def nvmlEventSetCreate() -> _EventSet:
    return _EventSet()


def nvmlDeviceRegisterEvents(card: _Card, kinds: int, events: _EventSet) -> None:
    """Every card is registered."""


def nvmlEventSetWait_v2(events: _EventSet, timeout_ms: int) -> Any:
    for name in _xid_files():
        if name in events.told:
            continue
        events.told.add(name)
        error = _read(name)
        if isinstance(error, dict) and 0 <= int(error["gpu"]) < len(_cards):
            return types.SimpleNamespace(
                device=_cards[int(error["gpu"])],
                eventType=nvmlEventTypeXidCriticalError,
                eventData=int(error["xid"]),
            )
    raise NVMLError(NVML_ERROR_TIMEOUT)
