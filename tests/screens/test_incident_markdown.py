"""An incident as Markdown: complete, and nothing in it breaks out, mentions anybody, or gives a secret away."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.incident_proof import Holder, Proof
from cockpit.domain.naming import without_names
from cockpit.engine.api import LogLine
from cockpit.errors import StorageError
from cockpit.screens.incident_export import document_text, file_name, write_new
from cockpit.screens.incident_markdown import Document, fenced, markdown, prose, span
from tests.screens.fake_engine import FakeEngine
from tests.screens.incident_scenes import OFFSET, oom, storied
from tests.screens.run_scenes import cockpit, workers_done

PROFILE = {"accelerate": {"args": ["--batch", "8"]}}


def written(engine: FakeEngine, **changes: object) -> str:
    one = replace(oom(), **changes)  # type: ignore[arg-type]
    return markdown(Document(one, engine.contexts, PROFILE, "1.2.3"))


def outside_of_code(text: str) -> str:
    """What a renderer would read as prose: fences and code spans taken out as CommonMark does."""
    kept, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r" {0,3}(`{3,})", line)
        if fence:
            closes = re.fullmatch(r" {0,3}(`{3,}) *", line)
            if closes and len(closes[1]) >= len(fence):
                fence = ""
            continue
        if mark and "`" not in line[mark.end() :]:
            fence = mark[1]
            continue
        kept.append(re.sub(r"(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)", "", line))
    assert not fence, "a fence is left open"
    return "\n".join(kept)


def test_it_holds_all_that_a_colleague_asks_for() -> None:
    text = written(storied())
    for words in (
        "# Out of GPU memory", "2023-11-14 22:12:47 UTC", "| severity | fatal |",
        "`gpu_oom / torch_oom`", "## What happened", "## Why we think so",
        "> torch.OutOfMemoryError", "  Traceback (most recent call last):",
        "## Before the moment", "24.0G┤", "## Who was on the card", "| 4121 | `python` | `root` | 22.2 GiB |",
        "## Numbers", "| tried | `1.75 GiB` |", "## Versions", "| driver | `550.54.15` |",
        "## What to do", '- accelerate.args = ["--batch", "8"]', '+ accelerate.args = ["--batch", "4"]',
        "## What became of it", "opened", "`vast-a-20231114-2212.rec`", "Written by cockpit 1.2.3.",
    ):  # fmt: skip
        assert words in text, words


@pytest.mark.parametrize(
    "evil",
    [
        "```\n# pwned", "``````", "`", "` `` ```", "~~~\n# pwned", "> quote", "<script>alert(1)</script>",
        "![x](http://x/y.png)", "[a](javascript:1)", "| cell | cell |", "\x1b]0;x\x07\x9b2J\x00\u202e",
        "@somebody look", "fixes #12", "\n\n# pwned\n\n", "$$x$$", "</details>", "- [ ] x", "*bold*",
    ],
    ids=repr,
)  # fmt: skip
def test_host_text_stays_where_it_was_put(evil: str) -> None:
    engine = storied()
    engine.contexts[OFFSET] = tuple(LogLine(n, OFFSET - 2 + n, evil) for n in range(4))
    base = oom()
    finding = replace(base.finding, text=evil, facts={"path": evil, "tried_mib": 3}, signature=evil)
    evidence = tuple(replace(one, text=evil, source=evil) for one in base.evidence)
    proof = Proof(None, (Holder(1, evil, evil, 3, evil),), {evil: evil})
    text = written(
        engine, finding=finding, evidence=evidence, proof=proof, profile=evil, host=evil,
        state_why=evil, recording=evil, steps=(replace(base.steps[0], what=evil, why=evil),),
    )  # fmt: skip
    prose_only = re.sub(r"\\(.)", "", outside_of_code(text))
    for sign in (
        "pwned\n#",
        "<script",
        "![x]",
        "](",
        "@somebody",
        "#12",
        "</details",
        "$$",
        "http://",
        "\x1b",
        "\x00",
    ):
        assert sign not in prose_only, sign
    assert [line for line in prose_only.splitlines() if line.startswith("# ")] == [
        "# Out of GPU memory"
    ]
    assert "\x1b" not in text and "\u202e" not in text and "\x9b" not in text
    headings = [line for line in prose_only.splitlines() if line.startswith("#")]
    assert all(re.fullmatch(r"##? [A-Z][\w ]+", line) for line in headings)


@pytest.mark.parametrize("content", ["", "`", "``", "```", "a```b", "`" * 40])
def test_a_fence_and_a_span_are_longer_than_what_they_hold(content: str) -> None:
    assert outside_of_code(fenced([content, "x"])) == ""
    assert "`" not in outside_of_code("a " + span(content or "x") + " b")


def test_prose_mentions_nobody() -> None:
    assert prose("@a #1 <b> *c*") == r"&#64;a &#35;1 \<b\> \*c\*"


async def test_known_secrets_are_covered() -> None:
    engine = storied()
    engine.secret = "hf_abcdefgh"
    engine.contexts[OFFSET] = (LogLine(1, OFFSET, "token hf_abcdefgh"),)
    text = await document_text(engine, oom(), None, is_neutral=False)
    assert "hf_abcdefgh" not in text and "token ***********" in text


async def test_neutral_names_are_the_same_everywhere_and_tell_nothing() -> None:
    engine = storied()
    line = "vast-a: user anna at /home/anna/x 203.0.113.5 anna@example.org 22:12:47 root"
    engine.contexts[OFFSET] = (LogLine(1, OFFSET, line),)
    text = await document_text(engine, oom(), None, is_neutral=True)
    for name in ("vast-a", "anna", "203.0.113.5", "example.org"):
        assert name not in text.replace("vast-a-2023", ""), name
    assert "host-1" in text and "user-1" in text and "22:12:47" in text and "root" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpu on gpu-box and gpu-box-2", "gpu on host-1 and gpu-box-2"),
        ("0000:1b:00.0 at 12:04:31", "0000:1b:00.0 at 12:04:31"),
        ("2001:db8::1 and 10.0.0.1 and 1.2.3", "address and address and 1.2.3"),
        ("/Users/mia/a /home/other/b", "/Users/user-1/a /home/user/b"),
        ("torch 2.4.1.1234", "torch 2.4.1.1234"),
        ("mia.log miaow mia", "mia.log miaow user-1"),
    ],
)
def test_names_go_and_numbers_stay(text: str, wanted: str) -> None:
    assert without_names(text, ["gpu-box", "gpu"], ["mia", "root"]) == wanted


def test_a_file_is_private_new_and_never_replaced(tmp_path: Path) -> None:
    target = tmp_path / "incident.md"
    write_new(target, "text")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(StorageError) as caught:
        write_new(target, "other")
    assert caught.value.code == "file_exists" and target.read_text() == "text"
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError):
        write_new(link, "x")
    with pytest.raises(StorageError):
        write_new(tmp_path / "none" / "x.md", "x")


def test_the_name_of_the_file_is_plain() -> None:
    assert file_name(oom()) == "incident-gpu_oom-qwen-lora-20231114-2212.md"
    assert file_name(oom(), is_neutral=True) == "incident-gpu_oom-20231114-2212.md"
    assert "/" not in file_name(replace(oom(), profile="../../etc/x\x1b"))


@pytest.mark.parametrize("key", ["e", "w"])
async def test_export_asks_for_names_and_path_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with cockpit(storied(), "3", key, "r", "enter") as (app, _pilot):
        await workers_done(app)
        target = tmp_path / "incident-gpu_oom-20231114-2212.md"
        assert target.read_text().startswith("# Out of GPU memory")
        assert str(target) in app.said[-1]


@pytest.mark.parametrize("keys", [("escape",), ("w", "escape")], ids=["at-once", "later"])
async def test_escape_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    async with cockpit(storied(), "3", "e", *keys) as (app, _pilot):
        await workers_done(app)
        assert list(tmp_path.iterdir()) == []
