from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config.import_hosts import from_lines, from_ssh_config, looks_like_ssh_config


def test_plain_aliases_are_hosts_and_patterns_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ssh = tmp_path / ".ssh"
    (ssh / "more.d").mkdir(parents=True)
    (ssh / "config").write_text(
        "# mine\nInclude more.d/*\nInclude config\n"
        'Host h100 "a100" *.example !x -bad\n  HostName 203.0.113.5\nhost=box\nMatch host y\n'
        "Host h100\nHost 'open\n"
    )
    (ssh / "more.d" / "one").write_text("Host train train-host\n\tProxyJump h100\n")
    found = from_ssh_config(Path("~/.ssh/config"))
    assert [(c.name, c.line) for c in found][:5] == [
        ("train", "ssh train"),
        ("train-host", "ssh train-host"),
        ("h100", "ssh h100"),
        ("a100", "ssh a100"),
        ("box", "ssh box"),
    ]
    assert len(found) == 5


def test_a_missing_file_has_no_hosts(tmp_path: Path) -> None:
    assert from_ssh_config(tmp_path / "no") == []


def test_pasted_lines_get_a_name_from_what_they_say() -> None:
    text = """
# my boxes
lab ssh -p 1 root@203.0.113.5
lab2 = ssh root@203.0.113.6
ssh -p 31022 root@connect.westb.seetacloud.com
RTX 5090 * 1  2.78
ssh -p 31023 root@connect.westb.seetacloud.com
$ ssh root@203.0.113.7
root@box.example -p 22
ssh root@[2001:db8::1]
ssh root@h -o ProxyCommand=id
total: 3 hosts
"""
    found = [(c.name, c.problem.code if c.problem else None) for c in from_lines(text)]
    assert found == [
        ("lab", None),
        ("lab2", None),
        ("autodl", None),
        ("autodl-31023", None),
        ("203-0-113-7", None),
        ("box", None),
        ("2001-db8-1", None),
        ("h", "pasted_refused_option"),
    ]


def test_an_ssh_config_is_told_from_pasted_lines() -> None:
    assert looks_like_ssh_config("# x\n  Host a\n")
    assert not looks_like_ssh_config("ssh root@host\nhosts\n")
