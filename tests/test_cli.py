from __future__ import annotations

import errno
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cockpit
from cockpit import cli
from cockpit.cli import HEADLESS_MODULES, main
from cockpit.cli_args import build_parser, parse
from cockpit.errors import UsageError

COMMANDS = [
    "run", "ps", "logs", "stop", "attach", "wait", "hosts", "status", "scan", "doctor", "fit",
    "cost", "journal", "replay", "serve", "export", "profile", "ssh", "help", "demo",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COCKPIT_HOME", str(tmp_path / "cockpit"))
    return tmp_path / "cockpit"


def modules_after(*arguments: str) -> set[str]:
    """Which packages a fresh interpreter holds after that command."""
    code = (
        "import sys\nfrom cockpit.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print('\\n' + ' '.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["run", "--help"], {"textual", "asyncssh", "pydantic", "rich", "cockpit.config.profile"}),
        (["--version"], {"textual", "asyncssh", "pydantic", "rich", "platformdirs"}),
        (["hosts", "list"], {"textual", "pydantic", "rich", "cockpit.screens", "cockpit.widgets"}),
        (["profile", "list"], {"textual", "asyncssh", "rich", "cockpit.engine"}),
        (["run", "./no.toml"], {"textual", "cockpit.screens", "cockpit.widgets"}),
        (["status"], {"textual", "cockpit.screens", "cockpit.widgets"}),
    ],
)
def test_a_command_loads_its_own_front_end_only(arguments: list[str], absent: set[str]) -> None:
    assert absent & modules_after(*arguments) == set()


def test_a_list_with_hosts_in_it_loads_no_screen_and_no_pydantic() -> None:
    assert main(["hosts", "add", "a", "ssh -p 3 root@a.example"]) == 0
    loaded = modules_after("hosts", "list", "--json")
    assert {"textual", "pydantic", "cockpit.widgets"} & loaded == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([command, "--help"])
    assert caught.value.code == 0
    assert f"usage: cockpit {command}" in capsys.readouterr().out


def test_help_lists_the_commands_that_this_version_has() -> None:
    text = build_parser().format_help()
    listed = {command for command in COMMANDS if f"    {command} " in text}
    modules = {c: f"cockpit.headless.{HEADLESS_MODULES[c]}" for c in COMMANDS if c != "demo"}
    built = {c for c, module in modules.items() if importlib.util.find_spec(module) is not None}
    assert listed == built | {"demo"}


def test_every_command_has_a_module() -> None:
    assert set(COMMANDS) - {"demo"} <= set(HEADLESS_MODULES)


