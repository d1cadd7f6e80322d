"""Start a program of `cockpit.remote` on a host that has nothing of ours, over one channel.

The program travels as text, is kept on the host by content hash, compiled, and checked before each
use; a host that keeps nothing (read-only, full) is sent it each time.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cockpit.domain.text import safe_line
from cockpit.engine.bounds import within
from cockpit.engine.programs import Program, fallback_script, load_program, packed
from cockpit.errors import NoPython, ProbeError
from cockpit.transport.base import ByteChannel, HostTransport
from cockpit.transport.session import READ_SCRIPT, escaped_line

__all__ = ["Program", "RemoteProgram", "load_program", "start_probe", "start_program"]

PYTHONS: Final = (
    "/usr/bin/python3", "/usr/local/bin/python3", "/opt/conda/bin/python",
    "/root/miniconda3/bin/python", "/venv/main/bin/python", "/opt/venv/bin/python",
    "/usr/bin/python3.[6-9]", "/usr/bin/python3.1[0-9]", "/usr/local/bin/python3.[0-9]*",
    "python3", "python",
)  # fmt: skip
"""Where images keep a Python >= 3.6: by place first, since a PATH may begin with slow shims."""
_FIRST_LINE_LIMIT: Final = 4096


@dataclass(frozen=True, slots=True)
class RemoteProgram:
    """A program that runs on a host; `channel` carries its stdin and stdout from the first byte."""

    channel: ByteChannel
    python: str
    """The interpreter's version and path, as "3.11.2 /usr/bin/python3"; empty when there is none."""
    cached: bool
    """Whether the host still had it, so that nothing was sent."""


class _Resumed:
    """A channel whose first bytes were read already: they come first."""

    def __init__(self, channel: ByteChannel, unread: bytes) -> None:
        self._channel = channel
        self._unread = unread

    @property
    def noise(self) -> bytes:
        return self._channel.noise

    @property
    def signal(self) -> str | None:
        return self._channel.signal

    async def read(self, limit: int = 65536) -> bytes:
        if self._unread:
            data, self._unread = self._unread[:limit], self._unread[limit:]
            return data
        return await self._channel.read(limit)

    async def write(self, data: bytes) -> None:
        await self._channel.write(data)

    async def write_eof(self) -> None:
        await self._channel.write_eof()

    def stderr_tail(self) -> bytes:
        return self._channel.stderr_tail()

    async def wait(self) -> int | None:
        return await self._channel.wait()

    async def close(self) -> None:
        await self._channel.close()


async def start_program(
    transport: HostTransport,
    program: Program,
    argv: Sequence[str] = (),
    *,
    python: str | None = None,
    timeout_s: float = 20.0,
    pythons: Sequence[str] = PYTHONS,
) -> RemoteProgram:
    """Run `program` on the host. Raises NoPython, ProbeError, and what the transport raises."""
    script = start_script(program, argv, python, "", pythons)
    started = await _start(transport, program, script, timeout_s)
    if started.python:
        return started
    await started.channel.close()
    raise NoPython(
        host=str(transport.host), looked_for=", ".join((*([python] if python else []), *pythons))
    )


async def start_probe(
    transport: HostTransport,
    *,
    interval_s: float = 1.0,
    python: str | None = None,
    timeout_s: float = 20.0,
    pythons: Sequence[str] = PYTHONS,
) -> RemoteProgram:
    """Run the probe, or without Python the shell's `nvidia-smi` or `/proc` stream in its place."""
    program = load_program("probe")
    argv = ("--interval", f"{interval_s:g}")
    script = start_script(program, argv, python, READ_SCRIPT, pythons)
    started = await _start(transport, program, script, timeout_s)
    if not started.python:
        await started.channel.write(escaped_line(fallback_script(interval_s).encode()))
    return started


def start_script(
    program: Program,
    argv: Sequence[str],
    python: str | None,
    otherwise: str,
    pythons: Sequence[str] = PYTHONS,
) -> bytes:
    """The shell's part: find a Python that takes the boot program, else say so and do otherwise.

    The boot program leaves with 97 when the Python is too old, a broken Python with 1, and the shell
    with 126 or 127; the boot program itself turns these into 70 once it has begun.
    """
    places = [shlex.quote(python)] if python else []
    fetch_bytes = str(len(program.fetch.encode()))
    words = " ".join(
        shlex.quote(word) for word in (program.digest, program.name, fetch_bytes, *argv)
    )
    found, searched = _in_turn([*places, *pythons])
    return f"""boot={shlex.quote(program.boot)}
try() {{
case $python in */*) [ -x "$python" ] || return;; esac
"$python" -E -s -S -u -c "$boot" {words}
code=$?
case $code in 1|97|126|127) ;; *) exit $code;; esac
}}
for python in {found}; do try; done
for python in {searched}; do try; done
echo none
{otherwise}""".encode()


def _in_turn(pythons: Sequence[str]) -> tuple[str, str]:
    """The places up to the first pattern, and the others: to expand it, the shell reads whole folders."""
    at = next((at for at, place in enumerate(pythons) if "[" in place), len(pythons))
    return " ".join(pythons[:at]), " ".join(pythons[at:])


async def _start(
    transport: HostTransport, program: Program, script: bytes, timeout_s: float
) -> RemoteProgram:
    channel = await transport.open(script)
    try:
        return await within(timeout_s, _answered(transport, program, channel))
    except asyncio.TimeoutError as error:
        await channel.close()
        raise ProbeError("probe_silent", host=str(transport.host), limit_s=timeout_s) from error
    except BaseException:
        await channel.close()
        raise


async def _answered(
    transport: HostTransport, program: Program, channel: ByteChannel
) -> RemoteProgram:
    """Read the boot program's first line and send the program when it has none."""
    line, unread = await _first_line(channel)
    word, _, python = line.partition(b" ")
    if word in (b"need", b"need-plain"):
        await channel.write(packed(program, plain=word == b"need-plain"))
    elif word not in (b"have", b"none"):
        raise ProbeError(
            "probe_failed",
            host=str(transport.host),
            said=safe_line(line, 200),
            stderr=safe_line(channel.stderr_tail()[-400:], 400),
        )
    resumed = _Resumed(channel, unread)
    return RemoteProgram(resumed, safe_line(python, 200), cached=word == b"have")


async def _first_line(channel: ByteChannel) -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data and len(data) < _FIRST_LINE_LIMIT:
        more = await channel.read()
        if not more:
            break
        data += more
    line, _, unread = data.partition(b"\n")
    return line, unread
