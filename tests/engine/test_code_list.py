"""Which files are sent: git's list or a walk, less what is ignored; and what a plan says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.code_files import CodePlan
from cockpit.engine import code_git
from cockpit.engine.code_list import CodeWish, plan_code
from cockpit.errors import CockpitError
from cockpit.i18n.messages import explain

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

IDENTITY = (
    "-c",
    "user.name=t",
    "-c",
    "user.email=t@example.org",
    "-c",
    "protocol.file.allow=always",
)


def git(folder: Path, *args: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", *IDENTITY, *args], cwd=folder, env=environ, check=True, capture_output=True, timeout=60
    )  # fmt: skip


def tree(root: Path, **files: str) -> Path:
    """Files by their names, `__` for `/`."""
    for name, text in files.items():
        put(root, name.replace("__", "/").replace("_DOT_", "."), text)
    return root


def put(root: Path, name: str | bytes, text: str = "x") -> None:
    path = os.path.join(os.fsencode(root), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def repository(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    return root


def listed(root: Path, **wish: object) -> CodePlan:
    return plan_code(replace(CodeWish(root, "~/there"), **wish))  # type: ignore[arg-type]


def names(plan: CodePlan) -> list[bytes]:
    return [file.path for file in plan.files]


def test_git_decides_and_tracked_files_that_match_gitignore_go_along(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    for name in ("train.py", "kept.bin", "lost.bin", "data/x.py", ".gitignore", "sub/.gitignore"):
        put(root, name)
    put(root, ".gitignore", "*.bin\n/data/\n")
    put(root, "sub/.gitignore", "secret*\n")
    put(root, "sub/secret.txt")
    git(root, "add", "-f", "train.py", "kept.bin")
    plan = listed(root)
    assert names(plan) == [b".gitignore", b"kept.bin", b"sub/.gitignore", b"train.py"]
    assert plan.by_git and plan.git is not None and plan.git.commit is None


def test_a_tracked_file_that_was_deleted_is_left_out(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    for name in ("a.py", "b.py"):
        put(root, name)
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "b.py").unlink()
    plan = listed(root)
    assert names(plan) == [b"a.py"]
    assert plan.git is not None and plan.git.is_dirty and plan.git.branch == "main"
    assert plan.git.commit is not None and len(plan.git.commit) == 40


def test_a_folder_of_a_repository_is_sent_by_itself_with_the_rules_above_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    for name in ("top.py", "part/a.py", "part/b.log", "part/c.tmp"):
        put(root, name)
    put(root, ".gitignore", "*.log\n")
    put(root, ".cockpitignore", "*.tmp\n/top.py\n")
    assert names(listed(root / "part")) == [b"a.py"]


def test_submodules_and_repositories_inside_are_sent_and_an_empty_one_is_named(
    tmp_path: Path,
) -> None:
    other = repository(tmp_path / "other")
    put(other, "lib.py")
    put(other, ".gitignore", "*.o\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    root = repository(tmp_path / "r")
    put(root, "main.py")
    git(root, "submodule", "--quiet", "add", str(other), "full")
    git(root, "submodule", "--quiet", "add", str(other), "empty")
    put(root, "full/junk.o")
    git(root, "submodule", "--quiet", "deinit", "-f", "empty")
    nested = repository(root / "nested")
    put(nested, "n.py")
    plan = listed(root)
    assert names(plan) == [
        b".gitmodules", b"full/.gitignore", b"full/lib.py", b"main.py", b"nested/n.py",
    ]  # fmt: skip
    assert plan.left_out["empty_submodule"] == ("empty",)


def test_links_stay_links_inside_and_are_left_out_where_they_lead_away(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    put(root, "data/x")
    put(tmp_path, "elsewhere/y")
    (root / "in").symlink_to("data/x")
    (root / "dir").symlink_to("data")
    (root / "dangling").symlink_to("not/there")
    (root / "out").symlink_to("../elsewhere/y")
    (root / "absolute").symlink_to(root / "data")
    (root / "twice").symlink_to("out")
    plan = listed(root)
    links = {file.path: file.link for file in plan.files if file.link is not None}
    assert links == {b"in": b"data/x", b"dir": b"data", b"dangling": b"not/there"}
    assert sorted(plan.left_out["link_outside"]) == ["absolute", "out", "twice"]


def test_modes_and_names_of_every_kind_are_kept(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    odd = [b"-dash", b"a\nb", b"q'\"\\ uote", b"\xff\xfe", "模型".encode(), b" lead", b"$(x)`y`"]
    for name in odd:
        put(root, name)
    put(root, "run.sh")
    (root / "run.sh").chmod(0o755)
    os.mkfifo(root / "pipe")
    plan = listed(root)
    assert set(names(plan)) == {*odd, b"run.sh"}
    assert {file.mode & 0o111 for file in plan.files if file.path == b"run.sh"} == {0o111}
    assert "pipe" not in str(names(plan))


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "walk"])
def test_cockpitignore_has_the_rules_of_gitignore(tmp_path: Path, in_git: bool) -> None:
    root = repository(tmp_path / "r") if in_git else tmp_path / "r"
    for name in (
        "a.log", "keep.log", "out/x", "out/keep.txt", "deep/out/y", "sub/b.csv", "sub/keep.csv", "c.csv",
        "!bang", "doc/a.txt", "doc/b/c.txt",
    ):  # fmt: skip
        put(root, name)
    put(
        root,
        ".cockpitignore",
        "# comment\n*.log\n!keep.log\n/out/\n!out/keep.txt\n\\!bang\ndoc/**/c.txt\n",
    )
    put(root, "sub/.cockpitignore", "*.csv\n!keep.csv\n")
    assert names(listed(root)) == [
        b".cockpitignore", b"c.csv", b"deep/out/y", b"doc/a.txt", b"keep.log", b"sub/.cockpitignore",
        b"sub/keep.csv",
    ]  # fmt: skip


def test_a_cockpitignore_of_another_editor_means_the_same(tmp_path: Path) -> None:
    """With a mark at its beginning that says UTF-8, and lines that end otherwise."""
    for name in ("a.py", "data/x", "keep/y"):
        put(tmp_path, name)
    put(tmp_path, ".cockpitignore", "\ufeffdata/\r\nkeep/\r\n")
    assert names(listed(tmp_path, by_git=False)) == [b".cockpitignore", b"a.py"]


def test_outside_git_caches_and_environments_stay_here_unless_brought_back(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    for name in (
        "a.py", "__pycache__/a.pyc", ".venv/bin/x", "node_modules/y", "b.pyc", ".git/config",
        ".cockpit-code/sent", "venv/ours",
    ):  # fmt: skip
        put(root, name)
    put(root, ".cockpitignore", "!venv/\n")
    plan = listed(root, by_git=False)
    assert names(plan) == [b".cockpitignore", b"a.py", b"venv/ours"]
    assert not plan.by_git and plan.left_out_count["ignored"] == 6


def test_what_was_fetched_is_not_sent_back(tmp_path: Path) -> None:
    root = tree(tmp_path / "r", a="x", fetched__run__model="x", fetchedx="x")
    assert names(listed(root, skip=(root / "fetched",))) == [b"a", b"fetchedx"]


def test_the_file_of_secrets_is_not_sent_even_where_git_has_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    for name in (".env", "a.py", "sub/.env"):
        put(root, name)
    git(root, "add", "-f", ".")
    (tmp_path / "alias").symlink_to(root)
    plan = listed(tmp_path / "alias", secret=tmp_path / "alias" / ".env")
    assert names(plan) == [b"a.py", b"sub/.env"]
    assert plan.left_out["secret"] == (".env",)


def test_the_guard_counts_files_and_bytes_and_names_the_largest(tmp_path: Path) -> None:
    root = tmp_path / "r"
    for at in range(12):
        put(root, f"f{at}", "x" * (at * 1000))
    plan = listed(root, max_files=12, max_mib=1)
    assert not plan.is_too_large and plan.total_bytes == 66_000
    assert plan.largest[0] == ("f11", 11_000) and len(plan.largest) == 10
    assert listed(root, max_files=11).is_too_large
    put(root, "big", "x" * (1 << 20))
    assert listed(root, max_files=99, max_mib=1).is_too_large


def test_the_source_is_the_project_wherever_it_is_checked_out(tmp_path: Path) -> None:
    roots = []
    for name in ("one", "two", "three"):
        root = repository(tmp_path / name)
        put(root, "a")
        put(root, "sub/b")
        roots.append(root)
    for root in roots[:2]:
        git(root, "remote", "add", "origin", "https://example.org/x.git")
    first, second, third = (listed(root).source for root in roots)
    assert first == second != third
    assert listed(roots[0] / "sub").source != first


def refusal(call: object) -> CockpitError:
    with pytest.raises(CockpitError) as caught:
        call()  # type: ignore[operator]
    told = explain(caught.value.code, caught.value.facts)
    assert told.headline and "{" not in told.text
    return caught.value


def test_what_cannot_be_listed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(lambda: listed(tmp_path / "missing")).code == "code_missing"
    put(tmp_path, "file")
    assert refusal(lambda: listed(tmp_path / "file")).code == "code_missing"
    (tmp_path / "void").mkdir()
    assert refusal(lambda: listed(tmp_path / "void")).code == "code_empty"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert refusal(lambda: listed(tmp_path)).code == "code_is_home"
    assert refusal(lambda: listed(Path("/"))).code == "code_is_home"


def test_git_that_is_missing_or_refuses_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "r")
    put(root, "a")
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # a hook's environment changes nothing
    assert names(listed(root)) == [b"a"]
    (root / ".git" / "HEAD").write_text("rubbish")
    error = refusal(lambda: listed(root))
    assert error.code == "code_git_failed" and "not a git repository" in str(error.facts["said"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(lambda: listed(root)).code == "code_git_missing"
    assert names(listed(root, by_git=False)) == [b"a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "r")
    put(root, "a")
    for path in (root, root / ".git"):
        os.chown(path, 12345, 12345)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    error = refusal(lambda: listed(root))
    assert error.facts["why"] == "dubious"
    assert "safe.directory" in explain(error.code, error.facts).text


def test_a_git_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "r")
    put(root, "a")
    slow = tmp_path / "bin" / "git"
    put(tmp_path, "bin/git", "#!/bin/sh\nexec /bin/sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent))
    monkeypatch.setattr(code_git, "LIST_S", 0.2)
    assert "took more than" in str(refusal(lambda: listed(root)).facts["said"])


def test_a_diff_is_bounded_and_names_what_is_new(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    put(root, "a.py", "one\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    put(root, "a.py", "two\n")
    put(root, "new.py")
    diff = code_git.diff_of(root, True)
    assert b"-one\n+two" in diff.data and b"?? new.py" in diff.data and not diff.is_cut
    put(root, "a.py", "long line\n" * 300_000)
    diff = code_git.diff_of(root, True)
    assert diff.is_cut and len(diff.data) <= code_git.MAX_DIFF_BYTES
