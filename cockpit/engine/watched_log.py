"""A follower's window as `RunLog`: the window itself is replaced when a mirror is read again."""

from __future__ import annotations

from cockpit.engine.api import LogLine
from cockpit.engine.follow import RunFollower


class WatchedLog:
    def __init__(self, follower: RunFollower) -> None:
        self._follower = follower

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
        """The follower goes on: detectors need it as long as the run lives."""
