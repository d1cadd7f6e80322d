from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cockpit.transport import ssh_options
from cockpit.transport.ssh_config_files import says_nothing
from cockpit.transport.ssh_options import read_options

DEBIAN = """
# The distribution's own.
Host *
    SendEnv LANG LC_*
    HashKnownHosts yes
    GSSAPIAuthentication yes
"""
NEIGHBOUR = """
Host bastion *.example gpu-?
    HostName 10.0.0.1
    Port 2222
    User ubuntu
    IdentityFile ~/.ssh/other
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.mark.parametrize(
    "text",
    [
        "",
        DEBIAN,
        NEIGHBOUR,
        "hashknownhosts=yes\n\tServerAliveInterval = 30\n",
        "Host unix%* vsock/*\n  ProxyCommand /usr/lib/proxy %h\n",
        "Include /nowhere/at/all/*.conf\n",
    ],
)
def test_files_that_are_of_no_use_for_a_host(config: Path, text: str) -> None:
    config.write_text(text)
    assert says_nothing("203.0.113.5", [config, config.with_name("missing")])


@pytest.mark.parametrize(
    "text",
    [
        "Port 2222\n",
        "Host *\n  User ubuntu\n",
        "Host BOX\n  User ubuntu\n",
        "Host b?x !box\n  User ubuntu\n",
        "Host 'box'\n  User ubuntu\n",
        "Host other\n  Port many\n",
        "Host other\n  UnheardOf yes\n",
        "Match host other\n  User ubuntu\n",
        "Match all\n",
        "CanonicalizeHostname yes\n",
        "Ciphers +aes128-cbc\n",
        "Include conf.d/*\n",
        "Include ~/.ssh/more\n",
        "Include /tmp/%h\n",
        "nonsense\n",
        "HashKnownHosts yes\n" * 5000,
    ],
)
def test_whatever_may_matter_is_left_to_ssh(config: Path, text: str) -> None:
    config.write_text(text)
    assert not says_nothing("box", [config])


def test_included_files_count(config: Path, tmp_path: Path) -> None:
    config.write_text(f"Include {tmp_path}/more-*\n")
    assert says_nothing("box", [config])
    (tmp_path / "more-1").write_text("Host box\n  Port 2222\n")
    assert not says_nothing("box", [config])


def test_a_file_that_includes_itself_is_left_to_ssh(config: Path) -> None:
    config.write_text(f"Include {config}\n")
    assert not says_nothing("box", [config])


def test_files_that_ssh_would_refuse_are_left_to_ssh(config: Path) -> None:
    config.write_text(DEBIAN)
    config.chmod(0o666)
    assert not says_nothing("box", [config])
    config.unlink()
    config.mkdir()
    assert not says_nothing("box", [config])


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")
@pytest.mark.parametrize("host", ["Box.Example", "203.0.113.5", "FE80::1"])
def test_the_short_way_says_what_ssh_says(
    config: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(NEIGHBOUR.replace("*.example", ""))
    short = read_options(host, "ann", 2201, config)
    monkeypatch.setattr(ssh_options, "says_nothing", lambda *_: False)
    assert short == read_options(host, "ann", 2201, config)


def test_an_ssh_of_another_place_is_always_asked(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\necho "hostname asked.example"\n')
    ssh.chmod(0o755)
    path = os.environ["PATH"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{path}")
        patch.setattr(ssh_options, "config_argument", lambda _: ())
        assert read_options("box", None, None, None)["hostname"] == ("asked.example",)
    assert calls.read_text().strip() == "-G -- box"
