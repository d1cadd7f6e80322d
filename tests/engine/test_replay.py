"""A replay: moved through in both directions, fed with anything, and never acting on a host."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.engine import recording_read
from cockpit.engine.events import Event, IncidentChanged, OwnTrouble
from cockpit.engine.recording_read import Recording, find_recording, read_recording
from cockpit.engine.recording_redact import write_redacted
from cockpit.engine.replay import ReplayEngine
from cockpit.errors import DataError, RunUnknown, StorageError, UsageError
from tests.builders.recordings import BOX, OOM_LINE, RUN, StepClock, header, story, written
from tests.builders.samples import AT_S


def frame(kind: str = "step", at_s: object = AT_S, **fields: object) -> dict[str, object]:
    return {"t": at_s, "k": kind, "host": BOX, **fields}


def opened(path: Path) -> tuple[ReplayEngine, StepClock]:
    clock = StepClock()
    return ReplayEngine(read_recording(path), clock), clock


async def state(engine: ReplayEngine, at_s: float) -> tuple[object, ...]:
    """What screens would see at that moment."""
    engine.replay.seek(at_s)
    await engine.replay.settled()
    host = engine.fleet.hosts[BOX]
    log = engine.runs.get(RUN) and engine.log(RUN)
    lines = [log.line(place) for place in range(len(log))] if log else []
    return host.latest, tuple(engine.incidents.all()), tuple(engine.runs.all()), lines


async def test_every_moment_is_the_same_from_either_side(tmp_path: Path) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    moments = [AT_S + second + 0.5 for second in (0, 3, 29, 30, 45, 59)]
    forwards = [await state(engine, at_s) for at_s in moments]
    backwards = [await state(engine, at_s) for at_s in reversed(moments)]
    assert forwards == backwards[::-1]
    assert [len(seen[1]) for seen in forwards] == [0, 0, 0, 1, 1, 1]  # type: ignore[arg-type]


async def test_versions_only_go_up_so_that_every_screen_sees_a_step_back(tmp_path: Path) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    await state(engine, AT_S + 50)
    log = engine.log(RUN)
    before = (engine.fleet.version, engine.runs.version, engine.incidents.version, log.version)
    held = engine.fleet.hosts[BOX]
    await state(engine, AT_S + 10)
    after = (engine.fleet.version, engine.runs.version, engine.incidents.version, log.version)
    assert all(new > old for new, old in zip(after, before, strict=True))
    assert engine.fleet.hosts[BOX] is held and engine.fleet.changed_since(before[0]) == [BOX]
    assert len(log) == 11 and len(held.history[next(iter(held.history))].at_s) == 11


async def test_time_passes_at_its_speed_and_stands_when_paused(tmp_path: Path) -> None:
    engine, clock = opened(story(tmp_path / "s.cockpit.gz"))
    replay = engine.replay
    clock.at_s += 2
    replay.faster(2)
    assert (engine.wall_s() - AT_S, replay.speed) == (2.0, 4.0)
    clock.at_s += 5
    replay.toggle()
    assert engine.wall_s() - AT_S == 22.0 and not replay.is_playing
    clock.at_s += 100
    replay.step(10)
    assert engine.wall_s() - AT_S == 32.0
    replay.step(-10)
    replay.faster(-20)
    assert (engine.wall_s() - AT_S, replay.speed) == (22.0, 0.25)
    replay.faster(20)
    assert replay.speed == 64.0
    replay.toggle()
    clock.at_s += 1000
    replay.step(0)
    assert replay.is_over and engine.now_s() == AT_S + 60
    replay.toggle()
    assert engine.wall_s() == AT_S and replay.is_playing


async def test_it_plays_by_itself_once_it_is_started(tmp_path: Path) -> None:
    engine, clock = opened(story(tmp_path / "s.cockpit.gz"))
    told: list[Event] = []
    engine.subscribe(told.append)
    await engine.start()
    clock.at_s += 35
    while not engine.incidents.all():
        await asyncio.sleep(0.01)
    await engine.close()
    latest = engine.fleet.hosts[BOX].latest
    assert latest is not None and latest.seq == 35
    assert not any(isinstance(one, IncidentChanged) for one in told), "five seconds ago is no news"


async def test_whoever_plays_hears_of_the_incident_when_it_comes(tmp_path: Path) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    told: list[Event] = []
    engine.subscribe(told.append)
    await state(engine, AT_S + 29.9)
    told.clear()
    await state(engine, AT_S + 30)
    (event,) = (one for one in told if isinstance(one, IncidentChanged))
    assert event.at_s == AT_S + 30 and event.incident.finding.text == OOM_LINE


Ask = Callable[[ReplayEngine], Awaitable[object]]
ACTS: dict[str, Ask] = {
    "plan": lambda engine: engine.plan("train"),
    "plan_again": lambda engine: engine.plan_again(RUN),
    "stop": lambda engine: engine.stop(RUN),
    "signal": lambda engine: engine.signal_process(BOX, 1, 1, "KILL"),
    "remark": lambda engine: engine.set_remark(RUN, "x"),
    "add": lambda engine: engine.add_host("x", "ssh x"),
    "remove": lambda engine: engine.remove_host(BOX),
    "reload": lambda engine: engine.reload_hosts(),
    "trust": lambda engine: engine.trust(BOX, "SHA256:x"),
    "mend": lambda engine: engine.mend(engine.incidents.all()[0]),
    "save": lambda engine: engine.save_log(RUN, Path("/nowhere")),
}


@pytest.mark.parametrize("name", ACTS)
async def test_what_would_act_says_that_it_is_a_replay(tmp_path: Path, name: str) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    await state(engine, AT_S + 40)
    with pytest.raises(UsageError) as caught:
        await ACTS[name](engine)
    assert caught.value.code == "replay_only"


async def test_what_cannot_raise_tells_it(tmp_path: Path) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    told: list[Event] = []
    engine.subscribe(told.append)
    engine.probe_now()
    engine.connect(BOX)
    engine.disconnect(BOX)
    engine.focus(BOX)
    engine.set_interval(5.0)
    codes = [one.code for one in told if isinstance(one, OwnTrouble)]
    assert codes == ["replay_only"] * 3
    with pytest.raises(UsageError):
        engine.shell_argv(BOX)
    with pytest.raises(UsageError):
        engine.fetch(RUN)


async def test_a_log_can_be_searched_and_looked_at_around_an_incident(tmp_path: Path) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    await state(engine, AT_S + 50)
    log = engine.log(RUN)
    (marked,) = (log.line(n) for n in range(len(log)) if log.line(n).text == OOM_LINE)
    hit = await engine.search_log(
        RUN, "out of memory", 0, backward=False, on_progress=lambda part: None
    )
    assert hit is not None and hit.offset == marked.offset
    assert (
        await engine.search_log(RUN, "step 2", 20, backward=True, on_progress=lambda part: None)
    ) is None
    part = await engine.log_around(RUN, marked.offset)
    assert marked in part.lines
    (incident,) = await engine.past_incidents(RUN)
    lines = await engine.log_context(incident, marked.offset)
    assert [line.text for line in lines][3] == OOM_LINE
    with pytest.raises(RunUnknown):
        engine.log(RunId("other"))


async def test_a_person_may_note_that_they_have_seen_it(tmp_path: Path) -> None:
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    await state(engine, AT_S + 40)
    (one,) = engine.incidents.all()
    engine.incidents.set_state(one.key, "seen")
    assert engine.incidents.all()[0].state == "seen"


# -- files that are not as they should be ------------------------------------------------------

END = {"t": AT_S, "k": "end", "host": None}
BAD: dict[str, tuple[tuple[object, ...], int | None, str]] = {
    "empty": ((), None, "empty"),
    "no header": ((frame(),), 1, "no recording"),
    "a newer version": (({**header(), "version": 2}, frame()), 1, "version is 2"),
    "no JSON": ((header(), b"{"), 2, "no JSON"),
    "a list": ((header(), [1]), 2, "no JSON object"),
    "nan": ((header(), b'{"t":NaN,"k":"x"}'), 2, "no JSON"),
    "no time": ((header(), {"k": "log"}), 2, "time"),
    "a huge time": ((header(), frame(at_s=1e18)), 2, "time"),
    "a true time": ((header(), frame(at_s=True)), 2, "time"),
    "no kind": ((header(), {"t": AT_S}), 2, "kind"),
    "a week": ((header(), frame(), frame(at_s=AT_S + 7 * 86400)), 3, "more than a day"),
    "deep": ((header(), b'{"t":1,"k":"x","v":' + b"[" * 100_000), 2, "no JSON"),
    "a long number": ((header(), b'{"t":1,"k":"x","v":' + b"9" * 9000 + b"}"), 2, "no JSON"),
    "a long line": ((header(), b"x" * (1 << 21)), None, "longer than 1 MiB"),
    "only a header": ((header(),), None, "nothing is recorded"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_line_and_reason(tmp_path: Path, name: str) -> None:
    lines, number, why = BAD[name]
    with pytest.raises(DataError) as caught:
        read_recording(written(tmp_path / "bad.cockpit.gz", *lines))
    assert caught.value.facts.get("line") == number
    assert why in str(caught.value.facts["why"])


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_read, "MOST_UNPACKED", 1 << 20)
    bomb = written(tmp_path / "b.cockpit.gz", header(), *([b" " * 60_000] * 100))
    with pytest.raises(DataError) as caught:
        read_recording(bomb)
    assert caught.value.facts["why"] in ("more than 1 MiB unpacked", "no JSON")
    one_line = tmp_path / "zeros.cockpit.gz"
    one_line.write_bytes(gzip.compress(b"\0" * (40 << 20)))
    with pytest.raises(DataError):
        read_recording(one_line)


def test_too_many_frames_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_read, "MOST_FRAMES", 10)
    with pytest.raises(DataError) as caught:
        read_recording(written(tmp_path / "m.cockpit.gz", header(), *[frame()] * 20))
    assert "more than 10 frames" in str(caught.value.facts["why"])


def test_hosts_beyond_a_bound_are_left_out(tmp_path: Path) -> None:
    many = [{"t": AT_S, "k": "link", "host": f"h{n}", "state": "live"} for n in range(2000)]
    engine, _clock = opened(written(tmp_path / "h.cockpit.gz", header(), *many))
    assert len(engine.hosts) == 256


def cut_everywhere(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data[:size] for size in range(200, len(data) - 1, max(1, len(data) // 40))]


def test_a_truncated_file_plays_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = read_recording(story(tmp_path / "s.cockpit.gz", seconds=20))
    lengths = []
    for number, data in enumerate(cut_everywhere(tmp_path / "s.cockpit.gz")):
        path = tmp_path / f"{number}.cockpit.gz"
        path.write_bytes(data)
        try:
            cut = read_recording(path)
        except DataError as error:
            assert "nothing is recorded" in str(error) or "ends within" in str(error)
            continue
        assert not cut.is_whole and cut.frames == whole.frames[: len(cut.frames)]
        lengths.append(len(cut.frames))
    assert lengths == sorted(lengths) and lengths[-1] > 0.8 * len(whole.frames)


async def test_frames_that_are_anything_are_played_without_harm(tmp_path: Path) -> None:
    """Every value of every frame of a story replaced by something else, in turn."""
    dice = random.Random(5)
    import json

    lines = gzip.decompress(story(tmp_path / "s.cockpit.gz", seconds=33).read_bytes()).splitlines()
    odd: list[object] = [
        None,
        -1,
        1e308,
        "x" * 5000,
        "\x1b[2J\u202e",
        [],
        {},
        [[]],
        {"a": {}},
        True,
        2**70,
    ]
    fuzzed: list[object] = [json.loads(lines[0])]
    for _round in range(12):
        for line in lines[1:]:
            told = json.loads(line)
            _spoil(told, dice, odd)
            told["t"] = AT_S
            told.setdefault("k", "wire")
            if isinstance(told["k"], str):
                fuzzed.append(told)
    engine, _clock = opened(written(tmp_path / "f.cockpit.gz", *fuzzed))
    heard: list[Event] = []
    engine.subscribe(heard.append)
    await engine.replay.settled()
    shown = repr([*engine.incidents.all(), *engine.runs.all(), engine.fleet.hosts, heard])
    assert "\x1b" not in shown and "\u202e" not in shown
    assert heard


def _spoil(value: object, dice: random.Random, odd: list[object]) -> None:
    places: list[tuple[object, object]] = []

    def walk(inner: object) -> None:
        keys = inner.keys() if isinstance(inner, dict) else range(len(inner))  # type: ignore[arg-type]
        for key in keys:
            places.append((inner, key))
            if isinstance(inner[key], dict | list):  # type: ignore[index]
                walk(inner[key])  # type: ignore[index]

    walk(value)
    for _n in range(dice.randint(1, 3)):
        inner, key = dice.choice(places)
        inner[key] = dice.choice(odd)  # type: ignore[index]


def test_kinds_that_nobody_knows_are_skipped(tmp_path: Path) -> None:
    engine, _clock = opened(
        written(
            tmp_path / "k.cockpit.gz",
            header(),
            frame("weather", sun=True),
            frame("link", state="live"),
        )
    )
    engine.replay._player.play(AT_S + 1, 10)
    assert engine.fleet.hosts[BOX].link == "live"


def test_a_name_alone_is_looked_up_in_the_home(tmp_path: Path) -> None:
    from cockpit.config.paths import Home

    home = Home(tmp_path)
    home.recordings.mkdir()
    kept = story(home.recordings / "a.cockpit.gz", seconds=2)
    assert find_recording(home, "a.cockpit.gz") == kept
    kept.rename(kept.with_name("a.cockpit.gz.part"))
    assert find_recording(home, "a.cockpit.gz").name == "a.cockpit.gz.part"
    with pytest.raises(StorageError) as caught:
        read_recording(find_recording(home, "b.cockpit.gz"))
    assert caught.value.code == "recording_unreadable"
    with pytest.raises(StorageError):
        read_recording(tmp_path)


def test_plain_lines_are_a_recording_too(tmp_path: Path) -> None:
    path = written(tmp_path / "p.jsonl", header(), frame(), END, packed=False)
    assert read_recording(path).is_whole


async def test_a_redacted_copy_shows_the_same_and_names_nobody(tmp_path: Path) -> None:
    host = HostName("gpu-farm.example")
    link = {
        "t": AT_S, "k": "link", "host": host, "state": "live", "address": "203.0.113.7",
        "fingerprint": "SHA256:abc", "why": {"words": "alice@203.0.113.7: /home/alice/run"},
    }  # fmt: skip
    log = {
        "t": AT_S, "k": "log", "host": host, "run": RUN, "offset": 0, "number": 1,
        "text": "alice on gpu-farm.example wrote /home/alice/out, mail bob@corp.example, 10.1.2.3\n",
    }  # fmt: skip
    raw = {
        "t": AT_S,
        "k": "log",
        "host": host,
        "run": RUN,
        "offset": 500,
        "number": 2,
        "b64": "/2FsaWNlCg==",
    }
    source = written(tmp_path / "s.cockpit.gz", header(host), link, log, raw, {**END, "t": AT_S})
    recording = read_recording(source)
    target = tmp_path / "r.cockpit.gz"
    write_redacted(recording, target)
    text = gzip.decompress(target.read_bytes()).decode()
    for name in (
        "gpu-farm",
        "alice",
        "203.0.113.7",
        "10.1.2.3",
        "corp.example",
        "SHA256:abc",
        "bGljZQ",
        "FsaWNl",
    ):
        assert name not in text
    copy = read_recording(target)
    assert copy.is_whole and copy.header.redacted and len(copy.frames) == len(recording.frames)
    assert [one.name for one in copy.header.hosts] == ["host-1"]
    with pytest.raises(UsageError) as caught:
        write_redacted(recording, target)
    assert caught.value.code == "file_exists"


async def test_incidents_are_those_of_the_recording_alone(tmp_path: Path) -> None:
    """The card fills up to its last byte, and no detector of ours says a word of it."""
    engine, _clock = opened(story(tmp_path / "s.cockpit.gz"))
    await state(engine, AT_S + 60)
    found: list[Incident] = list(engine.incidents.all())
    assert [one.family for one in found] == ["gpu_oom"]


def test_a_recording_says_what_it_is(tmp_path: Path) -> None:
    recording: Recording = read_recording(story(tmp_path / "s.cockpit.gz"))
    assert (recording.begin_s, recording.end_s) == (AT_S, AT_S + 60)
    assert recording.header.occasion is not None and recording.header.occasion.at_s == AT_S + 30
