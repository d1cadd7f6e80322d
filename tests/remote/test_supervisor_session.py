"""Whether a host ends a user's processes at logout, by what its logind is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.remote.probing import REMOTE


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(REMOTE))
    yield __import__("supervisor_session")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with systemd, as Debian ships it."""
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/logind.conf.d").mkdir(parents=True)
    (tmp_path / "etc/systemd/logind.conf").write_text(
        "[Login]\n#NAutoVTs=6\n#KillUserProcesses=no\n#KillOnlyUsers=\n#KillExcludeUsers=root\n"
    )
    return tmp_path


def ends(session: ModuleType, root: Path, user: str = "ann") -> bool:
    return bool(session.ends_at_logout(str(root), user))


def say(root: Path, *lines: str, name: str = "50-kill.conf") -> None:
    text = "[Login]\n" + "\n".join(lines) + "\n"
    (root / "etc/systemd/logind.conf.d" / name).write_text(text)


def test_the_default_of_a_distribution_stands_in_a_comment(session: ModuleType, root: Path) -> None:
    assert not ends(session, root)
    main = root / "etc/systemd/logind.conf"
    main.write_text(main.read_text().replace("KillUserProcesses=no", "KillUserProcesses=yes"))
    assert ends(session, root)


def test_a_later_file_wins(session: ModuleType, root: Path) -> None:
    say(root, "KillUserProcesses=yes")
    assert ends(session, root)
    say(root, "KillUserProcesses = no", name="60-keep.conf")
    assert not ends(session, root)


def test_linger_keeps_a_users_processes(session: ModuleType, root: Path) -> None:
    say(root, "KillUserProcesses=yes")
    (root / "var/lib/systemd/linger").mkdir(parents=True)
    (root / "var/lib/systemd/linger/ann").touch()
    assert not ends(session, root) and ends(session, root, "bob")


def test_who_is_excluded_or_not_named_is_left_alone(session: ModuleType, root: Path) -> None:
    say(root, "KillUserProcesses=yes")
    assert not ends(session, root, "root")
    say(root, "KillUserProcesses=yes", "KillExcludeUsers=ann")
    assert not ends(session, root) and ends(session, root, "root")
    say(root, "KillUserProcesses=yes", "KillOnlyUsers=bob carl")
    assert not ends(session, root) and ends(session, root, "bob")


def test_a_container_without_systemd_ends_nothing(session: ModuleType, root: Path) -> None:
    say(root, "KillUserProcesses=yes")
    (root / "run/systemd/system").rmdir()
    assert not ends(session, root)


def test_this_very_host_can_be_asked(session: ModuleType) -> None:
    assert session.ends_at_logout() in (True, False)


@pytest.mark.parametrize(
    ("kills", "ends", "reason"),
    [
        (0, True, "killed_at_logout"),
        (None, True, "killed_at_logout"),
        (2, True, "killed_without_record"),
        (0, False, "killed_without_record"),
    ],
)
def test_a_lost_run_names_the_likely_cause(
    session: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    kills: int | None,
    ends: bool,
    reason: str,
) -> None:
    run = __import__("supervisor_run")
    monkeypatch.setattr(run, "oom_kills_since", lambda _baseline: kills)
    monkeypatch.setattr(run, "ends_at_logout", lambda: ends)
    told = run.Run._lost("killed_without_record", {}, {"wall_s": 5.0})
    assert (told["state"], told["reason"], told["oom_kills"]) == ("lost", reason, kills)
    assert run.Run._lost("host_restarted", {}, {})["reason"] == "host_restarted"
