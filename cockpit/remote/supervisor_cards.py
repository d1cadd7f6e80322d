"""Cards: who holds which one, who waits for it, and how much of its memory is free."""

import fcntl
import json
import os
import re
import select
import signal
import subprocess
import time

from supervisor_files import (  # type: ignore[import-not-found]
    MIB,
    Folder,
    lock_within,
    parse_object,
    read_descriptor,
    try_lock,
)
from supervisor_host import shared_memory_folder  # type: ignore[import-not-found]
from supervisor_job import close_others  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Json = dict[str, Any]


class CardLocks:
    """Who holds which card: a lock file for each, held for a run's life, and a queue of tickets.
    The kernel lets go of them when the last process of the run is gone."""

    def __init__(self, folder: "Folder") -> None:
        self._folder = folder
        self._queue = Folder(os.path.join(folder.path, "queue"), create=True)
        self._held: "dict[str, int]" = {}
        self._ticket = ("", -1)

    def take(
        self, run: str, request: "Json", free_mib: "dict[str, int]"
    ) -> "tuple[list[Json], str]":
        """(cards, "") when `count` of them could be locked, else ([], who or what is in the way)."""
        mutex = self._folder.open("gpu-all.lock", os.O_RDWR | os.O_CREAT)
        try:
            if not lock_within(mutex, 10.0):
                return [], "gpu-all.lock"
            ahead = self._ahead(request)
            if ahead:
                self._queue_up(run, request)
                return [], ahead
            cards, in_the_way = self._lock_some(run, request, free_mib)
            if not cards:
                self._queue_up(run, request)
            else:
                self._leave_queue()
            return cards, in_the_way
        finally:
            os.close(mutex)

    def _lock_some(
        self, run: str, request: "Json", free_mib: "dict[str, int]"
    ) -> "tuple[list[Json], str]":
        taken: "list[Json]" = []
        in_the_way: "list[str]" = []
        for card in request["cards"]:
            if len(taken) == request["count"]:
                break
            free = free_mib.get(card["uuid"])
            if free is not None and free < (request.get("min_free_mib") or 0):
                in_the_way.append("GPU %d: %d MiB free" % (card["index"], free))
            elif self._lock(run, card["uuid"], request.get("share")):
                taken.append(card)
            else:
                in_the_way.append("GPU %d: %s" % (card["index"], self._holder(card["uuid"])))
        if len(taken) == request["count"]:
            return taken, ""
        self.release()
        return [], ", ".join(in_the_way)[:500] or "too few cards"

    def _lock(self, run: str, card: str, share: "Any") -> bool:
        fd = self._folder.open(lock_name(card), os.O_RDWR | os.O_CREAT)
        if not try_lock(fd, fcntl.LOCK_SH if share else fcntl.LOCK_EX):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, run.encode(), 0)
        os.set_inheritable(fd, True)  # the job keeps the card if the supervisor dies
        self._held[card] = fd
        return True

    def _holder(self, card: str) -> str:
        return self._folder.read(lock_name(card), 64).decode("ascii", "replace") or "another run"

    def keep(self, run: str, share: "Any") -> None:
        """Lock again what was deleted under us: some systems clear /dev/shm at a logout."""
        for card, fd in list(self._held.items()):
            if os.fstat(fd).st_nlink == 0 and self._lock(run, card, share):
                os.close(fd)

    def release(self) -> None:
        """Unlock for every process that has inherited the descriptors."""
        for fd in self._held.values():
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
        self._held.clear()

    def _queue_up(self, run: str, request: "Json") -> None:
        if self._ticket[0] or not request.get("wait_s"):
            return
        name = "%020d-%s" % (int(time.monotonic() * 1e9), run)
        fd = self._queue.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try_lock(fd)
        os.pwrite(fd, json.dumps([card["uuid"] for card in request["cards"]]).encode(), 0)
        self._ticket = (name, fd)

    def _leave_queue(self) -> None:
        name, fd = self._ticket
        if name:
            self._ticket = ("", -1)
            os.unlink(name, dir_fd=self._queue.fd)
            os.close(fd)

    def _ahead(self, request: "Json") -> str:
        """The first run before us in the queue that wants a card that we want."""
        wanted = {card["uuid"] for card in request["cards"]}
        for name in sorted(os.listdir(self._queue.path)):
            if name == self._ticket[0]:
                break
            if not self._queue.is_held(name):
                os.unlink(name, dir_fd=self._queue.fd)
                continue
            try:
                theirs = json.loads(self._queue.read(name).decode())
            except ValueError:
                continue
            if wanted.intersection(theirs):
                return "queue: %s" % name.partition("-")[2]
        return ""


def lock_name(card: str) -> str:
    return "gpu-%s.lock" % card.replace("/", "_")


class FreeMemory:
    """Free MiB by card, from NVML, else nvidia-smi; empty where it is not asked for or not known."""

    FRESH_S = 5.0
    """Asking wakes a driver: a queue of runs does so now and then."""

    def __init__(self, needed_mib: "int | None") -> None:
        self._needed = needed_mib
        self._known: "dict[str, int]" = {}
        self._asked_at = -self.FRESH_S

    def by_card(self) -> "dict[str, int]":
        if self._needed and time.monotonic() - self._asked_at >= self.FRESH_S:
            self._known = in_child(free_by_nvml, 10.0) or in_child(free_by_smi, 20.0)
            self._asked_at = time.monotonic()
        return self._known


def free_by_nvml() -> "dict[str, int]":
    import pynvml  # shipped beside us

    pynvml.nvmlInit()
    free = {}
    for index in range(pynvml.nvmlDeviceGetCount()):
        card = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = pynvml.nvmlDeviceGetUUID(card)
        uuid = uuid.decode() if isinstance(uuid, bytes) else uuid
        free[uuid] = pynvml.nvmlDeviceGetMemoryInfo(card).free // MIB
    return free


def free_by_smi() -> "dict[str, int]":
    asked = ["nvidia-smi", "--query-gpu=uuid,memory.free", "--format=csv,noheader,nounits"]
    text = subprocess.check_output(asked, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = re.findall(r"^(\S+), *(\d+) *$", text.decode("ascii", "replace"), re.MULTILINE)
    return {uuid: int(free) for uuid, free in found}


def in_child(work: "Callable[[], dict[str, int]]", limit_s: float) -> "dict[str, int]":
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


def card_folder(run: "Run") -> "Folder":
    """Where every run of this user locks its cards: /dev/shm, else beside the runs."""
    folder = shared_memory_folder()
    if folder is not None:
        return folder
    return Folder(os.path.join(os.path.dirname(run.path), "cards"), create=True)
