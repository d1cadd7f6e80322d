"""Channels of an SSH connection: a command's three streams, and a TCP port as the host sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import asyncssh

from cockpit.domain.models import HostName
from cockpit.errors import LinkLost, ProtocolError, TransportError
from cockpit.transport.failures import link_lost, no_sentinel
from cockpit.transport.in_time import in_time
from cockpit.transport.inbox import Inbox, Tail
from cockpit.transport.session import Preamble, framed

WRITE_CHUNK = 128 * 1024
FLUSH_S = 1.0
CLOSE_S = 1.0
STDERR_LIMIT = 64 << 20
"""Nobody reads stderr to the end: a command that floods it is ended."""

AnyChannel: TypeAlias = Any


class _Duplex:
    """What both kinds of channel share. asyncssh calls the methods that its sessions have."""

    def __init__(self, host: HostName) -> None:
        self._host = host
        self._channel: AnyChannel = None
        self._inbox = Inbox(self._pause, self._resume)
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = asyncio.Event()
        self._loss: LinkLost | None = None
        self._on_gone: Callable[[], None] | None = None
        self._closing = False
        self._confirmed = False

    @property
    def lingers(self) -> bool:
        """Closed by us while the command goes on: it holds one of sshd's sessions until it ends."""
        return self._closing and not self._confirmed

    def when_gone(self, call: Callable[[], None]) -> None:
        """Called once when the channel is over, whoever ended it."""
        if self._gone.is_set():
            call()
        else:
            self._on_gone = call

    def connection_made(self, chan: AnyChannel) -> None:
        self._channel = chan

    def session_started(self) -> None:
        return

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._inbox.feed(data)

    def eof_received(self) -> bool:
        self._inbox.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._confirmed = True
        if exc is not None or self._link_is_gone():
            self._loss = link_lost(exc, self._host)
        self._inbox.end(self._loss)
        self._over()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def read(self, limit: int = 65536) -> bytes:
        return await self._inbox.take(limit)

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        for at in range(0, len(view), WRITE_CHUNK):
            await self._writable.wait()
            if self._loss is not None:
                raise self._loss
            if self._gone.is_set() or self._closing:
                return
            with suppress(BrokenPipeError):
                self._channel.write(bytes(view[at : at + WRITE_CHUNK]))
        await self._writable.wait()
        if self._loss is not None:
            raise self._loss

    async def write_eof(self) -> None:
        if not self._gone.is_set() and not self._closing:
            with suppress(BrokenPipeError):
                self._channel.write_eof()

    async def close(self) -> None:
        """Send what is still to be sent, for a second; then close whatever the other side does."""
        if self._gone.is_set():
            return
        self._closing = True
        try:
            with suppress(TimeoutError):
                await in_time(FLUSH_S, self._flushed())
            self._channel.abort()
            self._inbox.end()
            self._inbox.discard()
            with suppress(TimeoutError):
                await in_time(CLOSE_S, self._gone.wait())
        finally:
            self._over()

    def abort(self) -> None:
        """Close at once, without a word."""
        if self._channel is not None and not self._gone.is_set():
            self._channel.abort()
        self._inbox.end()
        self._over()

    async def _flushed(self) -> None:
        """asyncssh tells when its buffer has fallen to the low mark: make that mark zero."""
        if self._channel.get_write_buffer_size() == 0:
            return
        self._channel.set_write_buffer_limits(0, 0)
        await self._writable.wait()

    def _over(self) -> None:
        self._gone.set()
        self._writable.set()
        call, self._on_gone = self._on_gone, None
        if call is not None:
            call()

    def _link_is_gone(self) -> bool:
        connection = self._channel.get_connection() if self._channel is not None else None
        return connection is None or bool(connection.is_closed())

    def _pause(self) -> None:
        self._channel.pause_reading()

    def _resume(self) -> None:
        if not self._gone.is_set():
            self._channel.resume_reading()


class CommandChannel(_Duplex, asyncssh.SSHClientSession[bytes]):
    """A script that runs by the host's /bin/sh; stdout begins after our sentinel."""

    def __init__(self, host: HostName, token: bytes) -> None:
        super().__init__(host)
        self._preamble = Preamble(token)
        self._stderr_mark = framed(token)
        self._stderr = Tail()
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exit = asyncio.Event()
        self._exit_code: int | None = None
        self._signal: str | None = None

    @property
    def noise(self) -> bytes:
        return self._preamble.noise

    @property
    def signal(self) -> str | None:
        return self._signal

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is not None:
            self._stderr_received(data)
        elif self._preamble.found:
            self._inbox.feed(data)
        else:
            self._look_for_sentinel(data)

    def eof_received(self) -> bool:
        self._fail_start("no_sentinel")
        return super().eof_received()

    def exit_status_received(self, status: int) -> None:
        self._exit_code = status
        self._exit.set()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._signal = "".join(sign for sign in signal[:16] if sign.isalnum()) or None
        self._exit.set()

    async def started(self) -> None:
        """Return when the sentinel has come. Raises ProtocolError, ProxyWithoutExec, LinkLost."""
        await asyncio.shield(self._started)

    def late(self) -> TransportError:
        """The error for a sentinel that did not come in time."""
        return no_sentinel(self._host, "no_sentinel", self.noise + self._stderr.bytes())

    def stderr_tail(self) -> bytes:
        kept = self._stderr.bytes()
        return kept.rpartition(self._stderr_mark)[2]

    async def wait(self) -> int | None:
        await self._exit.wait()
        return self._exit_code

    def _over(self) -> None:
        super()._over()
        self._exit.set()
        self._fail_start("no_sentinel")

    def _look_for_sentinel(self, data: bytes) -> None:
        try:
            rest = self._preamble.feed(data)
        except ProtocolError as error:
            self._fail_start(str(error.facts["why"]))
            self.abort()
            return
        if self._preamble.found:
            if not self._started.done():
                self._started.set_result(None)
            self._inbox.feed(rest)

    def _fail_start(self, why: str) -> None:
        if self._started.done():
            return
        said = self.noise + self._stderr.bytes()
        self._started.set_exception(self._loss or no_sentinel(self._host, why, said))
        self._started.exception()  # seen: nobody may be waiting for it

    def _stderr_received(self, data: bytes) -> None:
        self._stderr.feed(data)
        if self._stderr.total > STDERR_LIMIT:
            self._inbox.end(ProtocolError(why="stderr_too_long", host=self._host))
            self.abort()


class PortStream(_Duplex, asyncssh.SSHTCPSession[bytes]):
    """A TCP connection that the host makes for us."""
