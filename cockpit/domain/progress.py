"""How far a run is, read from what its tools print."""

from __future__ import annotations

from cockpit.domain.runs import Progress


class ProgressReader:
    """Feed it lines and bar states in order; it keeps what they said last."""

    def __init__(self) -> None:
        self.progress = Progress()

    def feed(self, text: str, at_s: float | None = None) -> bool:
        """Take one line (plain text); True when `progress` changed."""
        return False
