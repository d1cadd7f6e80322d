from __future__ import annotations

import ast
import inspect
import string
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

import cockpit
from cockpit import errors
from cockpit.domain import detectors, remedies
from cockpit.domain.incidents import Finding
from cockpit.domain.scan import Scanner
from cockpit.domain.signatures import SIGNATURES
from cockpit.domain.signatures.xids import XIDS
from cockpit.i18n import english, use_language
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.describe import size_text
from cockpit.i18n.incident_texts import TITLES
from cockpit.i18n.messages import (
    codes,
    describe_incident,
    entry_of,
    explain,
    knows,
    reason_text,
)
from cockpit.i18n.problem_text import error_lines
from cockpit.i18n.remedy_texts import REMEDIES
from cockpit.i18n.xid_texts import XID_NAMES

ROOT = Path(cockpit.__file__).parent
ERROR_CLASSES = {
    name: cls.default_code
    for name, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.CockpitError)
}
CODED = {**ERROR_CLASSES, "Problem": "", "Check": "", "explain": ""}


@lru_cache(maxsize=1)
def calls() -> tuple[tuple[Path, str, ast.Call], ...]:
    return tuple(_calls())


def _calls() -> Iterator[tuple[Path, str, ast.Call]]:
    """Every call in the package that is by a plain or dotted name."""
    for folder in ("", "screens", "widgets"):
        pattern = "**/*.py" if not folder else "*.py"
        for path in sorted((ROOT / folder).glob(pattern)):
            if "remote" in path.relative_to(ROOT).parts:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                    yield path, name, node


def literal(node: ast.Call, keyword: str = "") -> str | None:
    values = [entry.value for entry in node.keywords if entry.arg == keyword] or node.args[:1]
    first = values[0] if values else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def test_every_code_that_is_raised_has_a_sentence() -> None:
    missing = set()
    for path, name, node in calls():
        if name in CODED:
            code = literal(node) or ("" if node.args else CODED[name])
            if code and not knows(code):
                missing.add(f"{path.name}: {name} {code}")
    assert missing == set()


def test_every_link_reason_and_launch_notice_has_a_sentence() -> None:
    told = [
        node.args[1] for _path, name, node in calls() if name == "Reason" and len(node.args) > 1
    ]
    reasons = {str(arg.value) for arg in told if isinstance(arg, ast.Constant) and arg.value}
    for _path, name, node in calls():
        for keyword in node.keywords:
            if name == "Launch" and keyword.arg == "notices":
                parts = ast.walk(keyword.value)
                reasons |= {str(part.value) for part in parts if isinstance(part, ast.Constant)}
    assert {reason for reason in reasons if not knows(reason)} == set()


def test_every_default_code_has_a_sentence() -> None:
    assert [code for code in ERROR_CLASSES.values() if not knows(code)] == []


def test_every_remedy_and_cause_has_a_sentence() -> None:
    told = {code for row in SIGNATURES for code in row.remedies}
    tables = (remedies.BY_SUB_CAUSE, remedies.BY_PHASE, remedies.BY_SERVING_PHASE)
    told |= {code for table in tables for ladder in table.values() for code in ladder}
    told |= {*remedies.SERVING, *remedies.SGLANG, *remedies.TRAINING}
    told |= {code for xid in XIDS.values() for code in xid.advice}
    told |= {code for _path, name, node in calls() if name == "Remedy" and (code := literal(node))}
    assert told - set(REMEDIES) == set()
    causes = {row.cause for row in SIGNATURES} | set(remedies.BY_SUB_CAUSE)
    causes |= {f"too_big_{phase}" for phase in (*remedies.BY_PHASE, *remedies.BY_SERVING_PHASE)}
    causes |= {
        cause
        for _path, name, node in calls()
        if name == "Finding" and (cause := literal(node, "cause"))
    }
    causes |= set(detectors._DRIVER_CODES) - set(detectors._CAUSES)
    assert {cause for cause in causes if cause} - set(CAUSES) == set()
    assert set(XIDS) - set(XID_NAMES) == set()
    assert {row.family for row in SIGNATURES} - set(TITLES) == set()


@pytest.mark.parametrize("code", codes())
def test_every_sentence_can_be_filled_and_says_something(code: str) -> None:
    entry = entry_of(code)
    assert entry is not None
    templates = (*entry.headlines, *entry.body, *entry.actions)
    names = {
        name for text in templates for _t, name, _s, _c in string.Formatter().parse(text) if name
    }
    full = explain(code, {name: "X" for name in names})
    assert full.headline and "{" not in full.text
    assert full.code == code


FORBIDDEN = ("error:", "oops", "please", "failed to", "invalid")


@pytest.mark.parametrize("code", codes())
def test_the_voice_is_kept(code: str) -> None:
    entry = entry_of(code)
    assert entry is not None
    text = " ".join((*entry.headlines, *entry.body, *entry.actions)).lower()
    assert [word for word in FORBIDDEN if word in text] == []


