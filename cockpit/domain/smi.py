"""Lines of a host without Python: nvidia-smi's CSV rows and pieces of /proc, made into wire records.

The shell's lines begin with a letter: H hello, U uptime, S M L N pieces of /proc, T end of a tick,
G a row of nvidia-smi, X its exit code, A a process, D a line of df. Nothing here knows a clock:
the host's uptime is the time.
"""

from __future__ import annotations

from typing import Final

from cockpit.domain.smi_cards import Cards, Record
from cockpit.domain.smi_rows import failure_of, parse_process, parse_row
from cockpit.domain.text import safe_line

_STARTING_S: Final = 1.5
"""How long the first sample waits for nvidia-smi's first rows."""
_HUNG_S: Final = 5.0
_VIRTUAL_NETS: Final = ("lo", "veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "ifb")
_DISKS_MAX: Final = 64
_APPS_MAX: Final = 512


class PlainLines:
    """Collects one host's plain lines until they make a record."""

    def __init__(self) -> None:
        self._facts: Record = {}
        self._hello: dict[str, str] = {}
        self._has_smi = False
        self._host: Record = {}
        self._memory: dict[str, int] = {}
        self._cpu: list[int] | None = None
        self._net_now = [0, 0]
        self._net: tuple[float, int, int] | None = None
        self._disks: list[Record] = []
        self._new_disks: list[Record] | None = None
        self._apps: list[tuple[str, Record]] = []
        self._processes: dict[str, list[Record]] | None = None
        self._cards = Cards()
        self._exit: tuple[str, str] | None = None
        self._up_s = self._epoch_s = 0.0
        self._began_s: float | None = None
        self._rows_s: float | None = None
        self._told_since_tick = False
        self._seq = 0

    def feed(self, line: bytes) -> Record | None:
        """One line; a record when it completes one."""
        kind, _, raw = line.partition(b" ")
        rest = raw[:4096].decode("utf-8", "replace")
        match kind:
            case b"H":
                return self._take_hello(rest)
            case b"G":
                return self._take_row(rest)
            case b"T":
                return self._take_tick()
            case b"X":
                self._take_exit(rest)
            case b"A":
                self._take_app(rest)
            case b"D":
                self._take_disk(rest)
            case b"U" | b"S" | b"L" | b"M" | b"N":
                self._take_proc(kind, rest)
        return None

    def _take_hello(self, rest: str) -> Record | None:
        word, _, value = rest.partition(" ")
        if word == "begin":
            self._has_smi = value.strip() == "nvidia-smi"
        elif word != "end":
            self._hello[word] = value[:512]
            return None
        else:
            said = self._hello
            began = _real(said.get("uptime", "").partition(" ")[0])
            self._epoch_s = (_real(said.get("now", "")) or 0.0) - (began or 0.0)
            started = said.get("first", "").rpartition(")")[2].split()
            self._facts = {
                "hostname": said.get("hostname", ""),
                "user": said.get("user", ""),
                "uid": _whole(said.get("uid", "")),
                "kernel": said.get("kernel", ""),
                "os_name": said.get("os", "").strip("\"'"),
                "container": True if "container" in said else None,
                "incarnation": f"{said.get('boot_id', '')}:{started[19] if len(started) > 19 else ''}",
                "source": "nvidia-smi" if self._has_smi else "proc",
            }
            interval = _real(said.get("interval", "")) or 1.0
            return {"k": "hello", "v": 1, "interval": interval, "facts": self._facts}
        return None

    def _take_proc(self, kind: bytes, rest: str) -> None:
        words = rest.split()
        if not words:
            return
        if kind == b"U":
            self._up_s = _real(words[0]) or self._up_s
            self._began_s = self._up_s if self._began_s is None else self._began_s
            self._net_now = [0, 0]
        elif kind == b"S":
            self._take_cpu(words)
        elif kind == b"L":
            self._host["load1"] = _real(words[0])
        elif kind == b"M" and len(words) > 1 and words[1].isdigit():
            self._memory[words[0].rstrip(":")] = int(words[1][:18])
        elif kind == b"N":
            name, _, counters = rest.partition(":")
            parts = counters.split()
            if len(parts) > 8 and not name.strip().startswith(_VIRTUAL_NETS):
                self._net_now[0] += _whole(parts[0]) or 0
                self._net_now[1] += _whole(parts[8]) or 0

    def _take_cpu(self, words: list[str]) -> None:
        ticks = [int(word) for word in words[1:9] if word.isdigit() and len(word) < 19]
        before, self._cpu = self._cpu, ticks
        self._host["cpu_pct"] = self._host["steal_pct"] = None
        if before is None or len(before) != len(ticks) or len(ticks) < 5:
            return
        spent = [max(0, new - old) for new, old in zip(ticks, before, strict=True)]
        total = sum(spent)
        if total:
            self._host["cpu_pct"] = round(100 * (total - spent[3] - spent[4]) / total, 1)
            self._host["steal_pct"] = round(100 * spent[7] / total, 1) if len(spent) > 7 else None

    def _take_row(self, rest: str) -> Record | None:
        row = parse_row(rest)
        complete = self._cards.take(row) if row else self._cards.note(safe_line(rest, 400))
        if row is not None:
            self._exit = None
        if not complete:
            return None
        self._rows_s = self._up_s
        if self._began_s is None:
            return None
        self._told_since_tick = True
        return self._record()

    def _take_exit(self, rest: str) -> None:
        code = _whole(rest.strip())
        self._exit = failure_of(code, self._cards.end())

    def _take_app(self, rest: str) -> None:
        if rest.strip() != "end":
            app = parse_process(rest)
            if app is not None and len(self._apps) < _APPS_MAX:
                self._apps.append(app)
            return
        self._processes = {}
        for uuid, process in self._apps:
            self._processes.setdefault(uuid, []).append(process)
        self._apps = []

    def _take_disk(self, rest: str) -> None:
        if rest.strip() == "end":
            self._new_disks, self._disks = self._disks, []
            return
        words = rest.split(None, 5)
        if len(words) == 6 and words[1].isdigit() and words[3].isdigit():
            total, free = int(words[1][:18]) >> 10, int(words[3][:18]) >> 10
            disk: Record = {"mount": words[5], "total_mib": total, "free_mib": free}
            if len(self._disks) < _DISKS_MAX and disk not in self._disks:
                self._disks.append(disk)

    def _take_tick(self) -> Record | None:
        self._take_rates()
        told, self._told_since_tick = self._told_since_tick, False
        if told:
            return None
        waited_s = self._up_s - (self._began_s or 0.0)
        if self._has_smi and self._rows_s is None and not self._exit and waited_s < _STARTING_S:
            return None
        if self._cards.tick():
            self._rows_s = self._up_s
        return self._record()

    def _take_rates(self) -> None:
        memory, host = self._memory, self._host
        free = memory.get("MemAvailable", memory.get("MemFree"))
        for name, total, left in (
            ("mem", memory.get("MemTotal"), free),
            ("swap", memory.get("SwapTotal"), memory.get("SwapFree")),
        ):
            known = total is not None and left is not None
            host[f"{name}_total_mib"] = total >> 10 if total is not None else None
            host[f"{name}_used_mib"] = max(0, total - left) >> 10 if known else None  # type: ignore[operator]
        before, now = self._net, (self._up_s, self._net_now[0], self._net_now[1])
        self._net = now
        if before is not None and now[0] > before[0]:
            unit = (now[0] - before[0]) * 1048576
            host["net_rx_mib_s"] = round(max(0, now[1] - before[1]) / unit, 3)
            host["net_tx_mib_s"] = round(max(0, now[2] - before[2]) / unit, 3)
        host["uptime_s"] = self._up_s

    def _record(self) -> Record:
        record: Record = {
            "k": "sample",
            "seq": self._seq,
            "at": self._epoch_s + self._up_s,
            "mono": self._up_s,
            "host": dict(self._host),
        }
        self._seq += 1
        if self._new_disks is not None:
            record["disks"], self._new_disks = self._new_disks, None
        code, words = self._gpu_error() or (None, None)
        record["gpu_error_code"], record["gpu_error"] = code, words
        hung = code == "driver_hung"
        record["source"] = "proc" if code and not hung else "nvidia-smi"
        processes, self._processes = self._processes, None
        record.update(self._cards.told(processes, hung, self._memory.get("MemTotal")))
        if self._cards.driver and self._facts.get("driver") != self._cards.driver:
            self._facts["driver"] = self._cards.driver
            record["facts"] = {"driver": self._cards.driver}
        return record

    def _gpu_error(self) -> tuple[str, str] | None:
        if not self._has_smi:
            return ("no_driver", "nvidia-smi: not found")
        if self._exit is not None:
            return self._exit
        silent_s = self._up_s - (self._rows_s if self._rows_s is not None else self._began_s or 0.0)
        if silent_s < _HUNG_S:
            starting = ("driver_starting", f"nvidia-smi not answering yet, {silent_s:.0f} s")
            return starting if self._rows_s is None else None
        return ("driver_hung", f"nvidia-smi not answering for {silent_s:.0f} s")


def _real(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if 0 <= value < 1e11 else None


def _whole(word: str) -> int | None:
    return int(word) if word.isdigit() and len(word) < 19 else None
