"""What the driver says of cards before a run takes them: how much memory is free, and who computes there.

A driver may hang: it is called from a child that can be given up.
"""

import json
import os
import pwd
import re
import select
import signal
import subprocess
import time

from supervisor_environment import in_container  # type: ignore[import-not-found]
from supervisor_files import (  # type: ignore[import-not-found]
    MIB,
    parse_object,
    read_descriptor,
    read_file,
)
from supervisor_job import close_others  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    Json = dict[str, Any]

IDLE_PCT = 5
IDLE_SAMPLES, SAMPLE_GAP_S = 3, 0.2
"""A card is idle when so many looks in a row find nobody: its utilisation is an average of up to a second."""
SETTLES_WITHIN_S = 3.0
"""A process that has just ended is listed for a moment more. Who waits in a queue looks again later anyway."""
MAX_PROCESSES = 64
MAX_SLICES = 16


class CardStates:
    """By card: its free MiB, and who is on it. Empty where nobody can tell; locks alone decide then."""

    FRESH_S = 5.0
    """Asking wakes a driver: a queue of runs does so now and then."""

    def __init__(self, run: str, request: "Json") -> None:
        self._run = run
        self._shares = bool(request.get("share"))
        self._is_asked_for = not self._shares or bool(request.get("min_free_mib"))
        self._wanted = {card["uuid"] for card in request["cards"]}
        self._settles_s = 0.0 if request.get("wait_s") else SETTLES_WITHIN_S
        self._known: "Json" = {}
        self._asked_at = -self.FRESH_S

    def by_card(self) -> "Json":
        """{uuid: {"free_mib": …, "busy": …}}, either of them perhaps missing."""
        if self._is_asked_for and time.monotonic() - self._asked_at >= self.FRESH_S:
            self._known = in_child(self._seen_by_nvml, 10.0) or in_child(seen_by_smi, 20.0)
            self._asked_at = time.monotonic()
        return self._known

    def _seen_by_nvml(self) -> "Json":
        import pynvml  # shipped beside us

        pynvml.nvmlInit()
        cards = {uuid: card for uuid, card in cards_of(pynvml) if uuid in self._wanted}
        states: "Json" = {uuid: {} for uuid in cards}
        if not self._shares:

            def ask(uuid: str) -> str:
                return who_is_on(pynvml, cards[uuid], self._run)

            for uuid, who in who_is_busy(ask, cards, self._settles_s).items():
                states[uuid]["busy"] = who
        for uuid, card in cards.items():
            free = free_mib(pynvml, card)
            if free is not None:
                states[uuid]["free_mib"] = free
        return states


def in_the_way(state: "Json", needed_mib: "int | None") -> str:
    """Why a card will not do, by what the driver says of it; empty when nothing speaks against it."""
    free = state.get("free_mib")
    if free is not None and free < (needed_mib or 0):
        return "%d MiB free" % free
    return str(state.get("busy", ""))


def who_is_busy(
    ask: "Callable[[str], str]", cards: "Iterable[str]", settles_s: float
) -> "dict[str, str]":
    """Those cards that are not idle, with who is on them."""
    open_cards, busy = list(cards), {}  # type: list[str], dict[str, str]
    calm = dict.fromkeys(open_cards, 0)
    until = time.monotonic() + settles_s
    while True:
        is_late, undecided = time.monotonic() >= until, []
        for card in open_cards:
            who = ask(card)
            calm[card] = 0 if who else calm[card] + 1
            if who:
                busy[card] = who
            elif calm[card] == IDLE_SAMPLES:
                busy.pop(card, None)
            if calm[card] < IDLE_SAMPLES and not (who and is_late):
                undecided.append(card)
        if not undecided:
            return busy
        open_cards = undecided
        time.sleep(SAMPLE_GAP_S)


def cards_of(nvml: "Any") -> "list[tuple[str, Any]]":
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            card = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = nvml.nvmlDeviceGetUUID(card)
        except nvml.NVMLError:
            continue  # one that fell off; the others are there
        found.append((uuid.decode() if isinstance(uuid, bytes) else uuid, card))
        found.extend(slices_of(nvml, card))
    return found


