"""The probe: a host's GPUs and the host itself, one JSON line a tick on stdout.

Runs on hosts: Python >= 3.6, stdlib and NVIDIA's own pynvml only. It says hello with what does not
change, then one sample a tick with what was read or changed; `cockpit.domain.wire` reads it.
Lines on stdin steer it: `interval S`, `focus 0|1`, `now`, `quit`; the end of stdin ends it.
"""

import gc
import os
import select
import sys
import time

from probe_disks import DiskWatch, wait_first  # type: ignore[import-not-found]
from probe_driver import Driver  # type: ignore[import-not-found]
from probe_facts import facts  # type: ignore[import-not-found]
from probe_host import HostReader  # type: ignore[import-not-found]
from probe_pressure import PressureReader  # type: ignore[import-not-found]
from probe_processes import ProcessReader, Users, read  # type: ignore[import-not-found]
from probe_trees import TreeReader  # type: ignore[import-not-found]
from probe_xids import KernelLog, XidBook, bus_key  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

VERSION = 1
FIRST_WAIT_S, FIRST_DISKS_S, SECOND_AFTER_S = 1.5, 0.03, 0.25
CONTROL_MAX = 4096


def make_encoder() -> "Callable[[Any], str]":
    """JSON by the C encoder alone: importing `json` costs more than a tick."""
    try:
        from _json import encode_basestring_ascii
        from _json import make_encoder as c_encoder

        encode = c_encoder(
            None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False
        )
        return lambda record: "".join(encode(record, 0))
    except (ImportError, TypeError):
        import json

        return lambda record: json.dumps(record, separators=(",", ":"), allow_nan=False)


def _refuse(value: "Any") -> None:
    raise TypeError(type(value).__name__)


class Probe:
    """One probe: the readers, the schedule, the line."""

    def __init__(self, interval_s: float, stuck_folder: "str | None" = None) -> None:
        self.interval_s = interval_s
        self.focus = False
        self.encode = make_encoder()
        self.seq = 0
        self.control = b""
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)
        self.poll.register(1, 0)
        self.users = Users()
        self.host = HostReader()
        self.pressure = PressureReader()
        self.trees = TreeReader()
        self.markers = StuckMarkers(stuck_folder)
        total = self.host.memory()["mem_total_mib"]
        processes = ProcessReader(self.users)
        self.driver = Driver(processes, total << 20 if total else None, self.markers.other())
        self.driver.ask(False)
        self.disks = DiskWatch()
        self.disks.poll(time.monotonic())
        self.kernel = KernelLog()
        self.xids = XidBook()
        self.buses = {}  # type: dict[str, int]
        self.kernel_due = 0.0

    def write(self, record: "dict[str, Any]") -> None:
        data = (self.encode(record) + "\n").encode("ascii")
        while data:
            data = data[os.write(1, data) :]

    def hello(self) -> None:
        known = facts(self.users)
        self.host.cgroup.alone = known["container"] is not True
        self.write({"k": "hello", "v": VERSION, "interval": self.interval_s, "facts": known})

    def sample(self, wait_s: float) -> None:
        """One line: what is new of the cards, everything of the host."""
        news = dict(self.driver.collect(wait_s))
        record = {"k": "sample", "seq": self.seq, "at": round(time.time(), 3)}  # type: dict[str, Any]
        record["mono"] = round(time.monotonic(), 3)
        record["interval"] = self.interval_s
        host = self.host.read(self.focus)
        if host:
            host.update(self.pressure.read(time.monotonic()))
            record["host"] = host
        self.trees.take(news)
        trees = self.trees.poll(time.monotonic())
        if trees is not None:
            record["trees"] = trees
        disks = self.disks.poll(time.monotonic(), self.focus)
        if disks is not None:
            record["disks"] = disks
        events = self._events(news)
        record.update(news)
        if events:
            record["xids"] = events
        if "gpus_mono" in record:
            record["gpus_mono"] = min(round(record["gpus_mono"], 3), record["mono"])
        self.markers.mark(self.driver.told_hung)
        if self.driver.stuck:
            self.driver.stuck = self.markers.other()
        self.seq += 1
        self.write(record)

    def _events(self, news: "dict[str, Any]") -> "list[dict[str, Any]]":
        for card in news.get("gpus", ()):
            if card.get("bus_id"):
                self.buses[bus_key(card["bus_id"])] = card["index"]
        events, now = news.pop("xids", None) or [], time.monotonic()
        if now >= self.kernel_due - 0.05:
            self.kernel_due = now + (1.0 if self.focus else 2.0)
            events = events + self.kernel.poll()
        return self.xids.fresh(events, self.buses) if events else []

    def run(self, count: "int | None") -> None:
        """Sample on an absolute schedule until stdin or stdout ends, or `count` samples are told."""
        self.hello()
        if not self.disks.ready:
            wait_first(self.disks, FIRST_DISKS_S)
        self.sample(FIRST_WAIT_S)
        gc.enable()
        due = time.monotonic() + min(self.interval_s, SECOND_AFTER_S)
        while count is None or self.seq < count:
            woken = self.sleep_until(due)
            if woken is None:
                return
            self.driver.ask(self.focus)
            self.sample(min(0.4 * self.interval_s, 0.5))
            now = time.monotonic()
            due = woken + self.interval_s
            if due <= now:
                due = now + 0.5 * self.interval_s

    def sleep_until(self, planned: float) -> "float | None":
        """Wait and obey; the time of the next sample, or None to end."""
        due = planned  # type: float | None
        while due is not None:
            left = due - time.monotonic()
            if left <= 0:
                break
            for fd, _ in self.poll.poll(max(1, int(left * 1000.0 + 0.5))):
                data = os.read(0, CONTROL_MAX) if fd == 0 else b""
                due = self.obey(data, due) if data and due is not None else None
        return due

    def obey(self, data: bytes, due: float) -> "float | None":
        """Take complete lines from stdin; the time of the next sample, or None to end."""
        self.control = (self.control + data)[-CONTROL_MAX:]
        while b"\n" in self.control:
            line, self.control = self.control.split(b"\n", 1)
            words = line.split()
            if words[:1] == [b"quit"]:
                return None
            if words[:1] == [b"now"]:
                due = time.monotonic()
            elif words[:1] == [b"focus"]:
                self.focus = words[1:2] == [b"1"]
            elif words[:1] == [b"interval"] and len(words) == 2:
                wanted = _interval(words[1])
                if wanted is not None:
                    self.interval_s = wanted
                    due = min(due, time.monotonic() + wanted)
        return due


