"""What the flight recorder keeps, and what it writes: enough to see an incident again, and no secret."""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
from pathlib import Path

import pytest

from cockpit.domain.incidents import Finding
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.engine import recorder as recorder_module
from cockpit.engine import writing_out
from cockpit.engine.events import IncidentChanged, OwnTrouble
from cockpit.engine.follow import RunFollower
from cockpit.engine.mirror import Mirror
from cockpit.engine.recording_file import make_room
from cockpit.engine.recording_read import read_recording
from cockpit.engine.replay import ReplayEngine
from tests.builders.recordings import BOX, OOM_LINE, RUN, SECRET, Flight, lines_of
from tests.builders.samples import AT_S
from tests.desk import until


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing_out, "FLUSH_S", 0.01)


def follower_of(flight: Flight, folder: Path) -> RunFollower:
    async def masker() -> Masker:
        return Masker([SECRET])

    follower = RunFollower(RUN, Mirror(folder / "log"), flight.clock, masker)
    flight.recorder.listens(BOX, follower)
    return follower


async def flown(flight: Flight, *, before: int = 30, after: int = 61) -> Path:
    """Samples, an OOM, and samples until the recording is finished."""
    flight.run()
    for second in range(before):
        flight.clock.at_s = AT_S + second
        flight.sample(used_mib=10_000 + second, command=f"python train.py --token={SECRET}")
    flight.oom()
    await until(lambda: flight.desk.all()[0].recording, "it is told where it is")
    for second in range(before, before + after):
        flight.clock.at_s = AT_S + second
        flight.sample(used_mib=200)
        await asyncio.sleep(0)
    await until(lambda: not flight.recorder.is_writing, "it is finished")
    await flight.recorder.close()
    assert flight.failures == []
    (file,) = flight.files
    return file


async def test_a_recording_holds_what_was_before_an_incident_and_what_followed(
    tmp_path: Path,
) -> None:
    file = await flown(Flight(tmp_path))
    assert file.name == "20231114T221349Z-vast-a-gpu_oom-torch-oom.cockpit.gz"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    recording = read_recording(file)
    assert recording.is_whole and recording.header.occasion is not None
    assert (recording.begin_s, recording.header.occasion.at_s) == (AT_S, AT_S + 29)
    assert recording.end_s >= AT_S + 89
    wire = [frame for frame in recording.frames if frame.kind in ("wire", "full")]
    assert {frame.at_s for frame in wire} >= {AT_S + second for second in range(89)}


