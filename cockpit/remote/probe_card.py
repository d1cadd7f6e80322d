"""One card's values as NVML tells of them: cheap ones often, dear ones seldom.

Runs on hosts: Python >= 3.6, stdlib and NVIDIA's own pynvml only. What a card does not support is
remembered and not asked again; a lost card raises and the others go on.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

LOST = {15: "gpu_lost", 16: "gpu_reset_required"}
"""NVML codes that end a card: it is lost, or wants a reset."""
LIBRARY_GONE = (1, 9, 12, 18)
"""Uninitialised, driver not loaded, no library, mismatch: the library has to be opened anew."""
NOT_HERE = (2, 3, 4, 13, 25)
"""Invalid argument, not supported, no permission, no such function or version: not asked again."""
UNKNOWN = 999
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
SM, MEMORY = 1, 2
LINKS_MAX = 18
"""NVLinks that a card can have."""

field = object.__getattribute__
"""A struct's field as it is: the binding's own access looks for text to decode, at thrice the cost."""


class Card:
    """What a card said last, what was sent of it, what it does not support."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.handle = None  # type: Any
        self.now = {"uuid": "", "name": ""}  # type: dict[str, Any]
        self.sent = {}  # type: dict[str, Any]
        self.off = set()  # type: set[str]
        self.failed = False
        self.retry_at = 0.0
        self.due = [0.0, 0.0, 0.0]
        self.processes = None  # type: list[dict[str, Any]] | None
        self.unified = False
        self.mig = False
        self.mem_clock_max = None  # type: int | None
        self.unknown = None  # type: Exception | None

    def changes(self) -> "dict[str, Any] | None":
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