class StuckMarkers:
    """A file for each probe that hangs in the driver, so that no second one joins it there."""

    def __init__(self, folder: "str | None") -> None:
        self.folder = folder
        self.path = None if folder is None else "%s/stuck-%d" % (folder, os.getpid())
        self.marked = False

    def mark(self, hung: bool) -> None:
        if self.path is None or hung == self.marked:
            return
        self.marked = hung
        try:
            if hung:
                fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                os.write(fd, b"%d" % (started(os.getpid()) or 0))
                os.close(fd)
            else:
                os.unlink(self.path)
        except OSError:
            pass

    def other(self) -> "int | None":
        """The pid of an earlier probe that still hangs in the driver, or None."""
        if self.folder is None:
            return None
        try:
            names = [name for name in os.listdir(self.folder) if name.startswith("stuck-")]
        except OSError:
            return None
        for name in names[:64]:
            pid = name[len("stuck-") :]
            if pid.isdigit() and int(pid) != os.getpid():
                noted = read("%s/%s" % (self.folder, name), 32)
                if noted and noted == b"%d" % (started(int(pid)) or 0):
                    return int(pid)
            try:
                os.unlink("%s/%s" % (self.folder, name))
            except OSError:
                pass
        return None


def started(pid: int) -> "int | None":
    """Start of a process in clock ticks since boot; None when it is gone."""
    stat = read("/proc/%d/stat" % pid, 4096)
    fields = stat[stat.rfind(b")") + 1 :].split() if stat else []
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else None


def _interval(word: "str | bytes") -> "float | None":
    try:
        seconds = float(word)
    except ValueError:
        return None
    return min(60.0, max(0.2, seconds)) if seconds == seconds else None


def main(argv: "list[str]") -> None:
    """`--interval S`, `--once`, `--count N`; an interval of 0 is for measuring."""
    gc.disable()  # a start makes much and no garbage: looking for it costs a millisecond or two
    options = {word: argv[place + 1] for place, word in enumerate(argv[:-1])}
    count = 1 if "--once" in argv else int(options["--count"]) if "--count" in argv else None
    wanted = options.get("--interval", "1")
    interval_s = 0.0 if wanted == "0" else _interval(wanted) or 1.0
    try:
        with open("/proc/self/comm", "w") as name:
            name.write("cockpit-probe")
    except OSError:
        pass
    probe = None
    try:
        folders = [getattr(finder, "cockpit_folder", None) for finder in sys.meta_path]
        probe = Probe(interval_s, next((folder for folder in folders if folder), None))
        probe.run(count)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    except Exception as error:  # noqa: BLE001 - the edge of the program: say why before it ends
        words = "%s: %s" % (type(error).__name__, error)
        os.write(
            1,
            b'{"k":"fault","code":"crashed","text":'
            + make_encoder()(words[:400]).encode("ascii")
            + b"}\n",
        )
    sys.stdout = None
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
