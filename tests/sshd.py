"""A private OpenSSH server on loopback, with accounts, login shells and homes of its own."""

from __future__ import annotations

import getpass
import os
import shlex
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import pytest

from tests.endpoints import Identity, Server, free_port, need, until

SSHD = "/usr/sbin/sshd"
START_TIMEOUT_S = 10.0


def need_sshd() -> str:
    if not os.access(SSHD, os.X_OK):
        pytest.skip("sshd is not installed (Debian: apt-get install openssh-server)")
    return SSHD


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
    address: str = "127.0.0.1",
    enter: Sequence[str] = (),
) -> AsyncIterator[OpenSshServer]:
    """A running sshd, ended with everything that it started, detached jobs included.

    `shell` and `rc` are the login shell and the home's files of `user` (default: whoever runs the tests);
    a user other than that one needs root. `accounts` adds more. `authorized` may log in to all of them.
    `enter` is put in front of its command, such as one that enters a network namespace where `address` is.
    `options` are lines of sshd_config ("MaxStartups 2:100:2"), `host_keys` further keys beside `host_key`.
    """
    main = _main_account(folder, user, shell, rc)
    key = host_key or asyncssh.generate_private_key("ssh-ed25519")
    server = OpenSshServer(port or free_port(), main.name, key, address, folder=folder)
    _write_config(server, main, accounts, authorized, [key, *host_keys], options, shell)
    _launch(server, [main, *accounts], enter)
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


def _launch(server: OpenSshServer, accounts: Sequence[Account], enter: Sequence[str]) -> None:
    command = [SSHD, "-D", "-e", "-f", str(server.folder / "sshd_config")]
    if os.geteuid() == 0:
        command = _in_namespace(server.folder, accounts, command)
    with (server.folder / "log").open("wb") as log:
        server.process = subprocess.Popen(
            [*enter, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
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