class CardReader:
    """Reads one tier of one card. Lost cards and a lost library raise NVMLError."""

    def __init__(self, nvml: "Any", host_total_bytes: "int | None") -> None:
        self.nvml = nvml
        self.Error = nvml.NVMLError
        self.host_total = host_total_bytes
        self.rates = reused(nvml, "nvmlDeviceGetUtilizationRates", "c_nvmlUtilization_t")
        self.memory_info = nvml.nvmlDeviceGetMemoryInfo
        self.memory_v2 = reused(
            nvml, "nvmlDeviceGetMemoryInfo_v2", "c_nvmlMemory_v2_t", version=nvml.nvmlMemory_v2
        )
        self.medium = (
            ("temp_c", reused(nvml, "nvmlDeviceGetTemperature", "c_uint", 0)),
            ("power_w", reused(nvml, "nvmlDeviceGetPowerUsage", "c_uint")),
            ("sm_clock_mhz", reused(nvml, "nvmlDeviceGetClockInfo", "c_uint", SM)),
            ("mem_clock_mhz", reused(nvml, "nvmlDeviceGetClockInfo", "c_uint", MEMORY)),
            ("throttle", reused(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", "c_ulonglong")),
        )

    def ask(self, card: Card, name: str, call: "Callable[..., Any]", *args: "Any") -> "Any":
        """A value, or None; what a card does not know is not asked again."""
        if name in card.off:
            return None
        try:
            return call(*args)
        except self.Error as error:
            return self.refused(card, name, error)
        except (ValueError, AttributeError):
            card.off.add(name)
            return None

    def refused(self, card: Card, name: str, error: "Any") -> None:
        """Note why there is no value; raises for a lost card."""
        code = error.value
        if code in LOST or code in LIBRARY_GONE:
            raise error
        if code in NOT_HERE:
            card.off.add(name)
        elif code == UNKNOWN and name in ("util", "memory"):
            card.unknown = error

    def number(
        self, card: Card, name: str, call: "Callable[..., Any]", *args: "Any"
    ) -> "int | None":
        """A 32-bit number, or None for a blank."""
        value = self.ask(card, name, call, *args)
        return value if value is not None and 0 <= value < BLANK else None

    def identify(self, card: Card) -> None:
        """What does not change of a card; its handle is checked by the asking."""
        nvml = self.nvml
        card.handle = handle = nvml.nvmlDeviceGetHandleByIndex(card.index)
        card.off, now = set(), card.now
        now["uuid"] = self.ask(card, "uuid", nvml.nvmlDeviceGetUUID, handle) or ""
        now["name"] = self.ask(card, "name", nvml.nvmlDeviceGetName, handle) or ""
        pci = self.ask(card, "pci", nvml.nvmlDeviceGetPciInfo, handle)
        now["bus_id"] = pci.busId if pci is not None else None
        clock = nvml.nvmlDeviceGetMaxClockInfo
        now["sm_clock_max_mhz"] = self.number(card, "sm_max", clock, handle, SM)
        card.mem_clock_max = self.number(card, "mem_max", clock, handle, MEMORY)
        now["pcie_gen_max"] = now["pcie_width_max"] = None

    def read_fast(self, card: Card) -> None:
        """Utilisation and memory."""
        now, util = card.now, None
        card.unknown = None
        if "util" not in card.off:
            try:
                util = self.rates(card.handle)
            except self.Error as error:
                self.refused(card, "util", error)
        if util is not None and not card.mig:
            now["util_pct"] = percent(field(util, "gpu"))
            now["mem_util_pct"] = percent(field(util, "memory"))
        else:
            now["util_pct"] = now["mem_util_pct"] = None
        self.read_memory(card)
        if card.unknown is not None and util is None and now.get("mem_total_mib") is None:
            raise card.unknown

    def read_memory(self, card: Card) -> None:
        """Memory by NVML's version 2, which counts apart what the driver reserves."""
        now, info, version = card.now, None, 2
        if "memory_v2" not in card.off:
            try:
                info = self.memory_v2(card.handle)
            except self.Error as error:
                self.refused(card, "memory_v2", error)
        if info is None:
            info, version = self.ask(card, "memory", self.memory_info, card.handle), 1
        total = field(info, "total") if info is not None else None
        self.judge_unified(card, total)
        now["unified"] = card.unified
        if card.unified:
            now["mem_total_mib"], now["mem_reserved_mib"] = mib(self.host_total), None
            return
        now["mem_total_mib"] = mib(total)
        now["mem_used_mib"] = mib(field(info, "used")) if info is not None else None
        known = info is not None and version == 2
        now["mem_reserved_mib"] = mib(field(info, "reserved")) if known else None

    def judge_unified(self, card: Card, total: "int | None") -> None:
        """Memory is the host's where NVML has none of its own, or one as large as the host's.

        Small hosts with large cards exist, so a large one must also be integrated: by its name, or
        because it has no memory clock.
        """
        if total is None:
            card.unified = "memory" in card.off and not card.mig and bool(self.host_total)
        elif self.host_total and total >= 0.9 * self.host_total and not card.unified:
            named = any(word in card.now["name"] for word in INTEGRATED)
            card.unified = named or card.mem_clock_max is None

    def read_medium(self, card: Card) -> None:
        """Clocks, power, temperature, throttle reasons."""
        now, handle, off = card.now, card.handle, card.off
        for name, call in self.medium:
            value = None
            if name not in off:
                try:
                    value = getattr(call(handle), "value", None)
                except self.Error as error:
                    self.refused(card, name, error)
            now[name] = value if value is not None and 0 <= value < BLANK else None
        if "temp_c" in off:
            newer = getattr(self.nvml, "nvmlDeviceGetTemperatureV", None)
            now["temp_c"] = self.number(card, "temp_v", newer, handle, 0) if newer else None
        if now["power_w"] is not None:
            now["power_w"] = round(now["power_w"] / 1000.0, 1)
        bits = now["throttle"]
        if bits is not None:
            now["throttle"] = [name for bit, name in THROTTLE if bits & bit]
        if card.mig:
            self.read_mig(card)

    def read_slow(self, card: Card) -> None:
        """Power limit, persistence, ECC, remapped rows, retired pages, fan, link."""
        nvml, handle, now = self.nvml, card.handle, card.now
        limit = self.number(card, "limit", nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        now["power_limit_w"] = round(limit / 1000.0, 1) if limit is not None else None
        mode = self.ask(card, "persistence", nvml.nvmlDeviceGetPersistenceMode, handle)
        now["persistence"] = bool(mode) if mode is not None else None
        for name, kind in (("ecc_corrected", 0), ("ecc_uncorrected", 1)):
            value = self.ask(card, name, nvml.nvmlDeviceGetTotalEccErrors, handle, kind, 0)
            now[name] = value if value is not None and value < 1 << 62 else None
        rows = self.ask(card, "rows", nvml.nvmlDeviceGetRemappedRows, handle)
        now["remapped_rows"] = rows[0] + rows[1] if rows else None
        now["remap_pending"] = bool(rows[2]) if rows else None
        now["remap_failed"] = bool(rows[3]) if rows else None
        call = nvml.nvmlDeviceGetRetiredPages
        pages = [self.ask(card, "pages%d" % why, call, handle, why) for why in (0, 1)]
        now["retired_pages"] = None if None in pages else sum(len(listed) for listed in pages)
        self.read_nvlinks(card)
        if card.unified:
            now["fan_pct"] = now["pcie_gen"] = now["pcie_width"] = None
            return
        now["fan_pct"] = self.number(card, "fan", nvml.nvmlDeviceGetFanSpeed, handle)
        now["pcie_gen"] = self.number(card, "gen", nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle)
        now["pcie_width"] = self.number(card, "width", nvml.nvmlDeviceGetCurrPcieLinkWidth, handle)
        if now["pcie_width_max"] is None:
            most = nvml.nvmlDeviceGetMaxPcieLinkWidth
            now["pcie_width_max"] = self.number(card, "width_max", most, handle)
            most = nvml.nvmlDeviceGetMaxPcieLinkGeneration
            now["pcie_gen_max"] = self.number(card, "gen_max", most, handle)

    def read_nvlinks(self, card: Card) -> None:
        """How many NVLinks of the card are up; None where it has none."""
        if "nvlinks" in card.off:
            return
        links_up = None
        for link in range(LINKS_MAX):
            try:
                state = self.nvml.nvmlDeviceGetNvLinkState(card.handle, link)
            except (self.Error, AttributeError) as error:
                if getattr(error, "value", None) in tuple(LOST) + LIBRARY_GONE:
                    raise
                break
            links_up = (links_up or 0) + (state == 1)
        card.now["nvlinks_up"] = links_up
        if links_up is None:
            card.off.add("nvlinks")

    def read_pcie(self, card: Card) -> None:
        """Traffic on the bus; NVML counts for 20 ms in each direction."""
        if card.unified or card.handle is None:
            return
        call = self.nvml.nvmlDeviceGetPcieThroughput
        for name, way in (("pcie_tx_mib_s", 0), ("pcie_rx_mib_s", 1)):
            value = self.number(card, name, call, card.handle, way)
            card.now[name] = round(value / 1024.0, 1) if value is not None else None

    def read_mig_mode(self, card: Card) -> None:
        mode = self.ask(card, "mig", self.nvml.nvmlDeviceGetMigMode, card.handle)
        was, card.mig = card.mig, bool(mode and mode[0] == 1)
        card.now["mig"] = card.mig if mode else None
        if was != card.mig:
            card.off.clear()
            card.now["mig_instances"] = []

    def read_mig(self, card: Card) -> None:
        """Memory of each slice; NVML knows no utilisation of them."""
        nvml, found = self.nvml, []
        most = self.ask(card, "mig_max", nvml.nvmlDeviceGetMaxMigDeviceCount, card.handle) or 0
        for place in range(min(most, 64)):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card.handle, place)
                name = nvml.nvmlDeviceGetName(handle)
                memory = nvml.nvmlDeviceGetMemoryInfo(handle)
                uuid = nvml.nvmlDeviceGetUUID(handle)
            except self.Error as error:
                self.refused(card, "mig_slice", error)
                continue
            sizes = {"mem_used_mib": mib(memory.used), "mem_total_mib": mib(memory.total)}
            found.append(dict(sizes, index=place, uuid=uuid, profile=name.split("MIG ")[-1]))
        card.now["mig_instances"] = found


class Plain:
    """A number in the shape of a ctypes one."""

    def __init__(self, value: int) -> None:
        self.value = value


def reused(
    nvml: "Any", function: str, struct: str, *before: int, version: int = 0
) -> "Callable[[Any], Any]":
    """A function of the binding that is called often, on one struct of the binding's own.

    Making a struct for each call and looking the function up costs more than the call itself.
    """
    pointer = getattr(nvml, "_nvmlGetFunctionPointer", None)
    if pointer is None:
        return _wrapped(getattr(nvml, function.replace("_v2", "")), struct, before, version)
    place = getattr(nvml, struct)()
    argument, success = nvml.byref(place), nvml.NVML_SUCCESS

    def call(handle: "Any") -> "Any":
        if version:
            place.version = version
        code = pointer(function)(handle, *before, argument)
        if code != success:
            raise nvml.NVMLError(code)
        return place

    return call


def _wrapped(
    plain: "Callable[..., Any]", struct: str, before: "tuple[int, ...]", version: int
) -> "Callable[[Any], Any]":
    """The same by the binding's own function, for a binding that has no such inside."""
    if struct.startswith("c_u"):
        return lambda handle: Plain(plain(handle, *before))
    return lambda handle: plain(handle, version) if version else plain(handle)


def mib(size: "int | None") -> "int | None":
    """MiB of a number of bytes; None for a sentinel."""
    return size >> 20 if size is not None and 0 <= size < BLANK_BYTES else None


def percent(value: int) -> "int | None":
    """Clamped: uninitialised samples read as thousands of per cent."""
    return min(value, 100) if 0 <= value < BLANK else None
