"""Start a program of `cockpit.remote` on a host that has nothing of ours, over one channel.

The program travels as text, is kept on the host by content hash, compiled, and checked before each
use; a host that keeps nothing (read-only, full) is sent it each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.transport.base import ByteChannel, HostTransport

ProgramName: TypeAlias = Literal["probe", "supervisor"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program and the modules that it imports, by name, as source text."""

    name: ProgramName
    sources: tuple[tuple[str, bytes], ...]
    """(module name, source) of the main module first."""
    digest: str
    """sha256 over names and sources: the name under which a host keeps it."""


@dataclass(frozen=True, slots=True)
class RemoteProgram:
    """A program that runs on a host; `channel` carries its stdin and stdout from the first byte."""

    channel: ByteChannel
    python: str
    """The interpreter's path and version, as "/usr/bin/python3 3.11.2"; empty when there is none."""
    cached: bool
    """Whether the host still had it, so that nothing was sent."""


def load_program(name: ProgramName) -> Program:
    """The program as it is shipped with this version."""
    raise NotImplementedError


async def start_program(
    transport: HostTransport,
    program: Program,
    argv: Sequence[str] = (),
    *,
    python: str | None = None,
    timeout_s: float = 20.0,
) -> RemoteProgram:
    """Run `program` on the host. Raises NoPython, ProbeError, and what the transport raises."""
    raise NotImplementedError


async def start_probe(
    transport: HostTransport,
    *,
    interval_s: float = 1.0,
    python: str | None = None,
    timeout_s: float = 20.0,
) -> RemoteProgram:
    """Run the probe, or without Python the shell's `nvidia-smi` or `/proc` stream in its place."""
    raise NotImplementedError
