"""This machine as a host: the same scripts by the same /bin/sh, without SSH."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from cockpit.domain.models import HostName
from cockpit.errors import HostUnreachable, LinkLost, TransportError
from cockpit.transport.base import Completed, LinkFacts
from cockpit.transport.brief import brief
from cockpit.transport.completed import complete
from cockpit.transport.in_time import in_time
from cockpit.transport.inbox import Inbox, Tail

CHANNELS = 3
CLOSE_S = 1.0


class LocalChannel(asyncio.SubprocessProtocol):
    """A script by /bin/sh with its streams. There are no rc files here, hence no sentinel and no noise."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._inbox = Inbox(self._pause, self._resume)
        self._stderr = Tail()
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._on_exit: Callable[[], None] | None = None

    noise = b""

    @property
    def signal(self) -> str | None:
        code = self._transport.get_returncode()
        if code is None or code >= 0:
            return None
        return signal.Signals(-code).name.removeprefix("SIG")

    def when_gone(self, call: Callable[[], None]) -> None:
        """Called once; at once for a script that was quicker."""
        if self._exited.is_set():
            call()
        else:
            self._on_exit = call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._inbox.feed(data)
        else:
            self._stderr.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._inbox.end()
        if fd == 0:
            self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def process_exited(self) -> None:
        self._exited.set()
        self._writable.set()
        call, self._on_exit = self._on_exit, None
        if call is not None:
            call()

    async def read(self, limit: int = 65536) -> bytes:
        return await self._inbox.take(limit)

    async def write(self, data: bytes) -> None:
        stdin = self._stdin()
        if stdin is None or stdin.is_closing() or self._exited.is_set():
            return
        stdin.write(data)
        await self._writable.wait()

    async def write_eof(self) -> None:
        stdin = self._stdin()
        if stdin is not None and not stdin.is_closing():
            stdin.write_eof()

    def stderr_tail(self) -> bytes:
        return self._stderr.bytes()

    async def wait(self) -> int | None:
        await self._exited.wait()
        code = self._transport.get_returncode()
        return None if code is None or code < 0 else int(code)

    async def close(self) -> None:
        """Close the streams; what does not end within a second, group and all, is killed."""
        for descriptor in (0, 1, 2):
            pipe = self._transport.get_pipe_transport(descriptor)
            if pipe is not None:
                pipe.close()
        self._inbox.end()
        with suppress(TimeoutError):
            await in_time(CLOSE_S, self._exited.wait())
        if not self._exited.is_set():
            with suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            await in_time(CLOSE_S, self._exited.wait())
        self._transport.close()

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))

    def _pause(self) -> None:
        pipe = self._transport.get_pipe_transport(1)
        if pipe is not None:
            pipe.pause_reading()

    def _resume(self) -> None:
        pipe = self._transport.get_pipe_transport(1)
        if pipe is not None and not pipe.is_closing():
            pipe.resume_reading()


class LocalPort:
    """A TCP port of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, limit: int = 65536) -> bytes:
        with suppress(ConnectionError):
            return await self._reader.read(limit)
        return b""

    async def write(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def write_eof(self) -> None:
        with suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await in_time(CLOSE_S, self._writer.wait_closed())


class LocalTransport:
    """Implements HostTransport for `local = true`."""

    def __init__(self, host: HostName, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._channels = asyncio.Semaphore(CHANNELS)
        self._open: set[LocalChannel] = set()
        self._closed: asyncio.Event | None = None

    @property
    def host(self) -> HostName:
        return self._host

    @property
    def connected(self) -> bool:
        return self._closed is not None and not self._closed.is_set()

    async def connect(self) -> LinkFacts:
        self._closed = asyncio.Event()
        return LinkFacts(address="localhost", port=0, user=_user(), latency_s=0.0)

    async def open(self, script: bytes) -> LocalChannel:
        self._live()
        await self._channels.acquire()
        try:
            channel = await self._start(script)
        except BaseException:
            self._channels.release()
            raise
        self._open.add(channel)
        channel.when_gone(lambda: self._gone(channel))
        return channel

    async def run(
        self, script: bytes, *, stdin: bytes = b"", timeout_s: float = 30.0, limit: int = 1 << 20
    ) -> Completed:
        return await complete(self, script, stdin=stdin, timeout_s=timeout_s, limit=limit)

    async def open_tcp(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 10.0
    ) -> LocalPort:
        self._live()
        try:
            opening = asyncio.open_connection(host, port)
            reader, writer = await in_time(timeout_s, opening, lambda both: both[1].close())
        except TimeoutError as error:
            raise HostUnreachable(why="timeout", host=self._host, port=port) from error
        except OSError as error:
            text = brief(error.strerror or error)
            raise HostUnreachable(why="refused", host=self._host, port=port, text=text) from error
        return LocalPort(reader, writer)

    async def forward(
        self, local_port: int, remote_port: int, remote_host: str = "127.0.0.1"
    ) -> int:
        """The port is on this machine already: nothing to do, and no other number for it."""
        self._live()
        if local_port not in (0, remote_port):
            raise TransportError("port_taken", host=self._host, port=local_port)
        return remote_port

    def unforward(self, local_port: int) -> None:
        """Nothing was listening for it."""

    async def wait_closed(self) -> str:
        if self._closed is None:
            return "not connected"
        await self._closed.wait()
        return "closed"

    async def close(self) -> None:
        if self._closed is not None:
            self._closed.set()
        await asyncio.gather(*(channel.close() for channel in tuple(self._open)))

    async def _start(self, script: bytes) -> LocalChannel:
        try:
            _, channel = await asyncio.get_running_loop().subprocess_exec(
                LocalChannel, "/bin/sh", "-c", script, start_new_session=True
            )
        except OSError as error:
            text = brief(error.strerror or error)
            raise HostUnreachable(why="no_shell", host=self._host, text=text) from error
        return channel

    def _gone(self, channel: LocalChannel) -> None:
        self._open.discard(channel)
        self._channels.release()

    def _live(self) -> None:
        if not self.connected:
            raise LinkLost(why="not_connected", host=self._host)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
