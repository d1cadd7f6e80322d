"""The log detectors on any byte stream: findings with line, offset, facts, cause and remedies."""

from __future__ import annotations

from cockpit.domain.incidents import Finding


class Scanner:
    """Feed it the bytes of one log in order; it returns what they amount to as soon as that is sure."""

    def feed(self, data: bytes, offset: int | None = None) -> list[Finding]:
        """The next bytes; `offset` is where they start, when that is not where the last ones ended."""
        return []

    def finish(self) -> list[Finding]:
        """The log has ended: what was held back is decided now."""
        return []
