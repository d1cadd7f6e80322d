"""Work on a run's whole log, a slice at a time between the agent's other work: searches, and counts of its lines."""

import fcntl
import os

from supervisor_blocks import SLICE_BYTES, slice_before, slice_behind  # type: ignore[import-not-found]
from supervisor_files import Folder, Refused  # type: ignore[import-not-found]
from supervisor_match import TooSlow, matcher_of  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

BUDGET_S = 2.0
"""Of one request: whoever asked goes on from where it ended, or has lost interest."""
LEAST_SLICE_BYTES = 4096
"""A regular expression that does not get through so much in its time never will."""
MOST_HERE = 4
"""At once, by one client."""
MOST_ON_HOST = 4
"""At once, by all clients: the others wait for their turn."""


class LogWork:
    """Goes through a log from a place on. `step` answers once it knows, or when its time is over."""

    def __init__(self, run: "Run", request: "Json") -> None:
        self.run = run.path
        self._run = run
        self._turn: "int | None" = None
        self._until = 0.0
        self._replaced = False
        offset = int(request["offset"])
        self._log = run.open("log", os.O_RDONLY)
        self._size = os.fstat(self._log).st_size
        self._at = min(max(0, offset), self._size)

    @property
    def eager(self) -> bool:
        """Whether the agent shall not wait between two steps of it."""
        return self._turn is not None

    def replace(self) -> None:
        """Something newer is asked of this log."""
        self._replaced = True

    def step(self, now: float) -> "Json | None":
        try:
            if self._replaced:
                raise Refused("search_replaced")
            answer = self._step(now)
        except BaseException:
            self.close()
            raise
        if answer is not None:
            answer.update(at=self._at, size=self._size)
            self.close()
        return answer

    def _step(self, now: float) -> "Json | None":
        if not self._until:
            self._until = now + BUDGET_S
        if self._turn is None:
            self._turn = take_turn(os.path.dirname(self.run))
            if self._turn is None:
                return {"waits": True} if now >= self._until else None
        answer = self._look()
        return {} if answer is None and now >= self._until else answer

    def _look(self) -> "Json | None":
        """One slice."""
        raise NotImplementedError

    def close(self) -> None:
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
            self._run.close()
        if self._turn is not None and self._turn >= 0:
            os.close(self._turn)
        self._turn = None


class Search(LogWork):
    """Looks for a text before or behind an offset."""

    def __init__(self, run: "Run", request: "Json") -> None:
        self._matcher = matcher_of(request)
        self._backward = request.get("backward") is True
        self._most = SLICE_BYTES
        LogWork.__init__(self, run, request)

    def _look(self) -> "Json | None":
        """With a margin on both sides, so that nothing is missed on the border of two slices."""
        if self._backward:
            start, end = slice_before(self._log, self._at)
            start = max(start, end - self._most)
        else:
            start, end = slice_behind(self._log, self._at, self._size)
            end = min(end, start + self._most)
        base = max(0, start - self._matcher.before)
        data = os.pread(self._log, end - base + self._matcher.behind, base)
        try:
            found = self._matcher.find(data, start - base, end - base, self._backward)
        except TooSlow:
            self._less(end - start)
            return None
        self._most *= 2
        self._at = start if self._backward else end
        if found is not None:
            return {"hit": base + found}
        is_through = start == 0 if self._backward else end >= self._size
        return {"through": True} if is_through else None

    def _less(self, tried: int) -> None:
        """Try a shorter slice."""
        if tried <= LEAST_SLICE_BYTES:
            raise Refused("pattern_too_slow", at=self._at)
        self._most = max(LEAST_SLICE_BYTES, tried // 8)


class Count(LogWork):
    """Looks for the line that begins behind so many newlines from an offset on."""

    def __init__(self, run: "Run", request: "Json") -> None:
        self._left = int(request["lines"])
        self._passed = 0
        if self._left < 0:
            raise Refused("bad_request", key="lines")
        LogWork.__init__(self, run, request)

    def _look(self) -> "Json | None":
        if not self._left:
            return self._answer(hit=self._at)
        start, end = slice_behind(self._log, self._at, self._size)
        self._passed += start - self._at
        data = os.pread(self._log, end - start, start)
        newlines = data.count(b"\n")
        if newlines < self._left:
            self._left -= newlines
            self._at = end
            return self._answer(through=True) if end >= self._size else None
        place = -1
        for _line in range(self._left):
            place = data.find(b"\n", place + 1)
        self._left, self._at = 0, start + place + 1
        return self._answer(hit=self._at)

    def _step(self, now: float) -> "Json | None":
        answer = LogWork._step(self, now)
        if answer is not None:
            answer = self._answer(**answer)
        return answer

    def _answer(self, **more: "Any") -> "Json":
        """With the lines that are left to count, and the bytes passed over that nobody can count lines in."""
        return dict(more, left=self._left, passed=self._passed)


def take_turn(folder: str) -> "int | None":
    """A lock among those of this host's clients; None when all are taken, -1 where there can be none."""
    try:
        with Folder(folder) as opened:
            for number in range(MOST_ON_HOST):
                fd = opened.open("search.%d" % number, os.O_RDWR | os.O_CREAT)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return int(fd)
                except BlockingIOError:
                    os.close(fd)
                except OSError:
                    os.close(fd)
                    return -1
    except (OSError, Refused):
        return -1
    return None


def begin(waiting: "dict[int, Any]", number: int, run: "Run", request: "Json") -> None:
    """One for each log: a new one takes the place of the one before."""
    try:
        others = [one for one in waiting.values() if isinstance(one, LogWork)]
        if len([one for one in others if one.run != run.path]) >= MOST_HERE:
            raise Refused("too_many_searches", limit=MOST_HERE)
        kind = Count if "lines" in request else Search
        waiting[number] = kind(run, request)
    except BaseException:
        run.close()
        raise
    for one in others:
        if one.run == run.path:
            one.replace()


def cancel(waiting: "dict[int, Any]", number: object) -> None:
    """Whoever asked has lost interest; nothing is answered."""
    work = waiting.get(number) if isinstance(number, int) else None
    if isinstance(number, int) and isinstance(work, LogWork):
        del waiting[number]
        work.close()
