"""The thread that talks to the driver. It may hang in there; the loop that asks it never does.

Runs on hosts: Python >= 3.6, stdlib and NVIDIA's pynvml only. `ask` and `collect` belong to the
loop, `_run` to the thread; one request is under way at a time and two locks hand it over.
"""

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from probe_processes import ProcessReader  # type: ignore[import-not-found]

HUNG_S, OPENING_S = 5.0, 10.0
TOPOLOGY_AT = 5
"""The reading after which it is asked how the cards are joined, once."""
RETRY_S = (2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
LIBRARY_PLACES = ("/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                  "/usr/lib/aarch64-linux-gnu", "/run/opengl-driver/lib")  # fmt: skip


class Driver:
    """NVML behind a thread: `collect` gives what is new, and how long no answer came."""

    def __init__(
        self, processes: "ProcessReader", host_total: "int | None", stuck: "int | None"
    ) -> None:
        self.processes, self.host_total, self.stuck = processes, host_total, stuck
        self.go, self.done = _thread.allocate_lock(), _thread.allocate_lock()
        self.go.acquire()
        self.done.acquire()
        self.asked_at = None  # type: float | None
        self.longest = 0.0
        self.focus = False
        self.reader = self.events = None  # type: Any
        self.news = {}  # type: dict[str, Any]
        self.retries = 0
        self.retry_at = 0.0
        self.error = None  # type: tuple[str, str] | None
        self.told_hung = self.told_cards = False
        self.opened = False
        self.readings = 0
        self.xids_due = 0.0
        _thread.start_new_thread(self._run, ())

    def ask(self, focus: bool) -> None:
        """Begin a reading unless one is under way."""
        if self.asked_at is None and not self.stuck:
            self.focus, self.asked_at = focus, time.monotonic()
            self.go.release()

    def collect(self, limit_s: float) -> "dict[str, Any]":
        """Wait at most `limit_s` for the reading under way; news for the line."""
        if self.stuck:
            return {
                "gpu_error_code": "driver_hung",
                "gpu_error": "driver not answering: pid %d of an earlier look is stuck in it"
                % self.stuck,
            }
        if self.asked_at is not None and self.done.acquire(True, max(0.0, limit_s)):
            took = time.monotonic() - self.asked_at
            if self.opened:
                self.longest = max(took, 0.9 * self.longest)
            self.asked_at = None
            return self._after_silence() if self.told_hung else self.news
        return self._silence()

    def silent_s(self) -> float:
        """Seconds since the reading under way began."""
        return 0.0 if self.asked_at is None else time.monotonic() - self.asked_at

    def _silence(self) -> "dict[str, Any]":
        """What to say while no answer comes: nothing at first, a slow driver is no dead one."""
        silent = self.silent_s()
        limit = max(HUNG_S, 4.0 * self.longest) if self.opened else OPENING_S
        if silent < limit:
            if self.opened or silent < 1.0:
                return {}
            return {
                "gpu_error_code": "driver_starting",
                "gpu_error": "driver not answering yet, %d s" % silent,
            }
        words = "driver not answering for %d s" % silent
        news = {"gpu_error_code": "driver_hung", "gpu_error": words}  # type: dict[str, Any]
        if not self.told_hung and self.reader is not None:
            self.told_cards = True
            news["gpus"] = [
                {"index": card.index, "error": "driver not answering", "error_code": "driver_hung"}
                for card in self.reader.cards
            ]
        self.told_hung = True
        return news

    def _after_silence(self) -> "dict[str, Any]":
        """The answer that came at last; every value of a card that was given up is told anew, next."""
        code, words = self.error or (None, None)
        news = dict({"gpu_error_code": code, "gpu_error": words}, **self.news)
        if self.told_cards:
            news.pop("gpus", None)
            for card in self.reader.cards:
                card.sent = {"error": "driver not answering", "error_code": "driver_hung"}
                card.due = [0.0, 0.0, 0.0]
        self.told_hung = self.told_cards = False
        return news

    def _run(self) -> None:
        while True:
            self.go.acquire()
            try:
                self.news = self._step()
            except Exception as error:  # noqa: BLE001 - the edge of a thread: the host's numbers go on
                self.news = self._failed("probe_error", "%s: %s" % (type(error).__name__, error))
            self.done.release()

    def _step(self) -> "dict[str, Any]":
        if self.error is not None or self.reader is None or not self.opened:
            if time.monotonic() < self.retry_at:
                return {}
            return self._open()
        self.readings += 1
        try:
            gpus = self.reader.read(self.focus)
        except self.reader.nvml.NVMLError as error:
            code, words = self.reader.init_error(error)
            self.reader.close()
            self.opened = False
            return self._failed(code, words)
        if self.reader.all_unknown():
            return dict(self._reopen(), gpus=gpus)
        news = {  # type: dict[str, Any]
            "gpus": gpus,
            "gpus_mono": time.monotonic(),
            "xids": self._xids(),
        }
        if self.readings == TOPOLOGY_AT:
            from probe_topology import topology  # type: ignore[import-not-found]

            news["facts"] = {"topology": topology(self.reader.nvml, self.reader.cards)}
        return news

    def _xids(self) -> "list[dict[str, Any]]":
        """New events, every two seconds: asking costs as much as a card."""
        now = time.monotonic()
        if now < self.xids_due - 0.05:
            return []
        self.xids_due = now + (1.0 if self.focus else 2.0)
        found = self.events.poll()  # type: list[dict[str, Any]]
        return found

    def _open(self) -> "dict[str, Any]":
        nvml, problem = load_nvml()
        if nvml is None:
            return self._failed("no_driver", problem)
        from probe_gpus import GpuReader  # type: ignore[import-not-found]
        from probe_xids import EventSet  # type: ignore[import-not-found]

        reader = GpuReader(nvml, self.processes, self.host_total)
        problem = reader.open()
        self.reader = reader
        if problem is not None:
            if problem[0] == "no_gpu":
                reader.close()
            return dict(self._failed(*problem), facts=_known(reader.facts))
        gpus = reader.read(self.focus)
        self.events = EventSet(reader)
        self.error, self.opened, self.retries, self.readings = None, True, 0, 0
        return {
            "source": "nvml",
            "facts": dict(_known(reader.facts), source="nvml"),
            "gpu_error_code": None,
            "gpu_error": None,
            "cards": [card.index for card in reader.cards],
            "gpus": gpus,
            "gpus_mono": time.monotonic(),
        }

    def _reopen(self) -> "dict[str, Any]":
        """Every card answers "Unknown Error": see whether the library still opens, now and then."""
        now = time.monotonic()
        if now < self.retry_at:
            return {}
        self.retry_at = now + 10.0
        from probe_gpus import GpuReader

        fresh = GpuReader(self.reader.nvml, self.processes, self.host_total)
        self.reader.close()
        problem = fresh.open()
        if problem is None:
            self.reader.cards = fresh.cards
            return {"cards": [card.index for card in fresh.cards]}
        self.opened = False
        return self._failed(*problem)

    def _failed(self, code: str, words: str) -> "dict[str, Any]":
        delay = RETRY_S[min(self.retries, len(RETRY_S) - 1)]
        self.retries += 1
        self.retry_at = time.monotonic() + delay
        self.error = (code, words)
        return {"source": "proc", "gpu_error_code": code, "gpu_error": words, "cards": []}


def _known(facts: "dict[str, Any]") -> "dict[str, Any]":
    return {name: value for name, value in facts.items() if value is not None}


def load_nvml() -> "tuple[Any, str]":
    """(pynvml, ""), or (None, why not). The library is found where images hide it, too."""
    try:
        nvml = import_pynvml()
    except Exception as error:  # noqa: BLE001 - a Python without ctypes must not end the host's numbers
        return None, "this Python cannot load NVML: %s" % error
    if os.environ.get("COCKPIT_PYNVML"):
        return nvml, ""  # a stand-in for machines without a card brings its own driver
    import ctypes

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        found = _load_by_path(ctypes)
        if not found:
            return None, str(error)
    return nvml, ""


def _load_by_path(ctypes: "Any") -> bool:
    """Load the library by its place; opening it by name then finds the loaded one."""
    for place in LIBRARY_PLACES:
        path = place + "/libnvidia-ml.so.1"
        if os.path.exists(path):
            try:
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                return True
            except OSError:
                continue
    return False


def import_pynvml() -> "Any":
    """NVIDIA's binding, shipped beside this program; what it and ctypes hardly use is stood in for meanwhile."""
    placed = []
    if any("pynvml" in getattr(finder, "cockpit_codes", ()) for finder in sys.meta_path):
        for name, members in light_modules().items():
            if name not in sys.modules:
                placed.append(name)
                sys.modules[name] = type(sys)(name)
                sys.modules[name].__dict__.update(members)
    try:
        import pynvml
    except (AttributeError, ImportError):
        if not placed:
            raise
        for name in placed:
            del sys.modules[name]
        placed = []
        import pynvml
    finally:
        for name in placed:
            del sys.modules[name]
    return pynvml


def light_modules() -> "dict[str, dict[str, Any]]":
    """Modules of which one name each is used, or none: together they cost more to load than the binding."""
    orders = ("BigEndianStructure", "LittleEndianStructure", "BigEndianUnion", "LittleEndianUnion")
    light = {
        "string": {"capwords": _capwords},
        "functools": {"wraps": _wraps},
        "threading": {"Lock": _thread.allocate_lock},
    }  # type: dict[str, dict[str, Any]]
    if "ctypes" not in sys.modules:
        light["ctypes._endian"] = dict.fromkeys(orders)
        if sys.version_info >= (3, 9):
            light["types"] = {"GenericAlias": type(list[int])}
    return light


def _capwords(words: str, separator: str) -> str:
    return separator.join(word.capitalize() for word in words.split(separator))


def _wraps(wrapped: "Callable[..., Any]") -> "Callable[..., Any]":
    def decorate(wrapper: "Callable[..., Any]") -> "Callable[..., Any]":
        wrapper.__name__ = wrapped.__name__
        wrapper.__doc__ = wrapped.__doc__
        return wrapper

    return decorate
