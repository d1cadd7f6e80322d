"""SSH servers for tests, on loopback only: a private OpenSSH sshd, and asyncssh servers that misbehave on request.

`OpenSshServer` runs the system's sshd on a free port with keys, authorized_keys and home of its own. As root it
runs in a private mount namespace with its own /etc/passwd, so that accounts (root and others), their login shells
(fish, zsh, …) and their homes (with any rc file) are the test's and the machine's stay untouched. Elsewhere it
serves the user that runs the tests, and a shell is put in between by ForceCommand.

`Identity` makes client keys, `Laptop` an isolated home with hosts, ssh_config and known_hosts, `SilentServer` a
TCP server that accepts and says what it is told. `misbehaving_server` is an asyncssh server in this process.

    async with openssh(tmp_path, shell="/usr/bin/fish") as sshd:
        laptop = Laptop(tmp_path / "laptop")
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
"""

from __future__ import annotations

import asyncio
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.transport.attempt import Limits
from cockpit.transport.base import AskSecret, HostTransport
from cockpit.transport.connector import make_transport

SSHD = "/usr/sbin/sshd"
START_TIMEOUT_S = 10.0
QUICK = Limits(connect_s=3.0, greeting_s=1.0, login_s=10.0, retry_s=0.05)
"""Time-outs for tests that wait for one."""


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait for something that another process does; fails when it does not happen."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + timeout_s
    while not condition():
        assert loop.time() < give_up_at, "it did not happen"
        await asyncio.sleep(0.01)


def need(program: str, package: str) -> str:
    """The program's path, or a skip that says how to get it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian: apt-get install {package})")
    return found


def need_sshd() -> str:
    if not os.access(SSHD, os.X_OK):
        pytest.skip("sshd is not installed (Debian: apt-get install openssh-server)")
    return SSHD


@dataclass(frozen=True, slots=True)
class Identity:
    """A client key as a file, with its public half beside it."""

    file: Path

    @classmethod
    def make(
        cls, file: Path, *, passphrase: str | None = None, kind: str = "ssh-ed25519"
    ) -> Identity:
        file.parent.mkdir(parents=True, exist_ok=True)
        key = asyncssh.generate_private_key(kind)
        key.write_private_key(str(file), passphrase=passphrase, rounds=4, ignore_few_rounds=True)
        key.write_public_key(str(file) + ".pub")
        file.chmod(0o600)
        return cls(file)

    @property
    def public(self) -> str:
        return Path(str(self.file) + ".pub").read_text().strip()


@dataclass(frozen=True, slots=True)
class Account:
    """A login of the server's own /etc/passwd."""

    name: str = "root"
    uid: int = 0
    shell: str = "/bin/sh"
    home: Path = Path("/nonexistent")
    rc: dict[str, str] = field(default_factory=dict)
    """Files of the home, by name relative to it: {".bashrc": "echo hello"}."""


@dataclass(slots=True)
class Server:
    """What a client needs to know of a server."""

    port: int
    user: str
    host_key: asyncssh.SSHKey
    address: str = "127.0.0.1"

    @property
    def fingerprint(self) -> str:
        return self.host_key.get_fingerprint("sha256")

    @property
    def public_key(self) -> str:
        """keytype base64, without a comment."""
        return " ".join(self.host_key.export_public_key().decode().split()[:2])

    @property
    def known_hosts_line(self) -> str:
        return f"[{self.address}]:{self.port} {self.public_key}\n"


