"""The ssh command that a rental platform shows, as a person pastes it: understood, never run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Forward:
    """A port of this computer's loopback that leads to a port as the host sees it (`-L`)."""

    listen_port: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A part that was read and is not honoured. `why` is a code such as host_key_check or agent_forwarding."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class PastedHost:
    """What a pasted line says. None where it says nothing."""

    host: str
    port: int | None = None
    user: str | None = None
    identity: str | None = None
    jump: str | None = None
    forwards: tuple[Forward, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def parse_pasted(text: str) -> PastedHost:
    """Read one pasted line. Raises UsageError with `why` and the offending `word`."""
    raise NotImplementedError
