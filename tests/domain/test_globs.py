"""Patterns of results, and the names of a host that may be written here."""

from __future__ import annotations

import pytest

from cockpit.domain.globs import compiled, glob_start, is_inside, may_be_written


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("out/**/*.st", "out/a.st", True),
        ("out/**/*.st", "out/a/b/c.st", True),
        ("out/**/*.st", "out.st", False),
        ("out/**/*.st", "xout/a.st", False),
        ("*.txt", "a.txt", True),
        ("*.txt", "a/b.txt", False),
        ("**/*.txt", "b.txt", True),
        ("**", "a/b/c", True),
        ("out/**", "out/a/b", True),
        ("out/**", "out", False),
        ("out", "out/a/b", True),
        ("out/", "out/a/b", True),
        ("out", "outer/a", False),
        ("ckpt/best*", "ckpt/best-3/model.bin", True),
        ("ckpt/best*", "ckpt/worst/best", False),
        ("a?.bin", "ab.bin", True),
        ("a?.bin", "a型.bin", True),
        ("a?.bin", "a/.bin", False),
        ("a?.bin", "abc.bin", False),
        ("step-[0-9].pt", "step-7.pt", True),
        ("step-[!0-9].pt", "step-7.pt", False),
        ("step-[!0-9].pt", "step-x.pt", True),
        ("a[!x]b", "a/b", False),
        ("a[]]b", "a]b", True),
        ("a[b", "a[b", True),
        ("out/*", "out/a", True),
        ("out/*", "out/a/b", False),
        ("out/*/", "out/a/b", True),
        ("*", "a/b", False),
        ("a.b", "axb", False),
        ("./out/*.x", "out/1.x", True),
        ("模型/*", "模型/a", True),
        ("a\\b", "a\\b", True),
        ("*", "a\nb", True),
        ("x", "x\n", False),
    ],
)
def test_a_pattern_means_what_a_shell_means(glob: str, path: str, matches: bool) -> None:
    assert bool(compiled((glob,)).match(path.encode())) is matches


@pytest.mark.parametrize(
    ("glob", "start"),
    [
        ("out/**/*.st", "out"),
        ("a/b/*.txt", "a/b"),
        ("*.txt", ""),
        ("**/x", ""),
        ("a/b", "a"),
        ("./a//b/c", "a/b"),
        ("a[1]/b", ""),
    ],
)
def test_only_the_folder_before_the_first_sign_is_looked_at(glob: str, start: str) -> None:
    assert glob_start(glob) == start


@pytest.mark.parametrize("glob", ["/etc/*", "~/x", "../x", "a/../../x", "a/.."])
def test_a_pattern_that_leads_away_is_none(glob: str) -> None:
    assert not is_inside(glob)
    assert is_inside("a/..b/*")


@pytest.mark.parametrize(
    "path",
    [
        b"", b"/etc/passwd", b"../x", b"a/../../x", b"a/..", b".", b"a//b", b"a/", b"a/./b", b"a\0b",
        b"a\x1b]0;x\x07", b"a\nb", b"a/.git/config", b".GIT", b"x" * 256, b"a/" * 2000 + b"b", b"\x7f",
    ],
    ids=range(17),
)  # fmt: skip
def test_names_that_are_not_written(path: bytes) -> None:
    assert not may_be_written(path)


@pytest.mark.parametrize(
    "path", [b"a", b"a/b", b"..a", b"a..", b".hidden/x", b"\xff", "型".encode(), b"-rf", b".gitignore"]
)  # fmt: skip
def test_names_that_are(path: bytes) -> None:
    assert may_be_written(path)
