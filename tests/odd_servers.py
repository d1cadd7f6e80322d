"""Servers in the test's own process that behave as told: asyncssh by rules, and TCP that speaks no SSH."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import asyncssh

from tests.endpoints import Server


class ScriptedServer(asyncssh.SSHServer):
    """Lets in by password, key or prompts as told; runs no command unless it has a handler."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def begin_auth(self, username: str) -> bool:
        return not self._rules.open_door

    def password_auth_supported(self) -> bool:
        return self._rules.password is not None

    async def validate_password(self, username: str, password: str) -> bool:
        self._rules.passwords_seen.append(password)
        return password == self._rules.password

    def public_key_auth_supported(self) -> bool:
        return bool(self._rules.authorized)

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        await self._rules.gate.wait()
        return any(key.public_data == known.public_data for known in self._rules.authorized)

    def kbdint_auth_supported(self) -> bool:
        return bool(self._rules.prompts)

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, list[tuple[str, bool]]]:
        return "", "", "", [(prompt, False) for prompt in self._rules.prompts]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        return list(responses) == list(self._rules.prompts.values())


@dataclass(slots=True)
class Rules:
    """How an asyncssh server behaves. `gate` delays every key check until it is set."""

    password: str | None = None
    authorized: list[asyncssh.SSHKey] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)
    """Keyboard-interactive: what is asked, and the answer that counts."""
    open_door: bool = False
    """Everyone is let in without a question."""
    exec_allowed: bool = True
    handler: Callable[[asyncssh.SSHServerProcess[bytes]], Any] | None = None
    """Serves a command; the default runs it by /bin/sh."""
    passwords_seen: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()


async def run_by_sh(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run the client's command as sshd would."""
    local = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.redirect(stdin=local.stdin, stdout=local.stdout, stderr=local.stderr)
    code = await local.wait()
    await process.stdout.drain()
    process.exit(code)


@asynccontextmanager
async def misbehaving_server(
    rules: Rules | None = None,
    *,
    host_keys: Sequence[asyncssh.SSHKey] = (),
    port: int = 0,
    **options: Any,
) -> AsyncIterator[Server]:
    """An asyncssh server in this process on a free port; `options` go to asyncssh.listen."""
    rules = rules or Rules(open_door=True)
    keys = list(host_keys) or [asyncssh.generate_private_key("ssh-ed25519")]

    async def refuse(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stderr.write(b"Error: Your SSH client doesn't support PTY\n")
        process.exit(1)

    listener = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=lambda: ScriptedServer(rules),
        server_host_keys=keys,
        process_factory=rules.handler or (run_by_sh if rules.exec_allowed else refuse),
        encoding=None,
        **options,
    )
    try:
        yield Server(listener.get_port(), "tester", keys[0])
    finally:
        listener.close()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(listener.wait_closed(), 5)


@dataclass(slots=True)
class TcpServer:
    """What a plain TCP server of a test has seen."""

    port: int
    connections: int = 0
    received: bytes = b""
    address: str = "127.0.0.1"


@asynccontextmanager
async def tcp_server(
    greeting: bytes = b"", *, reply: bytes = b"", hang_up: bool = False, echo: bool = False
) -> AsyncIterator[TcpServer]:
    """Accepts, sends `greeting`, answers the first bytes with `reply`; then silence, or closing with `hang_up`."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        seen.connections += 1
        try:
            writer.write(greeting)
            await writer.drain()
            while not hang_up or reply:
                data = await reader.read(65536)
                seen.received = (seen.received + data)[-65536:]
                writer.write(data if echo else reply)
                await writer.drain()
                if not data or hang_up:
                    break
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen = TcpServer(server.sockets[0].getsockname()[1])
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
