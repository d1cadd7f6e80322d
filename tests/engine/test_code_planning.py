"""What a plan says of code and results before anything is sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.code_files import CWD_NOTE
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.engine.api import Check, LaunchPlan
from cockpit.i18n.messages import explain
from tests.builders.runs import HERE, Bench, make_bench
from tests.engine.code_hosts import put


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    made.connect()
    return made


async def plan(bench: Bench, more: str, **files: str) -> LaunchPlan:
    for name, text in files.items():
        put(bench.folder / "code", name, text)
    made = await bench.runs.plan(bench.profile("p", "true", more))
    await bench.runs.close()
    for check in made.checks:
        assert "{" not in explain(check.code, check.facts).text
    return made


def checks(made: LaunchPlan) -> dict[str, Check]:
    return {check.code: check for check in made.checks}


CODE = "[code]\npath = 'code'\n"


async def test_code_is_counted_and_nothing_speaks_against_it(bench: Bench) -> None:
    made = await plan(bench, CODE, a="1", b="22")
    assert made.code is not None and (made.code.count, made.code.total_bytes) == (2, 3)
    assert checks(made)["code_listed"].facts["files"] == 2 and not made.blocked


async def test_too_much_is_a_question_and_names_the_way_on(bench: Bench) -> None:
    made = await plan(bench, CODE + "max_files = 1\n", a="1", b="22")
    check = checks(made)["code_too_large"]
    assert check.verdict == "warning" and not made.blocked
    assert made.code is not None and made.code.is_too_large
    assert check.facts["needed"] == "code.max_files=2"


async def test_what_cannot_be_listed_blocks_with_its_reason(bench: Bench) -> None:
    made = await plan(bench, CODE)
    assert made.blocked and made.code is None
    assert checks(made)["code_missing"].verdict == "blocked"


async def test_links_that_lead_out_are_named(bench: Bench) -> None:
    (bench.folder / "code").mkdir()
    (bench.folder / "code" / "data").symlink_to("/data")
    made = await plan(bench, CODE, a="1")
    assert checks(made)["code_links_left_out"].facts["names"] == "data"


async def test_results_outside_the_folder_are_refused(bench: Bench) -> None:
    made = await plan(bench, "[fetch]\nglobs = ['out/*', '/etc/*', '../x']\n")
    assert made.blocked
    assert checks(made)["fetch_glob_outside"].facts["globs"] == "/etc/*, ../x"


@pytest.mark.parametrize(
    ("cwd", "state", "told"),
    [("~", "running", 1), ("~/x", "running", 0), ("~", "exited", 0)],
    ids=["same", "other", "ended"],
)
async def test_a_run_in_the_same_folder_is_named(
    bench: Bench, cwd: str, state: str, told: int
) -> None:
    view = RunView(RunId("other-1"), "other", "command", HERE, "running")
    bench.runs.book.record(replace(view, state=state, notes=((CWD_NOTE, cwd),)))  # type: ignore[arg-type]
    made = await plan(bench, CODE, a="1")
    assert len([check for check in made.checks if check.code == "code_shared_folder"]) == told
