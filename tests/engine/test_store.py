"""cockpit.db: what is kept, who wins, and what a broken, strange, read-only or full file costs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.domain.runs import Progress, RunState, RunView
from cockpit.engine.store import KEPT_S, PROOF_KEPT_S, Database
from cockpit.engine.store_schema import APPLICATION_ID, MIGRATIONS, VERSION
from cockpit.errors import StorageError

RUN = RunId("qwen-lora-000001abc")


def past(
    state: RunState = "running", *, seen_s: float = 100.0, run: RunId = RUN, **changes: object
) -> PastRun:
    view = RunView(
        run=run,
        profile="qwen-lora",
        kind="command",
        host=HostName("h"),
        state=state,
        gpus=(0, 3),
        started_s=50.0,
        progress=Progress(step=7, loss=0.5),
        command=("python", "train.py"),
        tags=("sft",),
        notes=(("secrets", "HF_TOKEN"),),
    )
    view = replace(view, **changes)  # type: ignore[arg-type]
    return PastRun(view, seen_s, 3.6, "USD")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cockpit.db"


def test_a_run_comes_back_as_it_was_with_its_cost(path: Path) -> None:
    one = past("exited", code=3, by="job", reason="exited", ended_s=1050.0, leftover_pids=(9,))
    Database(path).save_runs([one])
    database = Database(path)
    assert database.newest() == [one]
    assert database.run(RunId("other")) is None
    cost = sqlite3.connect(path).execute("SELECT cost FROM runs").fetchone()[0]
    assert cost == pytest.approx(1.0)


def test_only_the_owner_may_read_it(path: Path) -> None:
    database = Database(path)
    database.save_runs([past()])
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {"cockpit.db": 0o600, "cockpit.db-wal": 0o600, "cockpit.db-shm": 0o600}


def test_an_end_is_never_taken_back_and_what_was_learnt_stays(path: Path) -> None:
    database = Database(path)
    database.save_runs([past("exited", seen_s=200.0, code=0, ended_s=150.0)])
    database.save_runs([past("running", seen_s=300.0)])
    database.save_runs([past("lost", seen_s=400.0)])
    found = database.run(RUN)
    assert found is not None and (found.view.state, found.view.code) == ("exited", 0)
    other = RunId("qwen-lora-000001abd")
    database.save_runs([past(run=other)])
    database.save_runs(
        [replace(past(run=other, seen_s=150.0, progress=Progress()), price_per_h=9.9)]
    )
    kept = database.run(other)
    assert kept is not None and kept.view.progress.step == 7 and kept.price_per_h == 3.6
    database.save_runs([past("stopping", run=other, seen_s=120.0)])
    late = database.run(other)
    assert late is not None and late.view.state == "running"


def test_a_remark_and_an_origin_outlive_what_hosts_say(path: Path) -> None:
    database = Database(path)
    origin = Origin("name = 'x'\n", "x", "/p/x.toml", "/p", ("gpus.count=2",), ("h",), (0, 1), "ab")
    database.save_runs([past()])
    database.save_origin(RUN, origin)
    assert database.save_remark(RUN, "the good one")
    database.save_runs([past("exited", seen_s=200.0)])
    found = database.run(RUN)
    assert found is not None and found.view.remark == "the good one" and found.has_origin
    assert database.origin(RUN) == origin
    assert not database.save_remark(RunId("nobody"), "x")


def test_an_incident_of_a_run_is_one_row_and_a_host_has_one_each_time(path: Path) -> None:
    database = Database(path)
    finding = Finding("gpu_oom", "torch", "fatal", {"tried_mib": 12}, line=3, offset=9, text="OOM")
    of_run = Incident("run:x/gpu_oom/torch", finding, 10.0, 10.0, run=RUN, host=HostName("h"))
    database.save_incidents([of_run, replace(of_run, opened_s=11.0, last_s=12.0, state="closed")])
    assert [(one.state, one.finding) for one in database.incidents(RUN)] == [("closed", finding)]
    of_host = replace(of_run, run=None, key="host:h/gpu_oom/torch")
    database.save_incidents([of_host, replace(of_host, opened_s=99.0, last_s=99.0)])
    count = sqlite3.connect(path).execute("SELECT count(*) FROM incidents WHERE run IS NULL")
    assert count.fetchone()[0] == 2


def test_one_of_many_processes_may_act(path: Path) -> None:
    first, second = Database(path), Database(path)
    assert [first.claim("end", 10.0), second.claim("end", 10.0), first.claim("end", 1e9)] == [
        True, False, False,
    ]  # fmt: skip
    assert [second.claim("hook", at_s, 60.0) for at_s in (10.0, 50.0, 71.0)] == [True, False, True]


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, '.')\n"
        "from pathlib import Path\n"
        "from tests.engine.test_store import past\n"
        "from cockpit.engine.store import Database\n"
        "from cockpit.domain.models import RunId\n"
        "who, path = sys.argv[1], Path(sys.argv[2])\n"
        "for n in range(20):\n"
        "    database = Database(path)\n"
        "    database.save_runs([past(run=RunId(f'r{who}-{n}'))])\n"
        "    database.close()\n"
    )
    command = [sys.executable, "-c", script]
    writers = [subprocess.Popen([*command, str(who), str(path)]) for who in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(Database(path).newest()) == 60
    assert not list(path.parent.glob("*broken*"))


@pytest.mark.parametrize(
    "content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 4000]
)
def test_a_broken_file_is_set_aside_and_begun_anew(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    database = Database(path)
    assert database.set_aside is not None and database.set_aside.read_bytes() == content
    database.save_runs([past()])
    assert len(database.newest()) == 1
    again = Database(path)
    assert again.set_aside is None and len(again.newest()) == 1


def test_the_database_of_another_program_is_not_written_to(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE runs (theirs TEXT)")
    other.close()
    database = Database(path)
    assert database.set_aside is not None
    theirs = sqlite3.connect(database.set_aside).execute("SELECT sql FROM sqlite_master")
    assert theirs.fetchone()[0] == "CREATE TABLE runs (theirs TEXT)"


def test_a_later_attempt_of_a_run_is_alive_again(path: Path) -> None:
    database = Database(path)
    database.save_runs([past("lost", seen_s=200.0, ended_s=150.0)])
    database.save_runs([past("running", seen_s=300.0, attempt=2)])
    found = database.run(RUN)
    assert found is not None and (found.view.state, found.view.attempt) == ("running", 2)


def test_the_command_of_then_is_kept_whatever_is_said_later(path: Path) -> None:
    database = Database(path)
    database.save_runs([past(command=())])
    database.save_runs([past(command=("python", "****"), seen_s=110.0)])
    database.save_runs([past(command=("python", "secret"), seen_s=120.0)])
    found = database.run(RUN)
    assert found is not None and found.view.command == ("python", "****")


def test_a_file_of_the_first_layout_is_brought_up_to_date_with_all_that_is_in_it(
    path: Path,
) -> None:
    old = sqlite3.connect(path, isolation_level=None)
    for statement in MIGRATIONS[0]:
        old.execute(statement)
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    old.execute("PRAGMA user_version = 1")
    old.execute(
        "INSERT INTO runs (run, host, profile, kind, state, seen_s, gpus, leftover_pids, command, tags, notes)"
        " VALUES ('r-1', 'h', 'p', 'command', 'exited', 5, '[]', '[]', '[]', '[]', '[]')"
    )
    old.close()
    database = Database(path)
    assert database.set_aside is None
    (kept,) = database.newest()
    assert (kept.run, kept.view.state, kept.view.attempt) == ("r-1", "exited", 1)
    version = sqlite3.connect(path).execute("PRAGMA user_version").fetchone()[0]
    assert version == VERSION


def test_a_newer_cockpit_s_file_is_left_alone(path: Path) -> None:
    Database(path).close()
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    with pytest.raises(StorageError) as caught:
        Database(path)
    assert caught.value.code == "history_newer"
    assert not list(path.parent.glob("*broken*"))


@pytest.fixture
def somebody_else() -> Iterator[Path]:
    """A folder of ours that the process may read and not write: root gives its rights up for the test."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    if os.getuid() == 0:
        os.seteuid(0)
    folder.chmod(0o700)
    shutil.rmtree(folder)


