"""`cockpit scan --memory`: verdicts on tables of readings, and clear words for what is none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli import main

Curve = Callable[[float], float]


def table(
    path: Path, curve: Curve, hours: float, *, total: int | None = 24_564, head: str = ""
) -> str:
    lines = [head] if head else []
    for second in range(0, int(hours * 3600), 5):
        used = math.floor((9000 * min(1.0, second / 60) + curve(second)) / 2) * 2
        lines.append(f"{second},{used}" + ("" if total is None else f",{total}"))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def verdict(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main(["scan", "--memory", *args, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == [
        "verdict", "flagged_at_s", "slope_mib_per_h", "eta_s", "eta_low_s", "eta_high_s",
        "withdrawn_at_s", "alarms",
    ]  # fmt: skip
    return dict(answer)


def test_a_leak_with_its_rate_and_the_time_that_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "m.csv", lambda t: 600 * t / 3600, 2, head="t_s,used_mib,total_mib")
    told = verdict(capsys, path)
    assert (
        told["verdict"] == "leak" and told["flagged_at_s"] < 3600 and told["withdrawn_at_s"] is None
    )
    assert told["slope_mib_per_h"] == pytest.approx(600, rel=0.05)
    left_s = (24_564 - 9000 - 1200) / 600 * 3600
    assert told["eta_low_s"] < left_s < told["eta_high_s"]
    assert [alarm["flagged_at_s"] for alarm in told["alarms"]] == [told["flagged_at_s"]]


def test_growth_that_stopped_keeps_when_it_was_flagged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = verdict(capsys, table(tmp_path / "m.csv", lambda t: 900 * min(t, 5400) / 3600, 5))
    assert told["verdict"] in ("plateau", "flat") and told["eta_s"] is None
    assert told["flagged_at_s"] < told["withdrawn_at_s"] == told["alarms"][0]["withdrawn_at_s"]


@pytest.mark.parametrize(
    ("curve", "hours", "wanted"),
    [
        (lambda t: 4000 * (1 - math.exp(-t / 900)), 3, {"plateau", "flat"}),
        (lambda t: 0.0, 2, {"flat"}),
        (lambda t: 600 * t / 3600, 0.1, {"unknown"}),
    ],
    ids=["warm-up", "flat", "short"],
)
def test_what_is_no_leak(
    curve: Curve, hours: float, wanted: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = verdict(capsys, table(tmp_path / "m.csv", curve, hours))
    assert told["verdict"] in wanted and told["flagged_at_s"] is None and told["alarms"] == []


def test_without_totals_there_is_no_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = verdict(capsys, table(tmp_path / "m.csv", lambda t: 600 * t / 3600, 2, total=None))
    assert told["verdict"] == "leak" and told["eta_s"] is None and told["slope_mib_per_h"] > 500


def test_in_words_and_as_a_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "m.csv", lambda t: 600 * t / 3600, 2)
    assert main(["scan", "--memory", path]) == 0
    said = capsys.readouterr().out
    assert "Leak" in said and "MiB an hour" in said and "Full in about" in said
    assert main(["scan", "--memory", path, "--fail-on", "warning"]) == 1
    assert main(["scan", "--memory", path, "--fail-on", "fatal"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0,1\n1\n", "line 2"),
        ("0,1\nx,2\n", "line 2"),
        ("0,1,2,3\n", "line 1"),
        ("0,nan\n", "line 1"),
        ("0,-5\n", "line 1"),
        ("0,1e300\n", "line 1"),
        (",5,6\n", "line 1"),
        ("time,foo\n0,1\n", "line 1"),
        ("t_s,error_rate,requests\n0,1,2\n", "line 1"),
        ("0,1\n" + "9" * 5000 + "\n", "line 2"),
    ],
    ids=[
        "one number",
        "a word",
        "four",
        "nan",
        "negative",
        "huge",
        "no time",
        "other columns",
        "an error rate",
        "long",
    ],
)
def test_a_line_that_is_none_is_named(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    assert main(["scan", "--memory", str(path)]) == 65
    assert why in capsys.readouterr().err


def test_mistakes_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "--memory", str(tmp_path / "no.csv")]) == 74
    assert main(["scan", "x.log", "--memory", "m.csv"]) == 64
    capsys.readouterr()
