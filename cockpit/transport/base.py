"""The seam between the engine and the wire: what a transport can do, whatever carries it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from cockpit.domain.models import HostName

SecretKind: TypeAlias = Literal["password", "passphrase", "keyboard_interactive"]


@dataclass(frozen=True, slots=True)
class SecretRequest:
    """A question only the person can answer. The answer is used once and kept in memory at most."""

    host: HostName
    kind: SecretKind
    prompt: str
    """The host's own words, cleaned; empty when it said none."""
    subject: str
    """user@host, or the key file."""


AskSecret: TypeAlias = Callable[[SecretRequest], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """What was learnt by connecting."""

    address: str
    port: int
    user: str
    key_type: str | None = None
    fingerprint: str | None = None
    """SHA256:… of the host key that was verified; None for this machine."""
    server_version: str = ""
    via: tuple[str, ...] = ()
    """The jump hosts, first to last."""
    connect_s: float = 0.0
    latency_s: float | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished command. `signal` is a name such as KILL, or None."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    signal: str | None = None
    truncated: bool = False
    """There was more than `limit` bytes of stdout: the command was ended and its exit code is not known."""


class ByteChannel(Protocol):
    """A command on the host with its three streams, in bytes; back-pressure reaches the host."""

    @property
    def noise(self) -> bytes:
        """What the login shell printed before our sentinel, at most 64 KiB of it."""

    async def read(self, limit: int = 65536) -> bytes:
        """At least one byte of stdout, b"" at its end. Raises LinkLost when the connection is gone."""

    async def write(self, data: bytes) -> None:
        """Send to stdin; returns when the host takes it. Raises LinkLost.

        What is sent to a command that has ended is dropped.
        """

    async def write_eof(self) -> None: ...

    def stderr_tail(self) -> bytes:
        """The last 64 KiB of stderr."""

    async def wait(self) -> int | None:
        """The exit code; None when a signal ended it or the link went first."""

    @property
    def signal(self) -> str | None:
        """The signal that ended the command, such as KILL; None as long as none did."""

    async def close(self) -> None:
        """End the command by closing its streams; returns within seconds whatever the host does."""


class TcpStream(Protocol):
    """A connection to a TCP port as the host sees it, carried by ours. Not one of the three channels."""

    async def read(self, limit: int = 65536) -> bytes:
        """At least one byte, b"" at the end. Raises LinkLost."""

    async def write(self, data: bytes) -> None:
        """Raises LinkLost."""

    async def write_eof(self) -> None: ...

    async def close(self) -> None:
        """Returns within seconds whatever the host does."""


class HostTransport(Protocol):
    """One host. One connection, at most three channels at once (a fourth waits)."""

    @property
    def host(self) -> HostName: ...

    @property
    def connected(self) -> bool: ...

    async def connect(self) -> LinkFacts:
        """Open the connection, hop by hop. Raises TransportError and its children, with `host` in the facts."""

    async def open(self, script: bytes) -> ByteChannel:
        """Run `script` by the host's /bin/sh, whatever the login shell is, and skip the rc files' noise.

        The script's stdin is the channel's own: what `write` sends after it is not read by the shell.
        Raises LinkLost, HostUnreachable, ProtocolError (no sentinel within the limits).
        """

    async def run(
        self, script: bytes, *, stdin: bytes = b"", timeout_s: float = 30.0, limit: int = 1 << 20
    ) -> Completed:
        """`open`, send `stdin`, collect at most `limit` bytes of stdout and the last 64 KiB of stderr.

        Raises what `open` raises, and LinkLost on time-out (`why` is "timeout").
        """

    async def open_tcp(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 10.0
    ) -> TcpStream:
        """Connect to a port as the host sees it, without a port on this computer.

        Raises LinkLost; HostUnreachable when nothing listens there (`why` is "refused" or "timeout").
        """

    async def forward(
        self, local_port: int, remote_port: int, remote_host: str = "127.0.0.1"
    ) -> int:
        """Listen on this computer's loopback until the connection ends; 0 takes a free port.

        Returns the local port. Raises LinkLost, and TransportError `port_taken` with `port`.
        """

    def unforward(self, local_port: int) -> None:
        """Stop listening on a port that `forward` returned."""

    async def wait_closed(self) -> str:
        """Return when the connection is gone, with the reason in words."""

    async def close(self) -> None: ...