def test_a_file_that_may_not_be_written_can_still_be_read(somebody_else: Path) -> None:
    path = somebody_else / "cockpit.db"
    database = Database(path)
    database.save_runs([past()])
    database.close()
    path.chmod(0o444)
    somebody_else.chmod(0o555)
    if os.getuid() == 0:
        os.seteuid(65534)
    found = Database(path)
    assert len(found.newest()) == 1 and found.is_read_only
    with pytest.raises(StorageError) as caught:
        found.save_runs([past()])
    assert caught.value.code == "history_unwritable"
    assert "denied" in str(caught.value.facts["why"]) or "readonly" in str(
        caught.value.facts["why"]
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
@pytest.mark.parametrize("has_rows", [True, False], ids=["rows", "empty"])
def test_a_disk_that_is_full_at_the_start_is_called_full(tmp_path: Path, has_rows: bool) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("may not mount here")
    try:
        if has_rows:
            database = Database(small / "cockpit.db")
            database.save_runs([past()])
            database.close()
        with suppress(OSError):
            (small / "ballast").write_bytes(b"x" * 300_000)
        with pytest.raises(StorageError) as caught:
            Database(small / "cockpit.db").save_runs([past()])
        assert "full" in str(caught.value.facts["why"]) or "space" in str(caught.value.facts["why"])
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_full_disk_is_an_error_of_ours_and_leaves_what_was_there(path: Path) -> None:
    database = Database(path)
    database.save_runs([past()])
    pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
    database._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError) as caught:
        database.save_runs([past(run=RunId(f"r-{n}"), command=("x" * 4000,)) for n in range(50)])
    assert caught.value.code == "history_unwritable" and "full" in str(caught.value.facts["why"])
    assert len(Database(path).newest()) == 1


