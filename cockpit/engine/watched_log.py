"""A follower's window as `RunLog`: the window itself is replaced when a mirror is read again."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.engine.api import LogLine
from cockpit.engine.follow import RunFollower


class WatchedLog:
    """Keeps its follower until it is closed; the lines stay readable after that."""

    def __init__(self, follower: RunFollower, leave: Callable[[], None]) -> None:
        self._follower = follower
        self._leave: Callable[[], None] | None = leave

    @property
    def version(self) -> int:
        return self._follower.window.version

    @property
    def first_number(self) -> int:
        return self._follower.window.first_number

    @property
    def total_lines(self) -> int:
        return self._follower.window.total_lines

    @property
    def total_bytes(self) -> int:
        return self._follower.window.total_bytes

    @property
    def open_text(self) -> str:
        return self._follower.window.open_text

    @property
    def ended(self) -> bool:
        return self._follower.window.ended

    def __len__(self) -> int:
        return len(self._follower.window)

    def line(self, position: int) -> LogLine:
        return self._follower.window.line(position)

    def close(self) -> None:
        """Nobody looks any more; while the run lives its detectors still do."""
        if self._leave is not None:
            self._leave()
            self._leave = None