def slices_of(nvml: "Any", card: "Any") -> "list[tuple[str, Any]]":
    """Of a card that is split (MIG); nothing for any other, and where the driver knows of none."""
    found = []
    try:
        if nvml.nvmlDeviceGetMigMode(card)[0] != 1:
            return []
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(card)
    except nvml.NVMLError:
        return []
    for place in range(min(most, MAX_SLICES)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, place)
            uuid = nvml.nvmlDeviceGetUUID(part)
        except nvml.NVMLError:
            continue
        found.append((uuid.decode() if isinstance(uuid, bytes) else uuid, part))
    return found


def who_is_on(nvml: "Any", card: "Any", run: str) -> str:
    """ "pid 123 bob python3", "87 % busy"; empty when nobody is, or this run alone."""
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(card)[:MAX_PROCESSES]
    except nvml.NVMLError:
        processes = []
    others = [process.pid for process in processes if not belongs_to(process.pid, run)]
    if others:
        return describe(others[0])
    try:
        pct = int(nvml.nvmlDeviceGetUtilizationRates(card).gpu)
    except nvml.NVMLError:
        return ""
    return "%d %% busy" % pct if pct > IDLE_PCT and not processes else ""


def belongs_to(pid: int, run: str) -> bool:
    mark = b"COCKPIT_RUN=" + run.encode()
    return mark in read_file("/proc/%d/environ" % pid, MIB).split(b"\0")


def describe(pid: int) -> str:
    """In a container the driver counts processes as the machine does: such a pid is another's here."""
    if in_container():
        return "pid %d of its machine" % pid
    words = ["pid %d" % pid]
    try:
        uid = os.stat("/proc/%d" % pid).st_uid
    except OSError:
        return words[0]
    try:
        words.append(pwd.getpwuid(uid).pw_name)
    except KeyError:
        words.append("uid %d" % uid)
    words.append(read_file("/proc/%d/comm" % pid, 64).decode("ascii", "replace").strip())
    return re.sub(r"[^ -~]+", "?", " ".join(words))[:80]


def free_mib(nvml: "Any", card: "Any") -> "int | None":
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(card).free // MIB)
    except nvml.NVMLError:
        return None  # memory that it shares with the host, or a card that fell off


def free_by_nvml() -> "dict[str, int]":
    import pynvml  # shipped beside us

    pynvml.nvmlInit()
    free = {uuid: free_mib(pynvml, card) for uuid, card in cards_of(pynvml)}
    return {uuid: mib for uuid, mib in free.items() if mib is not None}


def seen_by_smi() -> "Json":
    return {uuid: {"free_mib": mib} for uuid, mib in free_by_smi().items()}


def free_by_smi() -> "dict[str, int]":
    asked = ["nvidia-smi", "--query-gpu=uuid,memory.free", "--format=csv,noheader,nounits"]
    text = subprocess.check_output(asked, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = re.findall(r"^(\S+), *(\d+) *$", text.decode("ascii", "replace"), re.MULTILINE)
    return {uuid: int(free) for uuid, free in found}


def in_child(work: "Callable[[], Any]", limit_s: float) -> "Json":
    """Call into a driver that may hang from a process that we can give up."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            close_others(start)  # no lock of ours may outlive us in a hung driver
            os.write(start, json.dumps(work()).encode())
        except BaseException:  # noqa: BLE001 - a child that fails has no answer, and that is all
            pass
        os._exit(0)
    os.close(start)
    try:
        answered = select.select([end], [], [], limit_s)[0]
        return parse_object(read_descriptor(end, 65536)) if answered else {}
    finally:
        os.close(end)
        os.kill(child, signal.SIGKILL)
        wait_briefly(child)


def wait_briefly(child: int) -> None:
    """Reap a killed child; one that hangs in the driver is left to the reaper."""
    for _try in range(100):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
