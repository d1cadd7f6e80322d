"""A mute made in the screens holds for `cockpit run` too: no words, no hook; the JSON says it, the log has it."""

from __future__ import annotations

from pathlib import Path

from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.mutes import Mute, mute_for
from cockpit.engine.store import Database
from tests.desk import Desk
from tests.headless.test_run_incidents import OOM, incidents

SIGNATURE = "torch-oom-21"


def mute(desk: Desk, severity: str = "fatal", until_s: float | None = None) -> Mute:
    """As another cockpit of this computer would have written it."""
    one = Incident("k", Finding("gpu_oom", SIGNATURE, severity), 1.0, 1.0)  # type: ignore[arg-type]
    rule = mute_for(one, "everywhere", 1.0, None if until_s is None else until_s - 1.0)
    desk.home.mkdir(exist_ok=True)
    database = Database(desk.home / "cockpit.db")
    assert database.save_mute(rule)
    database.close()
    return rule


def told(desk: Desk, folder: Path) -> str:
    return desk.profile(
        "oom",
        f"printf '{OOM}'; sleep 1; exit 3",
        f"[hooks]\non_incident = 'touch {folder}/hook-ran'\non_end = 'touch {folder}/end-ran'\n",
    )


async def test_a_muted_incident_is_neither_said_nor_hooked_and_the_exit_code_stays(
    desk: Desk,
) -> None:
    rule = mute(desk)
    done = await desk.call("run", told(desk, desk.folder))
    assert done.code == 3
    assert "gpu_oom" not in done.err and "why:" not in done.err
    assert (desk.folder / "end-ran").exists() and not (desk.folder / "hook-ran").exists()
    kept = Database(desk.home / "cockpit.db")
    assert [one.finding.signature for one in kept.newest_incidents(9)] == [SIGNATURE]
    assert kept.mutes() == [rule]


async def test_json_tells_it_and_that_it_is_muted(desk: Desk) -> None:
    mute(desk)
    done = await desk.call("run", told(desk, desk.folder), "--json")
    (incident,) = incidents(done, "gpu_oom")
    assert incident["muted"] is True and incident["severity"] == "fatal"


async def test_a_rule_that_is_over_or_for_something_milder_holds_nothing_back(desk: Desk) -> None:
    mute(desk, severity="warning")
    mute(desk, until_s=2.0)
    done = await desk.call("run", told(desk, desk.folder), "--json")
    (incident,) = incidents(done, "gpu_oom")
    assert "muted" not in incident
    assert (desk.folder / "hook-ran").exists()
