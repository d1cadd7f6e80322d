"""The bootstrap through every login shell, with an rc file that talks, as whoever tests (root in CI) and as another."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from cockpit.errors import ProtocolError, ProxyWithoutExec
from cockpit.i18n.messages import explain
from cockpit.transport.base import HostTransport
from tests.servers import Laptop, Rules, misbehaving_server, need, openssh

pytestmark = pytest.mark.sshd

SHELLS = {
    "sh": "dash",
    "dash": "dash",
    "bash": "bash",
    "zsh": "zsh",
    "fish": "fish",
    "ksh": "ksh",
    "tcsh": "tcsh",
    "csh": "csh",
}
NOISY_RC = {
    ".bashrc": "echo 'rc says hi'; echo 'rc warns' >&2\n",
    ".zshenv": "echo 'rc says hi'; echo 'rc warns' >&2\n",
    ".config/fish/config.fish": "echo 'rc says hi'; echo 'rc warns' >&2\n",
    ".cshrc": "echo 'rc says hi'\n",
}
TALKING = {"bash", "zsh", "fish", "tcsh", "csh"}
SCRIPT = b'echo "out $((1+1))"; echo err >&2; id -un; cat; exit 7'


@pytest.mark.parametrize("user", ["me", "ubuntu"])
@pytest.mark.parametrize("shell", SHELLS)
async def test_a_script_runs_whatever_the_login_shell_is(
    tmp_path: Path, laptop: Laptop, closing: list[HostTransport], shell: str, user: str
) -> None:
    path = need(shell, SHELLS[shell])
    name = getpass.getuser() if user == "me" else user
    async with openssh(
        tmp_path / "sshd", shell=path, user=name, rc=NOISY_RC, authorized=[laptop.identity]
    ) as sshd:
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
        closing.append(transport)
        await transport.connect()
        done = await transport.run(SCRIPT, stdin=b"\x00\xff\xfe in\n")
        channel = await transport.open(b"true")
        assert (done.exit_code, done.stderr) == (7, b"err\n")
        assert done.stdout == b"out 2\n" + name.encode() + b"\n\x00\xff\xfe in\n"
        assert (b"rc says hi" in channel.noise) is (shell in TALKING)


async def test_endless_noise_is_cut_off(
    tmp_path: Path, laptop: Laptop, closing: list[HostTransport]
) -> None:
    rc = {".bashrc": "cat /dev/zero\n"}
    bash = need("bash", "bash")
    async with openssh(tmp_path / "sshd", shell=bash, rc=rc, authorized=[laptop.identity]) as sshd:
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
        closing.append(transport)
        await transport.connect()
        with pytest.raises(ProtocolError) as caught:
            await transport.open(b"true")
    assert caught.value.facts["why"] == "noise_too_long"
    assert caught.value.facts["host"] == "box"


async def test_an_rc_file_that_becomes_tmux_is_told_apart(
    tmp_path: Path, laptop: Laptop, closing: list[HostTransport]
) -> None:
    rc = {".bashrc": "echo welcome; exec tmux\n"}
    tmux = tmp_path / "bin" / "tmux"
    tmux.parent.mkdir()
    tmux.write_text(
        "#!/bin/sh\n[ -t 0 ] || { echo 'open terminal failed: not a terminal' >&2; exit 1; }\n"
    )
    tmux.chmod(0o755)
    rc[".bashrc"] = f"PATH={tmux.parent}:$PATH\n" + rc[".bashrc"]
    bash = need("bash", "bash")
    async with openssh(tmp_path / "sshd", shell=bash, rc=rc, authorized=[laptop.identity]) as sshd:
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
        closing.append(transport)
        await transport.connect()
        with pytest.raises(ProtocolError) as caught:
            await transport.open(b"true")
    assert caught.value.facts["why"] == "login_takes_terminal"
    told = explain(caught.value.code, dict(caught.value.facts))
    assert "tmux" in told.headline and any("no_auto_tmux" in action for action in told.actions)


async def test_a_shell_that_runs_nothing_is_named_with_its_words(
    tmp_path: Path, laptop: Laptop, closing: list[HostTransport]
) -> None:
    shell = tmp_path / "nologin"
    shell.write_text("#!/bin/sh\necho 'This account is \x1b[31mclosed\x07'\nexit 1\n")
    shell.chmod(0o755)
    async with openssh(tmp_path / "sshd", shell=str(shell), authorized=[laptop.identity]) as sshd:
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
        closing.append(transport)
        await transport.connect()
        with pytest.raises(ProtocolError) as caught:
            await transport.open(b"true")
    assert caught.value.facts["why"] == "no_sentinel"
    text = str(caught.value.facts["text"])
    assert "This account is" in text
    assert "\x1b" not in text and "\x07" not in text


async def test_a_proxy_for_people_is_told_by_its_words(
    laptop: Laptop, closing: list[HostTransport]
) -> None:
    async with misbehaving_server(Rules(open_door=True, exec_allowed=False)) as server:
        laptop.trust(server)
        transport = laptop.transport(server)
        closing.append(transport)
        await transport.connect()
        with pytest.raises(ProxyWithoutExec):
            await transport.open(b"true")


async def test_runpods_proxy_is_told_by_its_name(laptop: Laptop) -> None:
    async with misbehaving_server() as server:
        transport = laptop.transport(server, host="ssh.runpod.io", port=22)
        with pytest.raises(ProxyWithoutExec) as caught:
            await transport.connect()
    assert caught.value.facts["address"] == "ssh.runpod.io"