def test_the_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cockpit", "--version"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == f"cockpit {cockpit.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run"],
        ["run", "p", "--gpus", "x"],
        ["run", "p", "--gpus", "0,0"],
        ["run", "p", "--det"],
        ["run", "p", "--nonsense"],
        ["logs", "r", "--from", "-"],
        ["logs", "r", "--from", "--1"],
        ["logs", "r", "--from", "x"],
        ["hosts", "trust"],
        ["fit", "--for", "nothing"],
        ["scan", "x", "--fail-on", "x"],
        ["demo", "--hosts", "0"],
        ["--json"],
    ],
)
def test_a_mistake_of_the_command_line_is_64(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 64
    said = capsys.readouterr()
    assert said.out == ""
    assert "usage: cockpit" in said.err


def test_run_s_arguments() -> None:
    args = parse(
        ["run", "p.toml", "--host", "a", "--host", "b", "--gpus", "0,1", "--set", "a.b=c",
         "--set", "x=-1", "--detach", "--dry-run", "--json"]
    )  # fmt: skip
    assert (args.command, args.profile, args.host) == ("run", "p.toml", ["a", "b"])
    assert (args.gpus, args.overrides) == ((0, 1), ["a.b=c", "x=-1"])
    assert (args.detach, args.dry_run, args.json) == (True, True, True)


def test_a_dash_is_stdin_and_a_byte_is_a_number() -> None:
    assert parse(["scan", "-", "--json"]).file == "-"
    args = parse(["logs", "r", "-f", "--from", "12"])
    assert (args.run, args.follow, args.from_byte) == ("r", True, 12)
    assert parse(["logs", "r", "--from", "-10000"]).from_byte == -10_000


def run_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(_args: object) -> int:
        raise error

    monkeypatch.setattr(cli, "_dispatch", fail)
    return main(["ps"])


def test_an_unexpected_exception_is_70_in_one_line_and_a_traceback_in_the_log(
    monkeypatch: pytest.MonkeyPatch, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(monkeypatch, ZeroDivisionError("x")) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "ZeroDivisionError" in said.err
    assert "in fail\n" in (home / "cockpit.log").read_text()
    assert (home / "cockpit.log").stat().st_mode & 0o777 == 0o600


def test_without_a_log_the_traceback_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.write_text("a file in the way")
    assert run_with(monkeypatch, ZeroDivisionError("x")) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_with(monkeypatch, KeyboardInterrupt()) == 130


def test_an_error_ends_with_its_own_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(monkeypatch, UsageError("host_exists", host="a")) == 64
    assert "There is a host a already" in capsys.readouterr().err


def test_a_command_of_another_version_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(HEADLESS_MODULES, "export", "not_written")
    assert main(["export"]) == 69
    said = capsys.readouterr()
    assert "`cockpit export` is not part of this version yet." in said.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cockpit", "profile", "schema"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    _out, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGPIPE
    assert said == b""


def test_a_full_disk_is_told() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cockpit", "profile", "schema"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 74
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["hosts list", "profile check command", "status --host x"])
def test_closed_streams_change_no_end(command: str, closed: str, tmp_path: Path) -> None:
    """A host is there, so that the list has something to write."""
    assert main(["hosts", "add", "a", "ssh root@a.example"]) == 0
    words = [sys.executable, "-m", "cockpit", *command.split()]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == (64 if command.startswith("status") else 0)
    assert "mistake of cockpit" not in done.stderr


def test_a_full_disk_under_stderr_changes_no_end() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cockpit", "status", "--host", "x"],
            stdout=subprocess.PIPE, stderr=full, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (64, b"")


def test_what_the_encoding_of_stdout_cannot_write_is_written_as_escapes(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PYTHONIOENCODING": "ascii",
        "COCKPIT_HOME": str(tmp_path / "gl\u00fcck"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "cockpit", "profile", "new", "--from", "command"],
        env=environ, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"gl\\xfcck/profiles/command.toml\n")


@pytest.mark.parametrize("arguments", [[], ["demo"]])
def test_the_screen_needs_a_terminal(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cockpit", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (64, "")
    assert "needs a terminal" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_home_that_cannot_be_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COCKPIT_HOME", "~nobody-of-that-name/x")
    assert main(["hosts", "list"]) == 74
    assert capsys.readouterr().err == "~nobody-of-that-name/x: No such user.  io\n"
    assert run_with(monkeypatch, ZeroDivisionError("x")) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_file_of_mistakes_does_not_flood_the_terminal(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "hosts.toml").write_text("".join(f"k{n} = 1\n" for n in range(1000)))
    assert main(["hosts", "list"]) == 78
    lines = capsys.readouterr().err.splitlines()
    assert "1000 mistakes" in lines[0]
    assert (len(lines), lines[-1]) == (102, "  and 900 more")


def test_no_room_for_passing_files_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "No usable temporary directory found in ['/tmp']"
    assert run_with(monkeypatch, FileNotFoundError(errno.ENOENT, why)) == 74
    assert capsys.readouterr().err == f"TMPDIR: {why}.  io\n"


def test_help_lists_what_this_version_has_and_no_more() -> None:
    from importlib.util import find_spec

    from cockpit.cli import HEADLESS_MODULES
    from cockpit.cli_args import build_parser

    listed = {
        line.split()[0] for line in build_parser().format_help().splitlines() if line[:4] == "    "
    }
    commands = {words for words in HEADLESS_MODULES if " " not in words}
    built = {name for name in commands if find_spec(f"cockpit.headless.{HEADLESS_MODULES[name]}")}
    assert listed & commands == built


@pytest.mark.parametrize(
    ("word", "meant"), [("statsu", "status"), ("hots", "hosts"), ("rnu", "run")]
)
def test_a_command_that_is_spelt_wrong_is_guessed(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 64
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_a_replay_without_a_screen_judges_its_file_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 74
    (tmp_path / "log").write_text("no recording\n")
    assert main(["replay", str(tmp_path / "log")]) == 65
    assert "terminal" not in capsys.readouterr().err
