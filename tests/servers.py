"""SSH servers for tests, on loopback only: one door to `sshd`, `odd_servers`, `laptop` and `endpoints`.

`openssh` runs the system's sshd on a free port with keys, authorized_keys and home of its own. As root it runs in
a private mount namespace with its own /etc/passwd, so that accounts (root and others), their login shells (fish,
zsh, …) and their homes (with any rc file) are the test's and the machine's stay untouched. Elsewhere it serves
the user that runs the tests, and a shell is put in between by ForceCommand. Everything that it started is ended
with it, detached jobs included.

`misbehaving_server` is an asyncssh server in this process (passwords, prompts, refusals, delays), `tcp_server`
accepts and says what it is told. `Identity` makes client keys, `Laptop` is an isolated client.

    async with openssh(tmp_path / "sshd", shell="/usr/bin/fish", authorized=[laptop.identity]) as sshd:
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
        await transport.connect()
"""

from __future__ import annotations

from tests.endpoints import Identity, Server, free_port, need, until
from tests.laptop import QUICK, Laptop
from tests.odd_servers import Rules, ScriptedServer, TcpServer, misbehaving_server, tcp_server
from tests.sshd import Account, OpenSshServer, need_sshd, openssh

__all__ = [
    "QUICK",
    "Account",
    "Identity",
    "Laptop",
    "OpenSshServer",
    "Rules",
    "ScriptedServer",
    "Server",
    "TcpServer",
    "free_port",
    "misbehaving_server",
    "need",
    "need_sshd",
    "openssh",
    "tcp_server",
    "until",
]