def test_what_is_long_over_is_forgotten_unless_somebody_wrote_to_it(path: Path) -> None:
    database = Database(path)
    names = {"old": "exited", "kept": "exited", "alive": "running"}
    for name, state in names.items():
        database.save_runs([past(state, run=RunId(name))])  # type: ignore[arg-type]
    database.save_remark(RunId("kept"), "important")
    database.prune(KEPT_S + 1000.0)
    assert sorted(one.run for one in database.newest()) == ["alive", "kept"]


def test_a_host_whose_clock_stands_in_the_past_loses_no_run(path: Path) -> None:
    """Its runs begin in 1970; when they were seen is told by the clock here."""
    database = Database(path)
    database.save_runs([past("exited", seen_s=2 * KEPT_S, claimed_s=60.0)])
    database.prune(2 * KEPT_S + 1000.0)
    assert len(database.newest()) == 1


def test_rows_that_a_stranger_changed_are_harmless(path: Path) -> None:
    database = Database(path)
    database.save_runs([past(run=RunId("good")), past(run=RunId("bad"))])
    edit = sqlite3.connect(path)
    edit.execute(
        "UPDATE runs SET gpus = '{', command = '[1, \"a\\u001b[31m\"]', code = 'x' WHERE run = 'good'"
    )
    edit.execute("UPDATE runs SET run = '../../x' WHERE run = 'bad'")
    edit.commit()
    (found,) = Database(path).newest()
    assert (found.view.gpus, found.view.code) == ((), None)
    assert "\x1b" not in "".join(found.view.command)


def full_incident() -> Incident:
    """With all that an incident can have."""
    from cockpit.domain.incident_proof import Curve, Holder, Proof, Step
    from cockpit.domain.incidents import Evidence, Remedy

    remedy = Remedy("batch_smaller", {"from": 8, "to": 4}, {"command.argv": ["a", 4]})
    finding = Finding(
        "gpu_oom", "torch", "fatal", {"tried_mib": 1792, "share": 0.5}, 7, 99, "CUDA out of memory",
        cause="activations", remedies=(remedy, Remedy("offload")), rank=3,
    )  # fmt: skip
    curve = Curve("gpu", 5.0, 100.0, (None, 1.0, 2.5), 24_000.0, "card", 1)
    proof = Proof(curve, (Holder(41, "python", "root", 900, "r"), Holder(42)), {"driver": "550"})
    return Incident(
        key=f"run:{RUN}/gpu_oom/torch", finding=finding, opened_s=90.0, last_s=95.0, count=2,
        host=HostName("h"), gpu=1, run=RUN, profile="qwen-lora",
        evidence=(Evidence(91.0, "log", "a line", 99, 7), Evidence(None, "nvml", "b")),
        state="seen", steps=(Step(90.0, "open"), Step(94.0, "seen", "looked")), proof=proof,
        recording="h-1.rec",
    )  # fmt: skip


