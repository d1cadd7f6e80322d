"""The demo's script: each trouble is found by the real detectors, once, and the one that can be mended is."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from cockpit.config.hosts import load_hosts
from cockpit.demo.director import direct
from cockpit.demo.main import embedded_fleet
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName
from cockpit.engine.engine import Engine

PACE = 0.2
INTERVAL_S = 0.2
LIMIT_S = 90.0
LEAKS_ON = HostName("a100")
EXPECTED = {
    ("kv_cache", "kv_one_request", "vast-b"),
    ("gpu_oom", "fragmentation", "vast-a"),
    ("leak", "leak_gpu", "a100"),
    ("disk", "disk_full", "a6000"),
    ("hang", "hang_spinning", "h100"),
    ("starved", "starved_workers", "a6000"),
    ("hardware", "memory_hardware", "vast-b"),
}
"""Family, cause and host of every trouble of the script."""


@pytest_asyncio.fixture
async def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Engine]:
    """The whole demo at a fifth of its length, without a screen."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with embedded_fleet(pace=PACE) as fleet:
        engine = Engine(fleet.home, load_hosts(fleet.home), interval_s=INTERVAL_S)
        await engine.start()
        engine.focus(LEAKS_ON)
        try:
            await direct(engine, PACE)
            yield engine
        finally:
            await engine.close()


async def until(condition: Callable[[], object]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.1)

    await asyncio.wait_for(wait(), LIMIT_S)


def told(engine: Engine) -> list[Incident]:
    """What a person is shown: what another explains, or what was found to be nothing, is not."""
    return [one for one in engine.incidents.all() if one.state not in ("closed", "withdrawn")]


def what(incident: Incident) -> tuple[str, str, str]:
    return incident.family, incident.finding.cause, str(incident.host)


async def test_each_trouble_is_one_incident_with_its_cause_and_one_is_mended(
    engine: Engine,
) -> None:
    await until(lambda: {what(one) for one in told(engine)} >= EXPECTED)
    found = [what(one) for one in told(engine)]
    assert sorted(found) == sorted(EXPECTED)

    (short,) = (one for one in told(engine) if one.family == "kv_cache")
    mend = await engine.mend(short)
    assert mend.remedy is not None and mend.again is not None and mend.again == short.run
    assert mend.remedy.patch == {"vllm.max_model_len": 13520}
    plan = await engine.plan_again(
        mend.again, hosts=mend.hosts, gpus=mend.gpus, overrides=mend.overrides
    )
    assert "13520" in plan.argv
    run = await engine.launch(plan)
    await until(lambda: (view := engine.runs.get(run)) is not None and view.state == "ready")


def test_the_script_has_a_run_for_every_trouble_on_hosts_that_are_there() -> None:
    from cockpit.demo.director import SCRIPT
    from cockpit.demo.hosts import FLEET
    from cockpit.demo.main import PROFILES

    assert {start.host for start in SCRIPT} == {HostName(host.name) for host in FLEET}
    assert {start.profile for start in SCRIPT} == {path.stem for path in PROFILES.glob("*.toml")}