def test_a_sentence_whose_fact_is_missing_is_left_out() -> None:
    bare = explain("host_key_changed", {"host": "vast-a"})
    assert bare.headline == "vast-a answers with a different key than before; we did not connect."
    assert "Known" not in bare.body and "Now" not in bare.body
    full = explain(
        "host_key_changed", {"host": "vast-a", "known": "SHA256:a", "fingerprint": "SHA256:b"}
    )
    assert "Known: SHA256:a. Now: SHA256:b." in full.body
    assert full.actions[-1] == "shell: `cockpit hosts trust vast-a --fingerprint SHA256:b`"


def test_the_case_decides_the_words() -> None:
    refused = explain(
        "unreachable", {"host": "a", "address": "10.0.0.1", "port": 22, "why": "refused"}
    )
    assert (
        refused.headline
        == "a (10.0.0.1:22) refused the connection: the machine is up, no ssh there."
    )
    silent = explain(
        "unreachable", {"host": "a", "address": "10.0.0.1", "port": 22, "why": "timeout"}
    )
    assert silent.headline == "No answer from a (10.0.0.1:22)."


def test_braces_of_a_host_are_not_read_as_fields() -> None:
    message = explain("link_lost", {"host": "{why.__class__}"})
    assert message.headline == "The connection to {why.__class__} is gone."


def test_an_unknown_code_becomes_a_generic_sentence_with_its_facts() -> None:
    message = explain("brand_new_thing", {"host": "a", "n": 3, "nothing": None})
    assert (message.headline, message.body) == ("Brand new thing.", "host a, n 3")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("explained_by:run:r1/gpu_oom/torch-oom-21", "it follows from: Out of GPU memory"),
        ("comes_and_goes", "it comes and goes"),
        ("I know: a test", "I know: a test"),
        ("", ""),
    ],
)
def test_states_say_why(why: str, words: str) -> None:
    assert reason_text(why) == words


def finding(line: str) -> Finding:
    scanner = Scanner()
    found = scanner.feed(f"{line}\n".encode()) + scanner.finish()
    return found[0]


def test_an_incident_is_told_with_its_numbers() -> None:
    text = describe_incident(finding(
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity "
        "of 79.10 GiB of which 812.44 MiB is free. Including non-PyTorch memory, this process has 78.29 GiB memory "
        "in use. Of the allocated memory 71.06 GiB is allocated by PyTorch, and 5.41 GiB is reserved by PyTorch but "
        "unallocated."
    ))  # fmt: skip
    assert text.title == "Out of GPU memory"
    assert (
        text.summary
        == "Out of GPU memory: tried 1.75 GiB with 812 MiB free of 79.1 GiB, GPU 3, rank 3"
    )
    assert (
        text.what
        == "The card was full: 78.3 GiB of 79.1 GiB held by this process, 1.75 GiB asked for, 812 MiB left."
    )
    assert "fragmentation" in text.cause
    assert text.remedies[0].patch == {"env.set.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


@pytest.mark.parametrize(
    "row",
    [row for row in SIGNATURES if row.role not in ("metric", "stop", "count", "tail")],
    ids=lambda row: row.id,
)
def test_every_signature_can_be_told(row: object) -> None:
    from cockpit.domain.signatures.model import Signature

    assert isinstance(row, Signature)
    text = describe_incident(finding(row.examples[0]))
    assert text.title and text.summary.startswith(text.title) and text.cause
    assert all(remedy.text and "{" not in remedy.text for remedy in text.remedies)


@pytest.mark.parametrize(
    ("mib", "text"),
    [(0.5, "0.5 MiB"), (812.44, "812 MiB"), (1792, "1.75 GiB"), (80998.4, "79.1 GiB")],
)
def test_sizes_are_written_for_people(mib: float, text: str) -> None:
    assert size_text(mib) == text


def test_chinese_is_a_catalogue_and_json_stays_english() -> None:
    use_language("zh_CN")
    try:
        assert explain("empty_this_machine").headline == "本机没有 NVIDIA 驱动，所以不显示。"
        told = explain("host_key_changed", {"host": "vast-a", "known": "SHA256:a"})
        assert told.headline == "vast-a 的主机密钥变了，已停止连接。"
        assert "记录：SHA256:a。" in told.body
        with english():
            assert explain("empty_runs").headline == "Nothing was started from here yet."
        assert explain("empty_runs").headline == "还没有从这里启动过任务。"
    finally:
        use_language("en")


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_shell_is_told_of_no_key_of_the_screen(language: str) -> None:
    use_language(language)
    try:
        facts = {"host": "a", "key_type": "ED25519", "fingerprint": "SHA256:x"}
        lines = error_lines("host_key_unknown", facts)
    finally:
        use_language("en")
    assert not any("`t`" in line for line in lines)
    assert "cockpit hosts trust a --fingerprint SHA256:x" in lines[-1]
