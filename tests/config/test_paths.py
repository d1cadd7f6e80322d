from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cockpit.config.files import locked, write_atomic
from cockpit.config.paths import Home, is_there, tilde
from cockpit.errors import StorageError


def test_the_variable_moves_everything(tmp_path: Path) -> None:
    home = Home.from_environ({"COCKPIT_HOME": str(tmp_path / "c")})
    files = (home.hosts_toml, home.settings_toml, home.profiles_dir, home.known_hosts, home.db)
    assert {path.parent for path in (*files, home.recordings, home.log)} == {tmp_path / "c"}


def test_without_the_variable_it_is_the_platform_s_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/somewhere/config")
    assert Home.from_environ({"COCKPIT_HOME": ""}).root.name == "cockpit"


def test_a_tilde_in_the_variable_is_the_person_s_folder() -> None:
    assert Home.from_environ({"COCKPIT_HOME": "~/c"}).root == Path.home() / "c"


def test_the_folder_of_a_user_who_is_not_there_is_a_storage_error() -> None:
    with pytest.raises(StorageError):
        Home.from_environ({"COCKPIT_HOME": "~nobody-of-that-name/c"})


def test_what_can_be_no_file_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    paths: list[str | Path] = [
        tmp_path / "here",
        tmp_path,
        tmp_path / ("x" * 300),
        "~nobody-of-that-name/x",
    ]
    assert [is_there(path) for path in paths] == [True, False, False, False]


def test_the_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "c")
    home.ensure()
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    home.ensure()


def test_a_file_in_the_way_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    with pytest.raises(StorageError):
        Home(tmp_path / "c").ensure()


def test_a_write_is_whole_and_private_and_follows_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "hosts.toml"
    real.parent.mkdir()
    real.write_text("old")
    link = tmp_path / "hosts.toml"
    link.symlink_to(real)
    write_atomic(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert [path.name for path in real.parent.iterdir()] == ["hosts.toml"]


def test_a_write_that_fails_leaves_what_was(tmp_path: Path) -> None:
    target = tmp_path / "hosts.toml"
    target.mkdir()
    with pytest.raises(StorageError):
        write_atomic(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["hosts.toml"]


def test_the_lock_makes_the_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()


def test_tilde_is_for_the_own_folder_only() -> None:
    assert tilde(Path.home() / "x") == "~/x"
    assert tilde(Path.home()) == "~"
    assert tilde(str(Path.home()) + "-other/x") == str(Path.home()) + "-other/x"
