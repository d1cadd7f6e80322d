from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.cli import main
from cockpit.i18n import use_language

OOM = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of "
    "79.10 GiB of which 812.44 MiB is free. Including non-PyTorch memory, this process has 78.29 GiB memory in use. "
    "Of the allocated memory 71.06 GiB is allocated by PyTorch, and 5.41 GiB is reserved by PyTorch but unallocated."
)
KEYS = [
    "line", "offset", "family", "signature", "severity", "summary", "facts", "cause", "remedies", "rank", "host",
    "gpu", "recovered",
]  # fmt: skip


def write(folder: Path, *lines: str) -> str:
    path = folder / "run.log"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(path)


def test_json_has_the_shape_of_incidents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path, "größe", OOM)
    assert main(["scan", "--json", log]) == 0
    [line] = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert list(told) == KEYS
    assert (told["line"], told["offset"]) == (2, len("größe\n".encode()))
    assert (told["family"], told["signature"], told["severity"]) == (
        "gpu_oom",
        "torch-oom-21",
        "fatal",
    )
    assert (told["rank"], told["host"], told["gpu"], told["recovered"]) == (3, None, 3, False)
    assert told["facts"]["tried_mib"] == 1792
    assert [sorted(remedy) for remedy in told["remedies"]] == [["patch", "text"]] * 3
    assert told["remedies"][0]["patch"] == {
        "env.set.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"
    }
    assert told["remedies"][1]["patch"] is None


def test_json_is_english_in_every_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path, OOM)
    main(["scan", "--json", log])
    first = capsys.readouterr().out
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    try:
        main(["scan", "--json", log])
        assert capsys.readouterr().out == first
        main(["scan", log])
        assert "显存溢出（OOM）" in capsys.readouterr().out
    finally:
        use_language("en")


@pytest.mark.parametrize(
    ("lines", "wanted", "code"),
    [
        ([], "notice", 0),
        (["all is well"], "notice", 0),
        ([OOM], None, 0),
        ([OOM], "fatal", 1),
        ([OOM], "notice", 1),
        (["step 1 | loss: nan"], "fatal", 0),
        (["step 1 | loss: nan"], "warning", 1),
        ([OOM, "Batch size 8 failed, trying batch size 4"], "warning", 0),
        ([OOM, "Batch size 8 failed, trying batch size 4"], "notice", 1),
    ],
)
def test_fail_on_decides_the_exit_code(
    tmp_path: Path, lines: list[str], wanted: str | None, code: int
) -> None:
    options = [] if wanted is None else ["--fail-on", wanted]
    assert main(["scan", write(tmp_path, *lines), *options]) == code


def test_stdout_is_data_and_talk_is_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", write(tmp_path, "all is well")]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Nothing found.\n")
    assert main(["scan", "--json", write(tmp_path, "all is well")]) == 0
    assert capsys.readouterr() == ("", "")


def test_text_names_the_line_the_cause_and_what_to_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["scan", write(tmp_path, "x", OOM)])
    out = capsys.readouterr().out
    assert out.startswith(
        "2: fatal gpu_oom Out of GPU memory: tried 1.75 GiB with 812 MiB free of 79.1 GiB"
    )
    assert "--set env.set.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in out


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["scan", "no-such.log"], 74, "io"),
        (["scan", "."], 65, "bad_data"),
        (["scan"], 64, "scan_no_file"),
        (["scan", "x", "--fail-on", "sometimes"], 64, "command_line"),
    ],
)
def test_mistakes_have_their_own_exit_codes(
    arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert word in told.err


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(OOM.encode()),
        lzma.compress(OOM.encode()),
        OOM.encode("utf-16"),
        OOM.encode("utf-16-le"),
    ],
    ids=[
        "gzip",
        "xz",
        "utf-16",
        "utf-16 without a mark",
    ],  # gzip writes the time: the name would differ from worker to worker
)
def test_what_is_no_plain_text_is_not_called_clean(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_bytes(content)
    assert main(["scan", str(tmp_path / "log")]) == 65
    said = capsys.readouterr()
    assert (said.out, "Nothing found" in said.err) == ("", False)


@pytest.mark.parametrize(("name", "code"), [("", 74), ("x" * 300, 74), ("a\0b", 74), (".", 65)])
def test_names_that_no_log_has(
    name: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", name]) == code
    assert "internal" not in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_fault_of_the_log(tmp_path: Path) -> None:
    log = write(tmp_path, OOM)
    with subprocess.Popen(
        [sys.executable, "-m", "cockpit", "scan", log],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        _out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (141, b"")


def test_a_pipe_is_read_and_hostile_bytes_stay_harmless() -> None:
    data = (
        b"\x1b]0;owned\x07\xff\xfe RuntimeError: CUDA error: out of memory \x1b[2J\r\n"
        + b"\x00" * 1000
    )
    command = [sys.executable, "-m", "cockpit", "scan", "-"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"1: fatal gpu_oom")
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("vllm-kvshort", "KV cache"),
        ("gpu_oom", "torch-oom-21"),
        ("host_key_changed", "<host> answers with a different key"),
        ("fragmentation", "in one piece"),
    ],
)
def test_help_explains_every_kind_of_code(
    code: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", code]) == 0
    assert words in capsys.readouterr().out


def test_help_suggests_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "host_key_chnged"]) == 64
    assert "host_key_changed" in capsys.readouterr().err


def test_help_without_a_code_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    listed = capsys.readouterr().out.split()
    assert {"host_key_changed", "gpu_oom", "vllm-free"} <= set(listed)
