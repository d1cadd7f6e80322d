from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.cli import main

KEYS = [
    "name", "host", "port", "user", "identity", "jump", "local", "platform", "price_per_h",
    "currency", "tags",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of ours and a person's folder without an ssh_config; `ssh` itself is not asked."""
    monkeypatch.setenv("COCKPIT_HOME", str(tmp_path / "cockpit"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person").mkdir()
    return tmp_path / "cockpit"


def typed(content: bytes) -> io.TextIOWrapper:
    """What a pipe into stdin is to the program."""
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["hosts", "list", "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_shape_of_a_host(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = "$ ssh -p 41234 root@203.0.113.5 -i ~/.ssh/vast -J me@gate.example:2222 -A"
    assert main(["hosts", "add", "vast-a", line, "--price", "0.42 USD/h", "--tag", "4090"]) == 0
    (row,) = rows(capsys)
    assert list(row) == KEYS
    assert row == {
        "name": "vast-a",
        "host": "203.0.113.5",
        "port": 41234,
        "user": "root",
        "identity": str(tmp_path / "person/.ssh/vast"),
        "jump": "me@gate.example:2222",
        "local": False,
        "platform": None,
        "price_per_h": 0.42,
        "currency": "USD",
        "tags": ["4090"],
    }


def test_this_machine_has_no_address(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "hosts.toml").write_text("[hosts.here]\nlocal = true\n")
    (row,) = rows(capsys)
    assert (row["local"], row["host"], row["port"], row["user"]) == (True, None, None, None)


def test_what_nobody_says_is_ssh_s_own_default(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hosts", "add", "a", "ssh a.example"])
    (row,) = rows(capsys)
    assert (row["port"], row["identity"], row["jump"]) == (22, None, None)
    assert row["user"]


def test_stdout_is_data_and_stderr_is_talk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "add", "a", "ssh -A -i /no/key a.example -L 80:localhost:80"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "a is recorded: a.example" in said.err
    assert "agent is never forwarded" in said.err
    assert "/no/key is not on this computer" in said.err
    assert "port 80 of this computer will lead to localhost:80" in said.err


def test_add_with_json_prints_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "add", "a", "ssh a.example", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "a"


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "a", "ssh x; id"],
        ["add", "-a", "ssh x"],
        ["add", "a", ""],
        ["add", "a"],
        ["add", "a", "ssh x", "--price", "cheap"],
        ["remove", "a"],
        ["nonsense"],
        [],
    ],
)
def test_a_mistake_is_64_and_prints_no_data(
    arguments: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hosts", *arguments]) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err
    assert not (home / "hosts.toml").exists()


def test_a_broken_file_is_78_with_every_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "hosts.toml").write_text("[hosts.a]\nhots = 'x'\nport = 0\n")
    assert main(["hosts", "list", "--json"]) == 78
    said = capsys.readouterr()
    assert said.out == ""
    assert "2 mistakes" in said.err
    assert "hosts.toml line 2  hosts.a.hots: no such key. host?" in said.err
    assert "hosts.toml line 3  hosts.a.port = 0: not between 1 and 65535" in said.err


def test_the_list_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "list"]) == 0
    said = capsys.readouterr()
    assert (said.out, "No hosts yet" in said.err) == ("", True)
    main(["hosts", "add", "a", "ssh -p 3 root@ssh7.vast.ai"])
    capsys.readouterr()
    assert main(["hosts", "list"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["NAME", "ADDRESS"]
    assert line.split() == ["a", "root@ssh7.vast.ai:3", "vast"]


def test_replace_and_remove(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hosts", "add", "a", "ssh -p 1 root@a.example"])
    assert main(["hosts", "add", "a", "ssh -p 2 root@a.example"]) == 64
    assert main(["hosts", "add", "a", "ssh -p 2 root@a.example", "--replace"]) == 0
    assert [row["port"] for row in rows(capsys)] == [2]
    assert main(["hosts", "remove", "a"]) == 0
    assert rows(capsys) == []


def test_import_takes_what_it_can_and_says_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "lab ssh -p 3 root@203.0.113.5\nssh root@bad -o ProxyCommand=id\n2.78 per hour\n"
    monkeypatch.setattr("sys.stdin", typed(text.encode()))
    assert main(["hosts", "import", "-"]) == 0
    assert "ProxyCommand would run or load something" in capsys.readouterr().err
    assert [row["name"] for row in rows(capsys)] == ["lab"]


def test_import_leaves_what_is_known_and_can_be_tried_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    config.write_text("Host a b\n  HostName 203.0.113.5\nHost *\n  User root\n")
    main(["hosts", "add", "a", "ssh -p 9 root@a.example"])
    assert main(["hosts", "import", str(config), "--dry-run"]) == 0
    assert [row["name"] for row in rows(capsys)] == ["a"]
    assert main(["hosts", "import", str(config)]) == 0
    assert [(row["name"], row["host"]) for row in rows(capsys)] == [("a", "a.example"), ("b", "b")]


def test_import_from_nowhere_is_64() -> None:
    assert main(["hosts", "import"]) == 64
    assert main(["hosts", "import", os.devnull]) == 64


def test_import_of_what_is_no_text_takes_the_lines_that_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", typed(b"\xff\xfe\x00\nlab ssh root@203.0.113.5\n\xc3"))
    assert main(["hosts", "import", "-"]) == 0
    assert [row["name"] for row in rows(capsys)] == ["lab"]


def test_import_of_hostile_lines_only_is_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed(b"ssh x; id\n"))
    assert main(["hosts", "import", "-"]) == 64


def test_two_cockpits_that_add_at_once_lose_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a", "b", "c", "d"]
    adding = [
        subprocess.Popen(
            [sys.executable, "-m", "cockpit", "hosts", "add", name, f"ssh {name}.example"],
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    assert [process.wait(timeout=60) for process in adding] == [0, 0, 0, 0]
    assert sorted(str(row["name"]) for row in rows(capsys)) == names


@pytest.mark.parametrize(
    "name", ["", "\x1b]0;x\x07", "\u202eabc", "a" * 100_000, "-oProxyCommand=x"]
)
def test_a_name_that_no_host_has_is_told_harmlessly(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["hosts", "add", "vast-a", "ssh root@a.example"])
    capsys.readouterr()
    assert main(["hosts", "remove", "--", name]) == 64
    said = capsys.readouterr().err
    assert said.startswith("There is no host ")
    assert "\nKnown: vast-a." in said
    assert len(said) < 200
    assert [char for char in said if char in "\x1b\x07\u202e"] == []


def test_numbers_that_python_does_not_write_are_mistakes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    content = f"[hosts.a]\nhost = 0x{'F' * 9000}\nport = 0x{'F' * 9000}\nprice = 0x{'F' * 9000}\n"
    (home / "hosts.toml").write_text(content)
    assert main(["hosts", "add", "b", "ssh root@b.example"]) == 78
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[1].rpartition(" ")[2] for line in lines[1:]] == ["2", "3", "4"]
    assert (home / "hosts.toml").read_text() == content
