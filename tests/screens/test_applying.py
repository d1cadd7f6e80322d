"""`a`: what is changed, what follows, and why nothing is where nothing can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.incidents import Remedy
from cockpit.domain.models import HostName
from cockpit.engine.incidents_api import Mend
from cockpit.errors import ProfileError
from tests.screens.fake_engine import FakeEngine, run_view
from tests.screens.run_scenes import OOM, busy_engine, cockpit, plan_of, workers_done

KEY = "r-7f3a:gpu_oom"
TO_OOM = ("2", "down", "enter")
PATCH = {"accelerate.args": ["--per_device_train_batch_size", "4"]}
MEND = Mend(
    Remedy("smaller_batch", {"batch": 4, "batch_before": 8}, PATCH),
    overrides=('accelerate.args=["--per_device_train_batch_size", "4"]',),
    before={"accelerate": {"args": ["--per_device_train_batch_size", "8"]}},
    hosts=(HostName("vast-a"),),
    gpus=(0,),
    again=OOM,
)


def engine_with(mend: Mend) -> FakeEngine:
    engine = busy_engine()
    engine.mends[KEY] = mend
    engine.plans[OOM] = plan_of(engine.profile_entries[0])
    return engine


async def test_the_change_is_shown_against_the_profile_as_the_run_had_it() -> None:
    engine = engine_with(MEND)
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        await pilot.pause()
        assert '- accelerate.args = ["--per_device_train_batch_size", "8"]' in app.text
        assert '+ accelerate.args = ["--per_device_train_batch_size", "4"]' in app.text
        assert "edited since" not in app.text
        await pilot.press("tab", "enter")
        await workers_done(app)
        asked = (OOM, MEND.hosts, MEND.gpus, MEND.overrides)
        assert engine.asked("plan_again") == [asked]
        state = engine.incidents.get(KEY)
        assert state is not None and state.state == "applied"


async def test_escape_changes_nothing() -> None:
    engine = engine_with(MEND)
    async with cockpit(engine, *TO_OOM, "a", "escape") as (app, _pilot):
        await workers_done(app)
        assert engine.asked("launch") == []
        state = engine.incidents.get(KEY)
        assert state is not None and state.state == "open"


async def test_an_edited_profile_is_said_before_anything_starts() -> None:
    async with cockpit(engine_with(replace(MEND, note="edited")), *TO_OOM, "a") as (app, pilot):
        await pilot.pause()
        assert "was edited since" in app.text


@pytest.mark.parametrize(
    ("note", "words"),
    [("gone", "has changed since"), ("nothing", "No remedy of this incident")],
)
async def test_without_a_change_that_fits_it_says_why(note: str, words: str) -> None:
    engine = engine_with(Mend(None, note=note))  # type: ignore[arg-type]
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        assert any(words in one for one in app.said)
        assert engine.asked("launch") == []


async def test_a_run_whose_host_is_away_is_neither_stopped_nor_started() -> None:
    engine = engine_with(MEND)
    engine.put_run(run_view(OOM, state="unreachable"))
    engine.set_link("vast-a", "unreachable", "link_lost")
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        assert "vast-a does not answer" in app.text
        assert engine.asked("stop") == [] and engine.asked("launch") == []


async def test_a_profile_that_is_none_any_more_is_explained() -> None:
    engine = busy_engine()
    engine.mends[KEY] = ProfileError("profile_missing", path="qwen-lora.toml")
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        assert "was not relaunched" in app.text


async def test_an_applied_incident_says_what_it_was_relaunched_as() -> None:
    engine = engine_with(MEND)
    engine.incidents.set_state(KEY, "applied", "relaunched_as:r-new")
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        assert any("relaunched as r-new" in one for one in app.said)
