"""Remedies of runs that really ran: fitted to their profiles, kept over sessions, applied with earlier changes."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.config.profile import load_profile
from cockpit.domain.incident_book import Place
from cockpit.domain.incidents import Finding, Incident, Remedy
from cockpit.engine.launching import overrides_of
from tests.builders.runs import HERE, Bench, make_bench, until
from tests.remote.supervised import of_home

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 23.64"
    " GiB of which 812.00 MiB is free. Including non-PyTorch memory, this process has 22.80 GiB memory in use. Of"
    " the allocated memory 21.90 GiB is allocated by PyTorch, and 210.00 MiB is reserved by PyTorch but unallocated."
)
HALVED = {
    "command.args": [
        "--per_device_train_batch_size", "4", "--lr", "it's 1", "--gradient_accumulation_steps", "2",
    ]
}  # fmt: skip


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = make_bench(tmp_path)
    bench.parts.bus.subscribe(bench.runs.heard)
    bench.connect()
    yield bench
    await bench.runs.close()
    with suppress(AssertionError):
        await until(lambda: not of_home(bench.host_home), "all is over", 10.0)
    left = of_home(bench.host_home)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "the test left processes"


def write(path: Path, batch: int = 8) -> str:
    """A profile whose run says what it was given, and is out of memory."""
    path.write_text(
        "kind = 'command'\n[command]\n"
        f"script = '''echo \"given: $*\"; echo '{OOM}' >&2; exit 1'''\n"
        f'args = ["--per_device_train_batch_size", "{batch}", "--lr", "it\'s 1"]\n'
    )
    return str(path)


async def failed(bench: Bench, *overrides: str) -> Incident:
    plan = await bench.runs.plan(write(bench.folder / "fine.toml"), overrides=overrides)
    view = bench.runs.book.get(await bench.runs.launch(plan))
    assert view is not None
    await bench.ended(view)
    return await oom_of(bench)


async def oom_of(bench: Bench) -> Incident:
    def found() -> Incident | None:
        known = bench.parts.incidents.all()
        return next((one for one in known if one.family == "gpu_oom"), None)

    await until(lambda: found() is not None, "its incident")
    incident = found()
    assert incident is not None
    return incident


async def given_of(bench: Bench, incident: Incident) -> str:
    """What a run that this incident's remedy is applied to is given."""
    mend = await bench.runs.mend(incident)
    assert mend.again is not None
    plan = await bench.runs.plan_again(
        mend.again, hosts=mend.hosts, gpus=mend.gpus, overrides=mend.overrides
    )
    view = bench.runs.book.get(await bench.runs.launch(plan))
    assert view is not None
    await bench.ended(view)
    log = bench.runs.log(view.run)
    await until(lambda: len(log) > 0, "its log")
    text = log.line(0).text
    log.close()
    return text


async def test_a_remedy_is_the_change_of_the_runs_own_profile_and_keeps_earlier_ones(
    bench: Bench,
) -> None:
    incident = await failed(bench, "stop.int=7s", 'env.set={A = "b"}')
    assert incident.finding.remedies[0].patch == HALVED
    mend = await bench.runs.mend(incident)
    assert (mend.hosts, mend.note, mend.remedy) == ((HERE,), "", incident.finding.remedies[0])
    assert list(mend.overrides) == list(overrides_of(incident))
    assert mend.before["stop"] == {"int": "7s"}
    assert mend.again is not None
    plan = await bench.runs.plan_again(mend.again, overrides=mend.overrides)
    assert plan.profile.stop.int_s == 7.0 and plan.profile.env.variables == {"A": "b"}
    assert await given_of(bench, incident) == (
        "given: --per_device_train_batch_size 4 --lr it's 1 --gradient_accumulation_steps 2"
    )


async def test_what_was_applied_is_what_the_next_remedy_starts_from(bench: Bench) -> None:
    first = await failed(bench)
    await given_of(bench, first)
    await until(lambda: len(bench.parts.incidents.all()) == 2, "the second incident")
    (second,) = (one for one in bench.parts.incidents.all() if one.key != first.key)
    assert second.finding.remedies[0].facts == {
        "batch": 2, "batch_before": 4, "steps": 4, "steps_before": 2,
    }  # fmt: skip


async def test_a_profile_that_was_edited_since_is_applied_as_it_was_and_that_is_said(
    bench: Bench,
) -> None:
    incident = await failed(bench)
    write(bench.folder / "fine.toml", batch=64)
    mend = await bench.runs.mend(incident)
    assert mend.note == "edited"
    assert mend.remedy is not None and mend.remedy.patch == HALVED
    (bench.folder / "fine.toml").unlink()
    assert (await bench.runs.mend(incident)).note == ""


async def test_a_run_of_an_earlier_session_is_mended_in_the_next(bench: Bench) -> None:
    before = await failed(bench)
    bench.cut()
    await bench.runs.close()
    again = make_bench(bench.folder)
    again.parts.bus.subscribe(again.runs.heard)
    await again.runs.past.load()
    again.connect()
    await until(lambda: again.runs.is_up(HERE), "connected")
    assert before.run is not None
    (remembered,) = await again.runs.past_incidents(before.run)
    mend = await again.runs.mend(remembered)
    assert mend.remedy is not None and mend.remedy.patch == HALVED and mend.again == before.run
    await again.runs.close()


async def test_a_change_that_the_schema_does_not_take_is_not_offered(bench: Bench) -> None:
    path = bench.folder / "odd.toml"
    path.write_text(Path(write(path)).read_text() + "[gpus]\nindex = [0]\n")
    profile = load_profile(path, bench.parts.home)
    mender = bench.runs._life.mender
    bad = Finding("port", "x", "fatal", remedies=(Remedy("x", {}, {"gpus.count": 2}),))
    good = Finding("port", "x", "fatal", remedies=(Remedy("x", {}, {"gpus.share": True}),))
    assert mender._fitted(bad, profile, Place()).remedies[0].patch is None
    assert mender._fitted(good, profile, Place()).remedies[0].patch == {"gpus.share": True}


async def test_arguments_that_hold_a_secret_are_no_change_that_is_shown_or_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "it's 1")
    incident = await failed(bench, 'env.secrets=["API_TOKEN"]')
    assert incident.finding.remedies[0].code == "smaller_batch"
    assert incident.finding.remedies[0].patch is None