@dataclass(slots=True)
class OpenSshServer(Server):
    """A private sshd. `log` holds what it says (LogLevel VERBOSE)."""

    folder: Path = Path()
    process: subprocess.Popen[bytes] | None = None

    @property
    def mark(self) -> str:
        """In the environment of everything that the server starts."""
        return f"COCKPIT_TEST_SSHD={self.folder}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def pid(self) -> int:
        """The listening sshd."""
        return int((self.folder / "pid").read_text())

    def children(self) -> list[int]:
        """The processes of the connections that are open now."""
        return _children(self.pid())

    def kill_connections(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to every process that serves a connection, privileged and not."""
        for child in self.children():
            for pid in (*_children(child), child):
                if _command(pid).startswith("sshd"):
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        doomed = {*_descendants(self.process.pid), *_marked(self.mark)}
        self.process.kill()
        for pid in doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=10)


@asynccontextmanager
async def openssh(
    folder: Path,
    *,
    shell: str | None = None,
    user: str | None = None,
    rc: dict[str, str] | None = None,
    accounts: Sequence[Account] = (),
    authorized: Sequence[Identity] = (),
    host_key: asyncssh.SSHKey | None = None,
    host_keys: Sequence[asyncssh.SSHKey] = (),
    options: Sequence[str] = (),
    port: int = 0,
) -> AsyncIterator[OpenSshServer]:
    """A running sshd, ended with everything that it started, detached jobs included.

    `shell` and `rc` are the login shell and the home's files of `user` (default: whoever runs the tests);
    a user other than that one needs root. `accounts` adds more. `authorized` may log in to all of them.
    `options` are lines of sshd_config ("MaxStartups 2:100:2"), `host_keys` further keys beside `host_key`.
    """
    main = _main_account(folder, user, shell, rc)
    key = host_key or asyncssh.generate_private_key("ssh-ed25519")
    server = OpenSshServer(port or free_port(), main.name, key, folder=folder)
    _write_config(server, main, accounts, authorized, [key, *host_keys], options, shell)
    _launch(server, [main, *accounts])
    try:
        await _until_listening(server)
        yield server
    finally:
        server.stop()


def _main_account(
    folder: Path, user: str | None, shell: str | None, rc: dict[str, str] | None
) -> Account:
    need_sshd()
    folder.mkdir(parents=True, exist_ok=True)
    name = user or getpass.getuser()
    if name != getpass.getuser() and os.geteuid() != 0:
        pytest.skip(f"only root can serve another user ({name})")
    uid = os.geteuid() if name == getpass.getuser() else 20_000
    return Account(name, uid, shell or "/bin/sh", folder / "home", rc or {})


def _launch(server: OpenSshServer, accounts: Sequence[Account]) -> None:
    command = [SSHD, "-D", "-e", "-f", str(server.folder / "sshd_config")]
    if os.geteuid() == 0:
        command = _in_namespace(server.folder, accounts, command)
    with (server.folder / "log").open("wb") as log:
        server.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def _write_config(
    server: OpenSshServer,
    main: Account,
    accounts: Sequence[Account],
    authorized: Sequence[Identity],
    host_keys: Sequence[asyncssh.SSHKey],
    options: Sequence[str],
    shell: str | None,
) -> None:
    folder = server.folder
    lines = [*options]
    for at, key in enumerate(host_keys):
        file = folder / f"host_key_{at}"
        key.write_private_key(str(file))
        file.chmod(0o600)
        lines.append(f"HostKey {file}")
    (folder / "authorized_keys").write_text("".join(i.public + "\n" for i in authorized))
    (folder / "authorized_keys").chmod(0o644)
    for account in (main, *accounts):
        _make_home(account)
    setenv = f"SetEnv {server.mark}"
    if shell is not None and os.geteuid() != 0:
        force = f'exec {shlex.quote(shell)} -c "$SSH_ORIGINAL_COMMAND"'
        lines.append(f"ForceCommand {force}")
        setenv += f" HOME={main.home}"
    lines.append(setenv)
    lines += [
        f"Port {server.port}",
        f"ListenAddress {server.address}",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        f"PidFile {folder}/pid",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PrintMotd no",
        "UseDNS no",
        "LogLevel VERBOSE",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")


def _make_home(account: Account) -> None:
    account.home.mkdir(parents=True, exist_ok=True)
    for name, content in account.rc.items():
        file = account.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    if os.geteuid() == 0:
        for path in (account.home, *account.home.rglob("*")):
            os.chown(path, account.uid, account.uid)
        for parent in account.home.parents:
            if parent.stat().st_uid == 0 and "pytest" in str(parent):
                parent.chmod(parent.stat().st_mode | 0o011)


def _in_namespace(folder: Path, accounts: Sequence[Account], command: list[str]) -> list[str]:
    """Run sshd where /etc/passwd, /etc/group and /etc/shadow are ours."""
    need("unshare", "util-linux")
    names = {account.name for account in accounts}
    passwd, group, shadow = [], [], []
    for line in Path("/etc/passwd").read_text().splitlines():
        if line.split(":")[0] not in names:
            passwd.append(line)
    for account in accounts:
        ids = f"{account.uid}:{account.uid}"
        passwd.append(f"{account.name}:x:{ids}:test:{account.home}:{account.shell}")
        if account.uid:
            group.append(f"{account.name}:x:{account.uid}:")
        shadow.append(f"{account.name}:*:19000:0:99999:7:::")
    group[:0] = Path("/etc/group").read_text().splitlines()
    mounts = []
    for name, lines in (("passwd", passwd), ("group", group), ("shadow", shadow)):
        file = folder / name
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o644)
        mounts.append(f"mount --bind {shlex.quote(str(file))} /etc/{name}")
    setup = " && ".join(["mkdir -p /run/sshd", *mounts, "exec " + shlex.join(command)])
    return ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", setup]


async def _until_listening(server: OpenSshServer) -> None:
    def listens() -> bool:
        assert server.process is not None
        assert server.process.poll() is None, f"sshd did not start:\n{server.log}"
        return (server.folder / "pid").exists() and "Server listening" in server.log

    await until(listens, START_TIMEOUT_S)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _descendants(pid: int) -> list[int]:
    found = _children(pid)
    return [below for child in found for below in (child, *_descendants(child))]


def _marked(mark: str) -> list[int]:
    """Processes that have `mark` in their environment: jobs that outlived their connection."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class Laptop:
    """The client's side of a test: a home for cockpit, an ssh_config and known_hosts, away from the real ones."""

    def __init__(self, folder: Path, *, limits: Limits = QUICK) -> None:
        self.folder = folder
        self.ssh = folder / ".ssh"
        self.ssh.mkdir(parents=True, exist_ok=True)
        self.home = Home(folder / "cockpit")
        self.home.root.mkdir(exist_ok=True)
        self.ssh_config = self.ssh / "config"
        self.user_known_hosts = self.ssh / "known_hosts"
        self.identity = Identity.make(self.ssh / "id_test")
        self.limits = limits
        self.write_config("")

    def write_config(self, text: str) -> None:
        """The ssh_config; its last block keeps ssh away from the real known_hosts."""
        isolated = f"Host *\n  UserKnownHostsFile {self.user_known_hosts}\n"
        isolated += "  GlobalKnownHostsFile /dev/null\n  IdentityAgent none\n"
        self.ssh_config.write_text(text + "\n" + isolated)

    def trust(self, *servers: Server) -> None:
        """Write the servers' keys into cockpit's known_hosts."""
        with self.home.known_hosts.open("a") as file:
            file.writelines(server.known_hosts_line for server in servers)

    def spec(self, server: Server, name: str = "box", **changes: Any) -> HostSpec:
        """The server as hosts.toml would have it."""
        keys: dict[str, Any] = {
            "name": HostName(name),
            "host": server.address,
            "port": server.port,
            "user": server.user,
            "identity": str(self.identity.file),
        }
        return HostSpec(**(keys | changes))

    def transport(
        self,
        server: Server,
        name: str = "box",
        *,
        ask_secret: AskSecret | None = None,
        **changes: Any,
    ) -> HostTransport:
        """A transport to the server, not connected. `changes` are fields of HostSpec."""
        return self.to(self.spec(server, name, **changes), ask_secret=ask_secret)

    def to(self, spec: HostSpec, *, ask_secret: AskSecret | None = None) -> HostTransport:
        return make_transport(
            spec,
            self.home,
            ask_secret=ask_secret,
            ssh_config=self.ssh_config,
            limits=self.limits,
        )


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