def test_an_incident_comes_back_with_its_proof_and_what_became_of_it(path: Path) -> None:
    one = full_incident()
    Database(path).save_incidents([one])
    assert Database(path).newest_incidents(10) == [one]
    assert Database(path).incidents(RUN) == [one]


def test_a_cockpit_that_saw_nothing_takes_no_proof_away(path: Path) -> None:
    one = full_incident()
    database = Database(path)
    database.save_incidents([one])
    database.save_incidents([replace(one, proof=None, count=3)])
    found = database.newest_incidents(1)[0]
    assert found.count == 3 and found.proof == one.proof


@pytest.mark.parametrize(
    "detail",
    [
        "null", "[]", "7", "{", '{"evidence": 3, "steps": {}, "remedies": [[1]]}',
        '{"evidence": [[1, 2, 3, 4, 5]], "remedies": [[null, [], 9]], "steps": [["x", 1, 2]]}',
        '{"curve": {"kind": "gpu", "step_s": 5, "values": [1, "x", NaN]}}',
        '{"company": [1, {"pid": "x"}], "machine": {"a": 1}, "curve": []}',
        '{"rank": ' + "9" * 400 + '}',
    ],
    ids=lambda detail: detail[:24],
)  # fmt: skip
def test_a_strange_detail_is_read_as_what_can_be_read(path: Path, detail: str) -> None:
    Database(path).save_incidents([full_incident()])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE incidents SET detail = ?, proof = ?", (detail, detail))
    connection.commit()
    found = Database(path).newest_incidents(5)
    assert [one.family for one in found] == ["gpu_oom"]


def test_mutes_are_kept_replaced_taken_back_and_forgotten_when_over(path: Path) -> None:
    from cockpit.domain.mutes import mute_for

    one = full_incident()
    database = Database(path)
    hour = mute_for(one, "host", 100.0, 3600.0, "known")
    ever = mute_for(one, "everywhere", 101.0, None)
    assert database.save_mute(hour) and database.save_mute(ever)
    assert Database(path).mutes() == [ever, hour]
    database.save_mute(replace(hour, until_s=9e9))
    assert {rule.until_s for rule in database.mutes()} == {9e9, None}
    assert database.drop_mute(ever.id)
    database.save_mute(hour)
    database.prune(100.0 + 3601)
    assert database.mutes() == []


def test_an_older_layout_with_incidents_is_brought_up_to_date(path: Path) -> None:
    connection = sqlite3.connect(path)
    for statements in MIGRATIONS[:2]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {2}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(
        "INSERT INTO incidents VALUES ('k', 0, 1, 2, NULL, 'h', 0, NULL, 'nan', 's', 'fatal', "
        "'open', '', 1, '{}', NULL, NULL, 'text')"
    )
    connection.commit()
    connection.close()
    found = Database(path).newest_incidents(5)
    assert [(one.key, one.proof, one.steps) for one in found] == [("k", None, ())]


def test_the_curve_of_an_old_incident_is_dropped_and_its_story_kept(path: Path) -> None:
    one = full_incident()
    database = Database(path)
    database.save_incidents([one])
    database.prune(one.last_s + PROOF_KEPT_S - 1)
    assert database.newest_incidents(1)[0].proof == one.proof
    database.prune(one.last_s + PROOF_KEPT_S + 1)
    assert database.newest_incidents(1) == [replace(one, proof=None)]


@pytest.mark.parametrize("at_s", [2.0**40, 1e14, 2.0**70, -1.0])
def test_times_that_no_calendar_has_are_none(path: Path, at_s: float) -> None:
    from cockpit.screens.incident_markdown import utc

    Database(path).save_incidents([replace(full_incident(), opened_s=at_s, last_s=at_s, run=None)])
    [found] = Database(path).newest_incidents(1)
    assert (found.opened_s, found.last_s) == (0.0, 0.0)
    assert utc(found.opened_s).startswith("1970")
