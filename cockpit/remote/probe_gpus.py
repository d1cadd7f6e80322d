"""The cards as NVML tells of them: cheap values often, dear ones seldom, each card for itself.

Runs on hosts (Python >= 3.6, stdlib and NVIDIA's own pynvml only), on a thread that a driver may
hang. What a card does not support is remembered and not asked again.
"""

import time

LOST = {15: "gpu_lost", 16: "gpu_reset_required"}
"""NVML codes that end a card: it is lost, or wants a reset."""
LIBRARY_GONE = (1, 9, 12, 18)
"""Uninitialised, driver not loaded, no library, mismatch: the library has to be opened anew."""
NOT_HERE = (2, 3, 4, 13, 25)
"""Invalid argument, not supported, no permission, no such function or version: not asked again."""
UNKNOWN = 999
INIT_CODES = {4: "nvml_denied", 9: "no_driver", 12: "no_driver", 18: "driver_mismatch", UNKNOWN: "nvml_lost"}
THROTTLE = (
    (0x4, "power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "thermal_sw"),
    (0x40, "thermal_hw"),
    (0x80, "power_brake"),
    (0x2, "app_clocks"),
    (0x100, "display_clocks"),
    (0x200, "board_limit"),
    (0x400, "reliability"),
)
INTEGRATED = ("GB10", "Thor", "Orin", "Xavier", "Tegra", "Jetson", "nvgpu", "N1X")
BLANK = 0x7FFFFFF0
"""32-bit values from here up are DCGM's blanks or UINT_MAX: nobody measured them."""
BLANK_BYTES = 1 << 54

MEDIUM_S, PROCESSES_S, SLOW_S, RETRY_S = 2.0, 3.0, 15.0, 5.0
FOCUS_MEDIUM_S, FOCUS_PROCESSES_S, FOCUS_SLOW_S = 1.0, 2.0, 10.0


class Card(object):
    """One card: its handle, what it said last, what was sent, what it does not support."""

    def __init__(self, index):
        # type: (int) -> None
        self.index = index
        self.handle = None
        self.now = {"uuid": "", "name": ""}
        self.sent = {}
        self.off = set()
        self.failed = False
        self.retry_at = 0.0
        self.due = [0.0, 0.0, 0.0]
        self.processes = None
        self.unified = False
        self.mig = False
        self.mem_clock_max = None
        self.unknown = None

    def changes(self):
        """What is new since the last line, or None."""
        sent, fresh = self.sent, {}
        for name, value in self.now.items():
            if sent.get(name) != value:
                fresh[name] = sent[name] = value
        if self.processes is not None:
            fresh["processes"], self.processes = self.processes, None
        if not fresh:
            return None
        fresh["index"] = self.index
        return fresh


class GpuReader(object):
    """NVML, opened once and read tier by tier. Not thread-safe: one thread owns it."""

    def __init__(self, nvml, processes, host_total_bytes):
        self.nvml = nvml
        self.processes = processes
        self.host_total = host_total_bytes
        self.cards = []
        self.facts = {}
        self.turn = 0

    def open(self):
        """Open the library and every card; None, or (code, words) of what stands in the way."""
        nvml = self.nvml
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            return self.init_error(error)
        self.facts = {
            "driver": self._try(nvml.nvmlSystemGetDriverVersion),
            "cuda": _cuda(self._try(nvml.nvmlSystemGetCudaDriverVersion)),
        }
        if not count:
            return ("no_gpu", "No devices were found")
        self.cards = [Card(index) for index in range(min(count, 64))]
        return None

    def init_error(self, error):
        text = "Failed to initialize NVML: " + self.words(error)
        return (INIT_CODES.get(error.value, "nvml_error"), text)

    def close(self):
        self.cards = []
        self._try(self.nvml.nvmlShutdown)

    def words(self, error):
        """The driver's own words, not the binding's."""
        try:
            return self.nvml.nvmlErrorString(error.value)
        except (self.nvml.NVMLError, AttributeError, ValueError):
            return str(error)

    def _try(self, call, *args):
        try:
            return call(*args)
        except (self.nvml.NVMLError, AttributeError, ValueError):
            return None

    def read(self, focus):
        """Read what is due of every card. Raises NVMLError when the library itself is gone."""
        now = time.monotonic()
        self.turn += 1
        for card in self.cards:
            if card.failed and now < card.retry_at:
                continue
            try:
                self._read_card(card, now, focus)
            except self.nvml.NVMLError as error:
                if error.value in LIBRARY_GONE:
                    raise
                self._fail(card, now, error)
        return [fresh for fresh in (card.changes() for card in self.cards) if fresh]

    def all_unknown(self):
        """Whether every card answers "Unknown Error": the container lost its access."""
        return bool(self.cards) and all(
            card.failed and card.now.get("error_code") == "unknown" for card in self.cards
        )

    def _fail(self, card, now, error):
        text = self.words(error)
        if card.handle is None:
            text = "Unable to determine the device handle for GPU %d: %s" % (card.index, text)
        card.failed, card.retry_at, card.handle = True, now + RETRY_S, None
        card.due = [0.0, 0.0, 0.0]
        card.processes, card.unified = None, False
        identity = {"uuid": card.now["uuid"], "name": card.now["name"], "bus_id": card.now.get("bus_id")}
        reason = {"error": text, "error_code": LOST.get(error.value, "unknown")}
        before = card.sent if "error" in card.sent else {}
        kept = {key: value for key, value in card.sent.items() if key in identity}
        kept.update((key, before[key]) for key in reason if key in before)
        card.sent, card.now = kept, dict(identity, **reason)

    def _read_card(self, card, now, focus):
        if card.handle is None:
            self._identify(card)
        medium, processes, slow = (
            (FOCUS_MEDIUM_S, FOCUS_PROCESSES_S, FOCUS_SLOW_S) if focus else (MEDIUM_S, PROCESSES_S, SLOW_S)
        )
        slow_due = now >= card.due[2] - 0.05 or (focus and card.due[2] - now > slow)
        if slow_due:
            self._read_mig_mode(card)
        self._read_fast(card)
        if slow_due:
            self._read_slow(card)
            card.due[2] = self._next(card, 2, now, slow)
        if now >= card.due[0] - 0.05:
            self._read_medium(card)
            card.due[0] = self._next(card, 0, now, medium)
        if now >= card.due[1] - 0.05:
            self._read_processes(card)
            card.due[1] = self._next(card, 1, now, processes)
        if not card.unified and self._pcie_turn(card, focus):
            self._read_pcie(card)
        card.failed = False
        card.now["error"] = card.now["error_code"] = None

    def _pcie_turn(self, card, focus):
        """One card every second tick, every tick on focus, and none in the first."""
        turn = self.turn if focus else self.turn // 2 if self.turn % 2 == 0 else 0
        return turn > 0 and self.turn > 1 and turn % max(8, len(self.cards)) == card.index

    def _next(self, card, tier, now, period):
        """After the first reading the cards take turns, so that no tick reads them all."""
        if card.due[tier] == 0.0:
            return now + period * (0.5 + 0.5 * (card.index % 4) / 4.0)
        return now + period

    def _identify(self, card):
        nvml = self.nvml
        card.handle = nvml.nvmlDeviceGetHandleByIndex(card.index)
        handle, fresh = card.handle, card.now
        card.off = set()
        fresh["uuid"] = self.ask(card, "uuid", nvml.nvmlDeviceGetUUID, handle) or ""
        fresh["name"] = self.ask(card, "name", nvml.nvmlDeviceGetName, handle) or ""
        pci = self.ask(card, "pci", nvml.nvmlDeviceGetPciInfo, handle)
        fresh["bus_id"] = pci.busId if pci is not None else None
        fresh["sm_clock_max_mhz"] = self._mhz(card, "sm_max", nvml.nvmlDeviceGetMaxClockInfo, 1)
        card.mem_clock_max = self._mhz(card, "mem_max", nvml.nvmlDeviceGetMaxClockInfo, 2)

    def ask(self, card, name, call, *args):
        """A value, or None; what a card does not know is not asked again. Raises for a lost card."""
        if name in card.off:
            return None
        try:
            return call(*args)
        except self.nvml.NVMLError as error:
            code = error.value
            if code in LOST or code in LIBRARY_GONE:
                raise
            if code in NOT_HERE:
                card.off.add(name)
            elif code == UNKNOWN and name in ("util", "memory"):
                card.unknown = error
            return None
        except (ValueError, AttributeError):
            card.off.add(name)
            return None

    def _number(self, card, name, call, *args):
        value = self.ask(card, name, call, *args)
        return value if value is not None and 0 <= value < BLANK else None

    def _mhz(self, card, name, call, clock):
        return self._number(card, name, call, card.handle, clock)

    def _read_fast(self, card):
        nvml, handle, fresh = self.nvml, card.handle, card.now
        card.unknown = None
        util = self.ask(card, "util", nvml.nvmlDeviceGetUtilizationRates, handle)
        known = util is not None and not card.mig
        fresh["util_pct"] = _percent(util.gpu) if known else None
        fresh["mem_util_pct"] = _percent(util.memory) if known else None
        self._read_memory(card)
        if card.unknown is not None and util is None and fresh.get("mem_total_mib") is None:
            raise card.unknown

    def _memory(self, card, handle):
        """(total, used, reserved) in bytes, or None; version 2 counts what the driver reserves apart."""
        nvml = self.nvml
        info = self.ask(card, "memory_v2", nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
        if info is not None:
            return info.total, info.used, info.reserved
        info = self.ask(card, "memory", nvml.nvmlDeviceGetMemoryInfo, handle)
        return (info.total, info.used, None) if info is not None else None

    def _read_memory(self, card):
        fresh = card.now
        sizes = self._memory(card, card.handle)
        if sizes is None:
            card.unified = "memory" in card.off and not card.mig and bool(self.host_total)
        elif sizes[0] >= 0.9 * (self.host_total or 1 << 62):
            card.unified = self._integrated(card)
        fresh["unified"] = card.unified
        if card.unified:
            fresh["mem_total_mib"], fresh["mem_reserved_mib"] = self.host_total >> 20, None
            return
        total, used, reserved = sizes if sizes is not None else (None, None, None)
        fresh["mem_total_mib"] = mib(total)
        fresh["mem_used_mib"] = mib(used)
        fresh["mem_reserved_mib"] = mib(reserved)

    def _integrated(self, card):
        """Whether the memory is the host's: such a chip says so by name, or has no memory clock."""
        return card.mem_clock_max is None or any(word in card.now["name"] for word in INTEGRATED)

    def _read_medium(self, card):
        nvml, handle, fresh = self.nvml, card.handle, card.now
        fresh["temp_c"] = self._number(card, "temp", nvml.nvmlDeviceGetTemperature, handle, 0)
        power = self._number(card, "power", nvml.nvmlDeviceGetPowerUsage, handle)
        fresh["power_w"] = round(power / 1000.0, 1) if power is not None else None
        fresh["sm_clock_mhz"] = self._mhz(card, "sm", nvml.nvmlDeviceGetClockInfo, 1)
        fresh["mem_clock_mhz"] = self._mhz(card, "mem", nvml.nvmlDeviceGetClockInfo, 2)
        bits = self.ask(card, "throttle", nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        named = bits is not None and bits < BLANK
        fresh["throttle"] = [name for bit, name in THROTTLE if bits & bit] if named else None
        if card.mig:
            self._read_mig(card)

    def _read_slow(self, card):
        nvml, handle, fresh = self.nvml, card.handle, card.now
        limit = self._number(card, "limit", nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        fresh["power_limit_w"] = round(limit / 1000.0, 1) if limit is not None else None
        mode = self.ask(card, "persistence", nvml.nvmlDeviceGetPersistenceMode, handle)
        fresh["persistence"] = bool(mode) if mode is not None else None
        for field, kind in (("ecc_corrected", 0), ("ecc_uncorrected", 1)):
            value = self.ask(card, field, nvml.nvmlDeviceGetTotalEccErrors, handle, kind, 0)
            fresh[field] = value if value is not None and value < 1 << 62 else None
        rows = self.ask(card, "rows", nvml.nvmlDeviceGetRemappedRows, handle)
        fresh["remapped_rows"] = rows[0] + rows[1] if rows else None
        fresh["remap_pending"] = bool(rows[2]) if rows else None
        pages = [self.ask(card, "pages%d" % why, nvml.nvmlDeviceGetRetiredPages, handle, why) for why in (0, 1)]
        fresh["retired_pages"] = None if None in pages else len(pages[0]) + len(pages[1])
        if not card.unified:
            fresh["fan_pct"] = self._number(card, "fan", nvml.nvmlDeviceGetFanSpeed, handle)
            fresh["pcie_gen"] = self._number(card, "gen", nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle)
            fresh["pcie_width"] = self._number(card, "width", nvml.nvmlDeviceGetCurrPcieLinkWidth, handle)

    def _read_pcie(self, card):
        """20 ms a direction inside NVML, so one card a turn."""
        call = self.nvml.nvmlDeviceGetPcieThroughput
        for field, way in (("pcie_tx_mib_s", 0), ("pcie_rx_mib_s", 1)):
            value = self._number(card, field, call, card.handle, way)
            card.now[field] = round(value / 1024.0, 1) if value is not None else None

    def _read_mig_mode(self, card):
        mode = self.ask(card, "mig", self.nvml.nvmlDeviceGetMigMode, card.handle)
        was, card.mig = card.mig, bool(mode and mode[0] == 1)
        card.now["mig"] = card.mig if mode else None
        if was != card.mig:
            card.off.clear()
            card.now["mig_instances"] = []

    def _read_mig(self, card):
        nvml, found = self.nvml, []
        most = self.ask(card, "mig_max", nvml.nvmlDeviceGetMaxMigDeviceCount, card.handle) or 0
        for place in range(min(most, 64)):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card.handle, place)
                name = nvml.nvmlDeviceGetName(handle)
                memory = nvml.nvmlDeviceGetMemoryInfo(handle)
                uuid = nvml.nvmlDeviceGetUUID(handle)
            except nvml.NVMLError as error:
                if error.value in LOST or error.value in LIBRARY_GONE:
                    raise
                continue
            sizes = {"mem_used_mib": mib(memory.used), "mem_total_mib": mib(memory.total)}
            found.append(dict(sizes, index=place, uuid=uuid, profile=name.split("MIG ")[-1]))
        card.now["mig_instances"] = found

    def _read_processes(self, card):
        listed = self.processes.of_card(self, card)
        if listed is None:
            return
        card.processes = listed
        if card.unified:
            sizes = [process["mem_used_mib"] for process in listed]
            known = [size for size in sizes if size is not None]
            card.now["mem_used_mib"] = sum(known) if known or not sizes else None


def mib(size):
    """MiB of a number of bytes; None for a sentinel."""
    return size >> 20 if size is not None and 0 <= size < BLANK_BYTES else None


def _percent(value):
    return min(value, 100) if 0 <= value < BLANK else None


def _cuda(version):
    """12040 -> "12.4"."""
    return "%d.%d" % (version // 1000, version % 1000 // 10) if version else None