async def test_no_secret_is_in_it_however_json_writes_it(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    follower = follower_of(flight, tmp_path)
    await follower.prepare()
    follower._take(0, f"token {SECRET[:8]}".encode(), live=True)
    follower._take(14, f"{SECRET[8:]} used\n".encode(), live=True)
    file = await flown(flight)
    await follower.close()
    raw = gzip.decompress(file.read_bytes())
    for form in (SECRET, SECRET.replace('"', '\\"'), SECRET[:12]):
        assert form.encode() not in raw
    assert b"--token=*****" in raw and b"token *******" in raw


async def test_what_it_plays_is_the_same_incident_at_the_same_moment(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    file = await flown(flight)
    engine = ReplayEngine(read_recording(file), flight.clock)
    heard: list[IncidentChanged] = []
    engine.subscribe(
        lambda event: heard.append(event) if isinstance(event, IncidentChanged) else None
    )
    engine.replay.seek(AT_S + 28.9)
    await engine.replay.settled()
    assert engine.incidents.all() == []
    engine.replay.to_incident()
    await engine.replay.settled()
    (shown,), (lived,) = engine.incidents.all(), flight.desk.all()
    assert (shown.key, shown.finding, shown.opened_s) == (lived.key, lived.finding, lived.opened_s)
    assert (shown.evidence, shown.steps, shown.proof) == (lived.evidence, lived.steps, lived.proof)
    assert {event.at_s for event in heard} == {AT_S + 29} and heard[0].before is None
    latest = engine.fleet.hosts[BOX].latest
    assert latest is not None and latest.gpus[0].mem_used_mib == 10_029


async def test_it_begins_with_all_that_was_true_ten_minutes_ago(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.run(started_s=AT_S - 5000)
    flight.desk.report(Finding("disk", "disk-low", "notice"), host=BOX)
    for second in range(900):
        flight.clock.at_s = AT_S + second
        flight.sample()
    flight.oom()
    await until(lambda: flight.desk.get(flight.desk.all()[0].key).recording, "written")  # type: ignore[union-attr]
    await flight.recorder.close()
    recording = read_recording(flight.files[0])
    assert AT_S + 899 - recording.begin_s == pytest.approx(600, abs=61)
    engine = ReplayEngine(recording, flight.clock)
    await engine.replay.settled()
    assert [view.run for view in engine.runs.all()] == [RUN]
    assert [one.family for one in engine.incidents.all()] == ["disk"]
    assert engine.fleet.hosts[BOX].link == "live"
    latest = engine.fleet.hosts[BOX].latest
    assert latest is not None and len(latest.gpus) == 2


async def test_logs_are_kept_from_their_end_back(tmp_path: Path) -> None:
    flight = Flight(tmp_path, [HostName(f"h{n}") for n in range(100)] + [BOX])
    for host in flight.hosts:
        flight.sample(host)
    follower = follower_of(flight, tmp_path)
    await follower.prepare()
    line, size = b"x" * 99 + b"\n", 0
    for second in range(40):
        flight.clock.at_s = AT_S + second
        follower._take(size, line * 1000, live=True)
        size += 100_000
    follower._take(size, OOM_LINE.encode() + b"\n", live=True)
    await follower.close()
    assert flight.recorder.size_bytes < 2 << 20
    flight.run()
    flight.sample()
    flight.oom()
    await until(lambda: flight.desk.all()[0].recording, "written")
    await flight.recorder.close()
    engine = ReplayEngine(read_recording(flight.files[0]), flight.clock)
    engine.replay.seek(AT_S + 400)
    await engine.replay.settled()
    log = engine.log(RUN)
    assert log.line(len(log) - 1).text == OOM_LINE
    assert log.line(len(log) - 1).offset == size and log.line(len(log) - 1).number == 40_001


@pytest.mark.parametrize("least", ["off", "fatal", "warning", "notice"])
async def test_only_what_is_bad_enough_is_recorded(tmp_path: Path, least: str) -> None:
    flight = Flight(tmp_path, least=None if least == "off" else least)
    flight.sample()
    flight.desk.report(Finding("leak", "leak", "warning"), host=BOX)
    await asyncio.sleep(0.05)
    await flight.recorder.close()
    assert len(flight.files) == (least in ("warning", "notice"))


async def test_what_stood_in_a_log_already_is_no_occasion(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.sample()
    flight.desk.report(Finding("gpu_oom", "torch-oom", "fatal"), host=BOX, is_live=False)
    await asyncio.sleep(0.05)
    await flight.recorder.close()
    assert flight.files == []


async def test_incidents_of_one_moment_share_a_recording(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.sample()
    flight.oom()
    await until(lambda: flight.files, "begun")
    flight.desk.report(Finding("hardware", "xid-79", "fatal"), host=BOX, gpu=1)
    await until(lambda: all(one.recording for one in flight.desk.all()), "both are told")
    await flight.recorder.close()
    assert len(flight.files) == 1 and len({one.recording for one in flight.desk.all()}) == 1


async def test_a_storm_writes_so_many_files_an_hour(tmp_path: Path) -> None:
    hosts = [HostName(f"h{n}") for n in range(20)]
    flight = Flight(tmp_path, hosts)
    for host in hosts:
        flight.sample(host)
        flight.desk.report(Finding("hardware", "xid-79", "fatal"), host=host)
    await until(lambda: len(flight.files) == writing_out.PER_HOUR, "all that are allowed")
    await flight.recorder.close()
    assert len(flight.files) == writing_out.PER_HOUR


async def test_a_crash_leaves_a_file_that_plays(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.sample()
    flight.oom()
    await until(lambda: flight.desk.all()[0].recording, "written")
    (part,) = flight.files
    assert part.name.endswith(".part")
    recording = read_recording(part)
    assert not recording.is_whole
    assert "incident" in [frame.kind for frame in recording.frames]
    await flight.recorder.close()


async def test_a_full_disk_costs_the_recording_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    flight = Flight(tmp_path, [BOX, HostName("other")])
    for host in flight.hosts:
        flight.sample(host)
        flight.desk.report(Finding("hardware", "xid-79", "fatal"), host=host)
    await until(lambda: not flight.recorder.is_writing, "given up")
    await flight.recorder.close()
    troubles = [one for one in flight.events if isinstance(one, OwnTrouble)]
    assert [one.code for one in troubles] == ["recording_failed"]
    assert "No space left" in str(troubles[0].facts["why"])
    flight.sample()
    assert flight.failures == []


def test_the_oldest_recordings_make_room(tmp_path: Path) -> None:
    for number in range(5):
        file = tmp_path / f"{number}.cockpit.gz"
        file.write_bytes(b"x" * 1000)
        os.utime(file, (1000.0 + number, 1000.0 + number))
    (tmp_path / "mine.txt").write_bytes(b"x" * 9000)
    (tmp_path / "dead.cockpit.gz.part").write_bytes(b"x" * 10)
    os.utime(tmp_path / "dead.cockpit.gz.part", (2000.0, 2000.0))
    make_room(tmp_path, 4100, 1000, now_s=9000.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "2.cockpit.gz", "3.cockpit.gz", "4.cockpit.gz", "dead.cockpit.gz", "mine.txt",
    ]  # fmt: skip


def test_a_host_without_python_is_recorded_whole(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.sample()
    latest = flight.fleet.hosts[BOX].latest
    assert latest is not None
    flight.recorder.took(BOX, b"H end 1", latest)
    (tape,) = (tape for host, tape in flight.recorder._tapes.items() if host == BOX)
    assert tape.snapshot().frames()[-1].endswith(b'"trees":[],"xids":[]}}')


async def test_memory_stays_within_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "TOTAL_BYTES", 128 << 10)
    flight = Flight(tmp_path, [HostName(f"h{n}") for n in range(4)])
    for second in range(200):
        flight.clock.at_s = AT_S + second
        for number, host in enumerate(flight.hosts):
            flight.sample(host, used_mib=1000 + (second * 7919 + number * 31) % 20_000)
    open_blocks = 4 * 48 * 1024
    assert flight.recorder.size_bytes < (128 << 10) + open_blocks
    flight.recorder.forget(HostName("h0"))
    assert len(flight.recorder._tapes) == 3


def test_of_what_comes_at_once_the_end_is_kept(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.sample()
    tape = flight.recorder._tapes[BOX]
    tape.add_log(AT_S, RunId("r"), 0, 1, b"line\n" * 100_000)
    ((_at_s, _run, offset, number, data),) = tape.snapshot().pieces
    assert offset + len(data) == 500_000 and len(data) <= 96 * 1024
    assert number == 1 + offset // 5


async def test_frames_are_in_the_order_of_their_time(tmp_path: Path) -> None:
    told = lines_of(await flown(Flight(tmp_path)))
    times = [float(str(one["t"])) for one in told[1:]]
    assert times == sorted(times)


async def test_a_host_with_many_runs_and_incidents_repeats_them_once_a_block(
    tmp_path: Path,
) -> None:
    flight = Flight(tmp_path, least=None)
    for number in range(200):
        flight.run(run=RunId(f"r{number}-20231114-221000-a1b2"), command=("x" * 2000,))
        flight.desk.report(Finding("crash", f"s{number}", "notice", text="y" * 2000), host=BOX)
    for second in range(120):
        flight.clock.at_s = AT_S + second
        flight.sample()
    tape = flight.recorder._tapes[BOX]
    snapshot = tape.snapshot()
    assert len(snapshot.blocks) < 40
    assert 0 < snapshot.blocks[-1].keyframes <= 2 + 32 + 16


async def test_bytes_that_are_no_text_hide_no_secret(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    flight.sample()
    latest = flight.fleet.hosts[BOX].latest
    assert latest is not None
    line = b'{"k":"sample","at":1.0,"mono":1.0,"x":"\xff' + SECRET[:8].encode() + b'\\"12345"}'
    flight.recorder.knows({RUN: Masker([SECRET, SECRET[:8]])})
    flight.recorder.took(BOX, line, latest)
    flight.oom()
    await until(lambda: flight.desk.all()[0].recording, "written")
    await flight.recorder.close()
    assert SECRET[:8].encode() not in gzip.decompress(flight.files[0].read_bytes())
