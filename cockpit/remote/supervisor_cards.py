"""Cards: who holds which one, and who waits for it."""

import fcntl
import json
import os
import time

from supervisor_driver import in_the_way  # type: ignore[import-not-found]
from supervisor_files import Folder, lock_within, try_lock  # type: ignore[import-not-found]
from supervisor_host import shared_memory_folder  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class CardLocks:
    """Who holds which card: a lock file for each, held for a run's life, and a queue of tickets.
    The kernel lets go of them when the last process of the run is gone."""

    def __init__(self, folder: "Folder") -> None:
        self._folder = folder
        self._queue = Folder(os.path.join(folder.path, "queue"), create=True)
        self._held: "dict[str, int]" = {}
        self._ticket = ("", -1)
        self.position = 1
        """Whose turn it is, at the last try: 1 is the next."""

    def take(self, run: str, request: "Json", states: "Json") -> "tuple[list[Json], str]":
        """(cards, "") when `count` of them could be locked, else ([], who or what is in the way).
        `states` is what the driver says of them."""
        mutex = self._folder.open("gpu-all.lock", os.O_RDWR | os.O_CREAT)
        try:
            if not lock_within(mutex, 10.0):
                return [], "gpu-all.lock"
            ahead = self._ahead(request)
            self.position = len(ahead) + 1
            if ahead:
                self._queue_up(run, request)
                return [], self._told(["queue: %s" % ahead[0]] + self._holders(request))
            cards, obstacles = self._lock_some(run, request, states)
            if not cards:
                self._queue_up(run, request)
            else:
                self._leave_queue()
            return cards, "" if cards else self._told(obstacles)
        finally:
            os.close(mutex)

    def _lock_some(
        self, run: str, request: "Json", states: "Json"
    ) -> "tuple[list[Json], list[str]]":
        taken: "list[Json]" = []
        obstacles: "list[str]" = []
        for card in request["cards"]:
            if len(taken) == request["count"]:
                break
            uuid = card["uuid"]
            if not self._lock(run, uuid, request.get("share")):
                obstacles.append("GPU %d: %s" % (card["index"], self._holder(uuid)))
                continue
            why = in_the_way(states.get(uuid, {}), request.get("min_free_mib"))
            if why:
                self._unlock(uuid)
                obstacles.append("GPU %d: %s" % (card["index"], why))
            else:
                taken.append(card)
        if len(taken) == request["count"]:
            return taken, []
        self.release()
        return [], obstacles

    def _holders(self, request: "Json") -> "list[str]":
        names = ((card, lock_name(card["uuid"])) for card in request["cards"])
        held = [(card, name) for card, name in names if self._folder.is_held(name)]
        return ["GPU %d: %s" % (card["index"], self._holder(card["uuid"])) for card, _name in held]

    @staticmethod
    def _told(obstacles: "list[str]") -> str:
        return ", ".join(obstacles)[:500] or "too few cards"

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
        for card in list(self._held):
            self._unlock(card)

    def _unlock(self, card: str) -> None:
        """For every process that has inherited the descriptor."""
        fd = self._held.pop(card)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

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

    def _ahead(self, request: "Json") -> "list[str]":
        """The runs before us in the queue that want a card that we want. A dead one's ticket is nobody's."""
        wanted, ahead = {card["uuid"] for card in request["cards"]}, []
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
                ahead.append(name.partition("-")[2])
        return ahead


def lock_name(card: str) -> str:
    return "gpu-%s.lock" % card.replace("/", "_")


def card_folder(run: "Run") -> "Folder":
    """Where every run of this user locks its cards: /dev/shm, else beside the runs."""
    folder = shared_memory_folder()
    if folder is not None:
        return folder
    return Folder(os.path.join(os.path.dirname(run.path), "cards"), create=True)
