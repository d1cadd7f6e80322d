"""What is kept with an incident when it opens: the right curve, who was there, the versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import get_args

import pytest

from cockpit.domain.incident_kin import Place
from cockpit.domain.incidents import Evidence, FactValue, Family, Finding, Incident
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.mutes import HOUR_S, mute_for
from cockpit.engine.events import Event, EventBus, IncidentChanged
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.witness import Witness
from tests.builders.samples import AT_S, disk, gpu, host_facts, host_sample, process
from tests.screens.fake_engine import FakeEngine
from tests.screens.fleets import calm, hostile, sixteen, trouble

HOST = HostName("h")
RUN = RunId("train-000001abc")


def sample_of(used_mib: int, **changes: object) -> HostSample:
    mine = process(41, mem_used_mib=used_mib - 100, run=RUN)
    other = process(42, name="notebook", mem_used_mib=100)
    cards = [gpu(0, mem_used_mib=used_mib, processes=(other, mine)), gpu(1, mem_used_mib=7)]
    disks = (disk("/", free_mib=40, total_mib=100), disk("/data", free_mib=1, total_mib=1000))
    facts = host_facts(driver="550.54.15", cuda="12.4")
    return replace(host_sample("h", gpus=cards, disks=disks, facts=facts), **changes)  # type: ignore[arg-type]


def witness(seconds: int = 120) -> Witness:
    fleet = FleetStore([HOST])
    one = Witness(fleet)
    for at in range(seconds):
        sample = sample_of(10_000 + 10 * at)
        fleet.record(sample, float(at))
        one.take(sample, AT_S + at)
    return one


@pytest.mark.parametrize(
    ("family", "facts", "place", "wanted"),
    [
        ("gpu_oom", {}, Place(HOST, 0, RUN), ("gpu", "", 0)),
        ("gpu_oom", {}, Place(HOST, None, RUN), ("gpu", "", 0)),
        ("leak", {"pid": 41}, Place(HOST, 0), ("process", "python 41", 0)),
        ("hang", {}, Place(HOST, 0, RUN), ("util", "", 0)),
        ("disk", {"path": "/data/ckpt"}, Place(HOST, None, RUN), ("disk", "/data", None)),
        ("disk", {}, Place(HOST), ("disk", "/data", None)),
        ("host_oom", {}, Place(HOST, 0, RUN), ("host", "", None)),
    ],
    ids=["oom", "oom-of-several", "leak", "hang", "disk-path", "disk", "host"],
)  # fmt: skip
def test_the_curve_is_that_of_what_it_is_about(
    family: Family, facts: dict[str, int | str], place: Place, wanted: tuple[str, str, int | None]
) -> None:
    proof = witness().testify(Finding(family, "x", "fatal", facts), place, AT_S + 119)
    assert proof is not None and proof.curve is not None
    assert (proof.curve.kind, proof.curve.name, proof.curve.gpu) == wanted


def test_it_ends_with_the_moment_and_names_who_was_there() -> None:
    proof = witness().testify(Finding("gpu_oom", "x", "fatal"), Place(HOST, 0, RUN), AT_S + 119)
    assert proof is not None and proof.curve is not None and proof.company is not None
    assert proof.curve.last == 11_190 and proof.curve.top == 24_564
    company = [(one.pid, one.used_mib, one.run) for one in proof.company]
    assert company == [(41, 11_090, RUN), (42, 100, "")]
    assert proof.machine["driver"] == "550.54.15" and proof.machine["cuda"] == "12.4"


@pytest.mark.parametrize("family", ["port", "env", "cost"])
def test_what_has_no_curve_gets_none(family: Family) -> None:
    proof = witness().testify(Finding(family, "x", "warning"), Place(HOST, 0, RUN), AT_S + 119)
    assert proof is not None and proof.curve is None


def test_of_an_unknown_or_silent_host_nothing_is_said() -> None:
    one = witness()
    assert one.testify(Finding("gpu_oom", "x", "fatal"), Place(HostName("?")), AT_S) is None
    assert one.testify(Finding("gpu_oom", "x", "fatal"), Place(None), AT_S) is None
    one.forget(HOST)
    proof = one.testify(Finding("gpu_oom", "x", "fatal"), Place(HOST, 0), AT_S)
    assert proof is not None and proof.curve is None


class Hands:
    """A clock that goes when it is told to."""

    at_s = AT_S + 119

    def now_s(self) -> float:
        return self.at_s

    def wall_s(self) -> float:
        return self.at_s


def desk_with(one: Witness) -> tuple[IncidentDesk, list[IncidentChanged], Hands]:
    heard: list[IncidentChanged] = []

    def listener(event: Event) -> None:
        assert isinstance(event, IncidentChanged)
        heard.append(event)

    def broken(error: Exception) -> None:
        raise error

    bus, clock = EventBus(broken), Hands()
    bus.subscribe(listener)
    desk = IncidentDesk(bus, clock)
    desk.testify = one.testify
    return desk, heard, clock


def oom(offset: int = 7) -> Finding:
    return Finding("gpu_oom", "torch", "fatal", offset=offset, line=1, text="CUDA out of memory")


def test_the_proof_is_taken_once_when_it_opens_and_stays() -> None:
    one = witness()
    desk, heard, _clock = desk_with(one)
    desk.report(oom(), host=HOST, gpu=0, run=RUN)
    first = heard[-1].incident.proof
    one.take(sample_of(24_000), AT_S + 500)
    desk.report(oom(99), host=HOST, gpu=0, run=RUN)
    again = desk.all()[0]
    assert first is not None and first.curve is not None
    assert again.count == 2 and again.proof is first


def test_what_stood_in_the_log_already_has_no_proof() -> None:
    desk, heard, _clock = desk_with(witness())
    desk.report(oom(), host=HOST, gpu=0, run=RUN, is_live=False)
    assert heard[-1].incident.proof is None


def test_each_state_is_a_step_with_its_time() -> None:
    desk, _heard, clock = desk_with(witness())
    desk.report(oom(), host=HOST, gpu=0, run=RUN)
    key = desk.all()[0].key
    clock.at_s += 5
    desk.set_state(key, "seen")
    clock.at_s += 5
    desk.settle(key, "recovered", "fits_again")
    steps = desk.all()[0].steps
    told = [(one.what, one.why) for one in steps]
    assert told == [("open", ""), ("seen", ""), ("recovered", "fits_again")]
    assert [round(one.at_s - steps[0].at_s) for one in steps] == [0, 5, 10]


def test_a_line_that_is_read_again_is_the_incident_of_then() -> None:
    before, heard_before, _clock = desk_with(witness())
    before.report(oom(), host=HOST, gpu=0, run=RUN)
    before.set_state(before.all()[0].key, "closed", "fixed")
    then: Incident = before.all()[0]
    assert len(heard_before) == 2

    desk, heard, _clock = desk_with(witness())
    desk.remember([then])
    desk.report(
        oom(), host=HOST, gpu=0, run=RUN, is_live=False, evidence=(Evidence(None, "log", "x"),)
    )
    found = desk.all()[0]
    assert (found.state, found.state_why, found.opened_s) == ("closed", "fixed", then.opened_s)
    assert found.proof == then.proof and heard[-1].before is not None
    desk.report(oom(4000), host=HOST, gpu=0, run=RUN)
    assert desk.all()[0].state == "open"


def test_the_recorder_notes_its_file() -> None:
    desk, heard, _clock = desk_with(witness())
    desk.report(oom(), host=HOST, gpu=0, run=RUN)
    key = desk.all()[0].key
    desk.note_recording(key, "h-1.rec")
    desk.note_recording(key, "h-1.rec")
    desk.note_recording("unknown", "x")
    assert desk.all()[0].recording == "h-1.rec"
    assert len(heard) == 2


def test_an_end_of_long_ago_is_known_from_then_and_one_of_now_is_new() -> None:
    killed = Finding("host_oom", "exit-137", "fatal")
    before, _heard, _clock = desk_with(witness())
    before.report(killed, host=HOST, run=RUN)
    before.set_state(before.all()[0].key, "closed", "fixed")
    then = before.all()[0]

    later, _heard, _clock = desk_with(witness())
    later.remember([then])
    later.report(killed, host=HOST, run=RUN, is_live=False)
    assert later.all()[0].state == "closed"

    now, _heard, _clock = desk_with(witness())
    now.remember([then])
    now.report(killed, host=HOST, run=RUN)
    assert now.all()[0].state == "open" and len(now.all()[0].steps) == 1


def test_a_rule_silences_what_is_open_what_comes_and_not_what_grows_worse() -> None:
    desk, heard, clock = desk_with(witness())
    near = Finding("near_full", "near-full", "warning")
    desk.report(near, host=HOST, gpu=0)
    rule = mute_for(desk.all()[0], "host", clock.at_s, HOUR_S)
    desk.set_mutes([rule])
    assert [one.mute for one in desk.all()] == [rule.id]
    desk.report(near, host=HOST, gpu=1)
    assert all(one.mute for one in desk.all()) and not any(one.is_loud for one in desk.all())
    assert heard[-1].incident.mute == rule.id and heard[-1].before is None
    desk.report(replace(near, severity="fatal"), host=HOST, gpu=1)
    worse = heard[-1].incident
    assert worse.severity == "fatal" and not worse.mute and worse.is_loud


def test_a_rule_that_is_over_lets_everything_speak_again_by_itself() -> None:
    desk, heard, clock = desk_with(witness())
    desk.report(Finding("near_full", "near-full", "warning"), host=HOST, gpu=0)
    desk.set_mutes([mute_for(desk.all()[0], "everywhere", clock.at_s, HOUR_S)])
    heard.clear()
    clock.at_s += HOUR_S - 1
    assert desk.all()[0].mute and heard == []
    clock.at_s += 1
    assert not desk.all()[0].mute and desk.mutes == ()
    assert [event.incident.mute for event in heard] == [""]
    desk.all()
    assert len(heard) == 1


@pytest.mark.parametrize("family", get_args(Family))
@pytest.mark.parametrize("fleet", [calm, trouble, sixteen, hostile], ids=lambda one: one.__name__)
def test_any_family_on_any_fleet_can_be_testified(
    family: Family, fleet: Callable[[], FakeEngine]
) -> None:
    """The detectors stand behind it: it must not stop them."""
    engine = fleet()
    one = Witness(engine.fleet)
    for state in engine.fleet.hosts.values():
        if state.latest is not None:
            one.take(state.latest, AT_S)
    facts: list[dict[str, FactValue]] = [
        {},
        {"pid": 4121, "path": "/data/x"},
        {"pid": True, "path": 7},
    ]
    for host in (*engine.fleet.hosts, HostName("gone")):
        for gpu_index in (None, 0, 3, 99):
            for known in facts:
                for cause in ("", "leak_shm", "leak_host"):
                    finding = Finding(family, "x", "warning", known, cause=cause)
                    place = Place(host, gpu_index, RUN)
                    proof = one.testify(finding, place, AT_S + 1)
                    text = json.dumps(asdict(proof)) if proof is not None else ""
                    assert "\\u001b" not in text and "\\u009b" not in text and len(text) < 20_000
