from __future__ import annotations

import json
from pathlib import Path

import pytest

from cockpit.cli import main

BROKEN = """\
name = "qwen"
kind = "command"
[command]
argv = ["true"]
[gpus]
min_fre = "20 GiB"
[stop]
int = "15"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COCKPIT_HOME", str(tmp_path / "cockpit"))
    return tmp_path / "cockpit"


def test_check_tells_every_mistake_in_the_voice_of_the_house(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "qwen.toml"
    file.write_text(BROKEN)
    assert main(["profile", "check", str(file)]) == 78
    said = capsys.readouterr()
    assert said.out == ""
    head, first, second = said.err.splitlines()
    assert head.endswith("qwen.toml has 2 mistakes; nothing was started.  bad_profile")
    assert first.endswith("qwen.toml line 6  gpus.min_fre: no such key. min_free?")
    assert second.endswith('line 8  stop.int = "15": a time needs a unit, such as "15s"')


def test_check_as_json_has_one_object_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "qwen.toml"
    file.write_text(BROKEN)
    assert main(["profile", "check", str(file), "--json"]) == 78
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(p["line"], p["key"], p["code"], p["suggestion"]) for p in found] == [
        (6, "gpus.min_fre", "unknown_key", "min_free"),
        (8, "stop.int", "time_needs_unit", None),
    ]


def test_check_of_a_good_one_is_0_and_takes_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "check", "vllm"]) == 0
    assert "no mistakes" in capsys.readouterr().err
    assert main(["profile", "check", "vllm", "--set", "vllm.port=9"]) == 0
    assert main(["profile", "check", "vllm", "--set", "vllm.prot=9"]) == 78
    assert "--set  vllm.prot: no such key. port?" in capsys.readouterr().err


def test_check_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "check", "vlm"]) == 78
    assert "There is no profile vlm; nothing was started. vllm?" in capsys.readouterr().err


def test_new_copies_with_comments_under_a_new_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "new", "--from", "vllm", "mine"]) == 0
    target = home / "profiles" / "mine.toml"
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text()
    assert 'name = "mine"\n' in text
    assert "# less length, less KV cache" in text
    assert main(["profile", "check", "mine"]) == 0


def test_new_changes_the_profile_s_own_name_only(home: Path) -> None:
    assert main(["profile", "new", "--from", "yolo", "mine"]) == 0
    text = (home / "profiles" / "mine.toml").read_text()
    assert text.count('name = "mine"') == 1
    assert 'name = "train"' in text


def test_new_gives_a_nameless_profile_its_name(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('kind = "yolo"\n[yolo]\nname = "n"\n')
    assert main(["profile", "new", "--from", str(file), "mine"]) == 0
    assert (home / "profiles" / "mine.toml").read_text().startswith('name = "mine"\nkind')


def test_new_overwrites_only_when_asked(home: Path) -> None:
    assert main(["profile", "new", "--from", "vllm"]) == 0
    (home / "profiles" / "vllm.toml").write_text("mine")
    assert main(["profile", "new", "--from", "torchrun", "vllm"]) == 64
    assert (home / "profiles" / "vllm.toml").read_text() == "mine"
    assert main(["profile", "new", "--from", "torchrun", "vllm", "--replace"]) == 0


@pytest.mark.parametrize("name", ["../x", "-x", "a/b", ""])
def test_new_writes_nowhere_else(name: str, home: Path) -> None:
    assert main(["profile", "new", "--from", "vllm", f"{name}"]) in (0, 64)
    written = [path.name for path in home.rglob("*.toml")]
    assert written in ([], ["vllm.toml"])


def test_list_shows_the_home_s_and_the_shipped(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "profiles").mkdir(parents=True)
    (home / "profiles" / "qwen.toml").write_text(BROKEN)
    assert main(["profile", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (rows[0]["name"], rows[0]["origin"], rows[0]["problems"]) == ("qwen", "home", 2)
    vllm = next(row for row in rows if row["name"] == "vllm")
    assert (vllm["kind"], vllm["origin"], vllm["problems"]) == ("vllm", "shipped", 0)
    assert main(["profile", "list"]) == 0
    assert "cockpit profile check qwen" in capsys.readouterr().out


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "cockpit run profile"


def test_a_profile_of_someone_else_says_nothing_to_the_terminal(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'name = "\\u001b]0;x\\u0007"\nkind = "\\u001b[2J"\ndescription = "a\\u202eb"\n"\\u001b[1m" = 1\n'
    good = 'kind = "command"\ndescription = "a\\u202eb"\n[command]\nargv = ["true"]\n'
    (home / "profiles").mkdir(parents=True)
    (home / "profiles" / "bad.toml").write_text(text)
    (home / "profiles" / "good.toml").write_text(good)
    assert main(["profile", "check", "bad"]) == 78
    assert main(["profile", "list"]) == 0
    said = capsys.readouterr()
    assert [char for char in said.err + said.out if char in "\x1b\x07\u202e"] == []


@pytest.mark.parametrize(
    "path", ["x" * 300 + ".toml", "~nobody-of-that-name/x.toml", "./\x1b[m.toml"]
)
def test_a_path_that_can_be_no_file_is_78(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "check", path]) == 78
    said = capsys.readouterr().err
    assert said.startswith("There is no file ")
    assert "\x1b" not in said


def test_an_empty_name_is_told_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "check", ""]) == 78
    assert 'There is no profile ""' in capsys.readouterr().err


def test_a_new_profile_needs_a_name_of_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "new", "--from", "command", "../x"]) == 64
    assert "cannot name a profile" in capsys.readouterr().err
