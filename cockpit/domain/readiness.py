"""How one sees that a run is up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Readiness:
    """A run is ready when every one of these that is set holds."""

    port: int | None = None
    http: tuple[str, ...] = ()
    """Paths that must answer 200 on `port`, in this order."""
    log: str | None = None
    """A regular expression that a line of the log must match."""
    no_progress_s: float | None = None
    """Time without a new line or more memory after which the start counts as stuck."""
