"""Incidents beyond the session, through the real runs: earlier ones, lines in context, mutes that outlive us."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.config.paths import Home
from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import HOUR_S, mute_for
from cockpit.engine.engine import Engine
from cockpit.engine.history import History
from cockpit.engine.mirror import mirror_path

HOST, RUN = HostName("a100"), RunId("train-0000001abc")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def incident(**changes: object) -> Incident:
    one = Incident(
        key=f"run:{RUN}/gpu_oom/torch", finding=Finding("gpu_oom", "torch", "fatal", offset=8),
        opened_s=100.0, last_s=100.0, host=HOST, run=RUN,
    )  # fmt: skip
    return replace(one, **changes)  # type: ignore[arg-type]


def copied(home: Home, text: bytes) -> None:
    path = mirror_path(home, HOST, RUN)
    path.parent.mkdir(parents=True)
    path.write_bytes(text)


async def test_what_was_seen_is_there_in_the_next_session(home: Home) -> None:
    first = Engine(home, {})
    await first.start()
    first._desk.report(Finding("gpu_oom", "torch", "fatal", offset=8), host=HOST, run=RUN)
    await first.close()
    second = Engine(home, {})
    await second.start()
    found = await second.earlier_incidents()
    assert [(one.family, one.run, one.steps[0].what) for one in found] == [("gpu_oom", RUN, "open")]
    await second.close()


async def test_lines_come_from_the_copy_with_secrets_covered(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(home, b"before\nmarked s3cr3t-token\nafter\n")
    (mirror_path(home, HOST, RUN).parent / "secrets.json").write_text('{"names": ["HF_TOKEN"]}')
    monkeypatch.setenv("HF_TOKEN", "s3cr3t-token")
    engine = Engine(home, {})
    lines = await engine.log_context(incident(), 8)
    assert [line.text for line in lines] == ["before", "marked ************", "after"]
    assert await engine.masked_text(incident(), "x s3cr3t-token") == "x ************"
    await engine.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"run": None}, {"host": None}, {"run": RunId("../../x")}, {"host": HostName("../..")},
        {"host": HostName("..")}, {"host": HostName("a/b")}, {"run": RunId("")}, {"host": HostName("other")},
    ],
    ids=str,
)  # fmt: skip
async def test_names_that_are_none_lead_nowhere(home: Home, changes: dict[str, object]) -> None:
    copied(home, b"private\n" * 4)
    engine = Engine(home, {})
    assert list(await engine.log_context(incident(**changes), 8)) == []
    assert await engine.masked_text(incident(**changes), "text") == "text"
    await engine.close()


async def test_a_mute_holds_in_the_next_session_and_for_its_neighbour(home: Home) -> None:
    first = Engine(home, {})
    await first.start()
    first._desk.report(Finding("gpu_oom", "torch", "fatal"), host=HOST, run=RUN)
    rule = mute_for(first.incidents.all()[0], "everywhere", first.wall_s(), HOUR_S, "known")
    assert await first.mute(rule) and first.incidents.all()[0].mute == rule.id

    second = Engine(home, {})
    await second.start()
    await second.refresh_mutes()
    assert list(second.mutes) == [rule]
    assert await second.unmute(rule.id)
    await first.refresh_mutes()
    assert list(first.mutes) == [] and not first.incidents.all()[0].mute
    await first.close()
    await second.close()


async def test_a_mute_that_cannot_be_written_holds_for_the_session(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_arguments: object) -> bool:
        return False

    monkeypatch.setattr(History, "keep_mute", full)
    engine = Engine(home, {})
    await engine.start()
    rule = mute_for(incident(), "host", engine.wall_s(), None)
    assert not await engine.mute(rule)
    await engine.refresh_mutes()
    assert list(engine.mutes) == [rule]
    assert await engine.unmute(rule.id) and list(engine.mutes) == []
    await engine.close()


async def test_asking_for_mutes_makes_no_database(home: Home) -> None:
    history = History(home.db, Engine(home, {})._clock, lambda code, facts: None)
    assert list(await history.mutes() or ()) == []
    assert not home.db.exists()
