from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.incident_book import MOST_EVIDENCE, MOST_INCIDENTS, IncidentBook
from cockpit.domain.incidents import Evidence, Family, Finding, Incident, Remedy, Severity
from cockpit.domain.models import HostName, RunId

H, R, R2 = HostName("h"), RunId("r1"), RunId("r2")


def finding(
    family: Family = "gpu_oom",
    signature: str = "torch-oom-21",
    severity: Severity = "fatal",
    offset: int | None = 100,
    **facts: int,
) -> Finding:
    return Finding(family, signature, severity, facts, offset=offset, text=f"{family} text")


def opened(book: IncidentBook) -> list[Incident]:
    return [one for one in book.all() if one.state in ("open", "seen", "applied")]


def test_a_repeat_counts_in_silence_whatever_its_numbers() -> None:
    book = IncidentBook()
    assert len(book.take(finding(tried_mib=100), 10, host=H, run=R)) == 1
    assert book.take(finding(tried_mib=200, offset=900), 20, host=H, run=R) == []
    [one] = book.all()
    assert (one.count, one.opened_s, one.last_s) == (2, 10, 20)


def test_another_attempt_is_another_incident_that_knows_of_the_first() -> None:
    book = IncidentBook()
    book.take(finding(), 10, host=H, run=R, profile="qwen")
    [(second, before)] = book.take(finding(), 5000, host=H, run=R2, profile="qwen")
    assert before is None
    assert book.earlier(second.key) == 1


def test_a_finding_that_is_told_again_is_amended_not_counted() -> None:
    book = IncidentBook()
    book.take(finding(), 10, host=H, run=R)
    [(now, before)] = book.take(
        replace(finding(severity="notice"), recovered=True), 12, host=H, run=R
    )
    assert before is not None
    assert (now.state, now.count, now.finding.recovered) == ("recovered", 1, True)


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("gpu_oom", "nccl"), ("gpu_oom", "crash"), ("gpu_oom", "hang"), ("host_oom", "crash"),
        ("hardware", "nccl"), ("hardware", "crash"), ("shm", "nccl"), ("disk", "crash"), ("kv_cache", "crash"),
        ("driver", "env"), ("gpu_oom", "near_full"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cause_first", [True, False])
def test_one_cause_is_one_incident_in_either_order(
    cause: Family, effect: Family, cause_first: bool
) -> None:
    book = IncidentBook()
    order = (cause, effect) if cause_first else (effect, cause)
    for at_s, family in enumerate(order):
        book.take(finding(family, f"{family}-x"), float(at_s), host=H, run=R)
    [one] = opened(book)
    assert one.family == cause
    assert [line.text for line in one.evidence] == ([f"{effect} text"] if cause_first else [])


def test_the_loser_keeps_its_evidence_and_says_what_explains_it() -> None:
    book = IncidentBook()
    evidence = (Evidence(1.0, "log", "ranks lost each other", 5, 2),)
    book.take(finding("nccl", "nccl-watchdog"), 1, host=H, run=R, evidence=evidence)
    [(winner, _), (loser, before)] = book.take(finding(), 3, host=H, run=R)
    assert before is not None and before.state == "open"
    assert (loser.state, loser.state_why) == ("closed", f"explained_by:{winner.key}")
    assert winner.evidence == evidence


def test_what_is_far_apart_is_not_joined() -> None:
    book = IncidentBook()
    book.take(finding(), 0, host=H, run=R)
    book.take(finding("crash", "x"), 500, host=H, run=R)
    book.take(finding("crash", "x"), 501, host=H, run=R2)
    assert len(opened(book)) == 3


def test_a_lost_card_explains_a_run_on_it_but_not_one_on_another_card() -> None:
    book = IncidentBook()
    book.take(finding("hardware", "gpu-lost", gpu_index=3), 0, host=H, gpu=3)
    assert book.take(finding("nccl", "nccl-cuda"), 2, host=H, gpu=3, run=R) == []
    assert len(book.take(finding("nccl", "nccl-cuda"), 2, host=H, gpu=1, run=R2)) == 1
    assert len(book.take(finding("hardware", "gpu-lost", gpu_index=4), 3, host=H, gpu=4)) == 1


def test_a_kill_seen_by_the_host_learns_which_run_it_hit() -> None:
    book = IncidentBook()
    book.take(finding("host_oom", "cgroup-oom-kill"), 0, host=H)
    assert book.take(finding("host_oom", "exit-137"), 2, host=H, run=R, profile="qwen") == []
    [one] = book.all()
    assert (one.run, one.profile, one.count) == (R, "qwen", 2)


def test_a_recovered_failure_explains_nothing() -> None:
    book = IncidentBook()
    book.take(replace(finding(severity="notice"), recovered=True), 0, host=H, run=R)
    assert len(book.take(finding("crash", "elastic-fail"), 2, host=H, run=R)) == 1


def test_numbers_that_come_later_are_taken() -> None:
    book = IncidentBook()
    book.take(finding(signature="cuda-oom-rt"), 0, host=H, run=R)
    assert book.take(finding(tried_mib=1792, offset=400), 1, host=H, run=R) == []
    [one] = book.all()
    assert one.finding.facts == {"tried_mib": 1792}


def test_seen_comes_back_only_when_it_gets_worse() -> None:
    book = IncidentBook()
    [(one, _)] = book.take(finding("nan", "nan-loss", "warning"), 0, host=H, run=R)
    book.set_state(one.key, "seen")
    assert book.take(finding("nan", "nan-loss", "warning", 200), 1, host=H, run=R) == []
    [(worse, before)] = book.take(finding("nan", "nan-loss", "fatal", 300), 2, host=H, run=R)
    assert before is not None
    assert (before.state, worse.state, worse.severity) == ("seen", "open", "fatal")


def test_settled_incidents_say_so_once_and_open_again() -> None:
    book = IncidentBook()
    [(one, _)] = book.take(finding("near_full", "near-full", "warning", None), 0, host=H, gpu=0)
    settled = book.settle(one.key, "withdrawn", 60, "levelled_off")
    assert settled is not None
    assert (settled[0].state, settled[0].state_why) == ("withdrawn", "levelled_off")
    assert book.settle(one.key, "recovered", 61) is None
    [(again, _)] = book.take(finding("near_full", "near-full", "warning", None), 90, host=H, gpu=0)
    assert (again.state, again.count) == ("open", 2)


def test_what_comes_and_goes_stays_open() -> None:
    book = IncidentBook()
    near = finding("near_full", "near-full", "warning", None)
    for at_s in (0, 200, 400):
        book.take(near, at_s, host=H, gpu=0)
        changed = book.settle(book.all()[0].key, "recovered", at_s + 100)
        assert (changed is None) == (at_s == 400)
    assert (book.all()[0].state, book.all()[0].state_why) == ("open", "comes_and_goes")


def test_they_are_sorted_by_what_a_person_must_do() -> None:
    book = IncidentBook()
    book.take(finding("leak", "leak", "warning", None, eta_s=9000), 5, host=H, gpu=0)
    book.take(finding("near_full", "near-full", "warning", None, eta_s=600), 4, host=H, gpu=1)
    book.take(finding("disk", "enospc", "fatal"), 3, host=H, run=R)
    book.take(finding("hardware", "xid-63", "notice", None), 6, host=H, gpu=2)
    [(seen, _)] = book.take(finding("port", "port"), 7, host=H, run=R2)
    book.set_state(seen.key, "seen")
    assert [one.family for one in book.all()] == ["disk", "near_full", "leak", "hardware", "port"]


def test_every_change_raises_the_version_and_no_change_does_not() -> None:
    book = IncidentBook()
    [(one, _)] = book.take(finding(), 0, host=H, run=R)
    version = book.version
    book.set_state(one.key, "seen", "looked at")
    assert book.version == version + 1
    book.set_state(one.key, "seen", "looked at")
    assert book.settle("no such key", "closed", 1) is None
    assert book.version == version + 1


def test_memory_is_bounded() -> None:
    book = IncidentBook()
    for at_s in range(MOST_INCIDENTS + 50):
        book.take(finding(), float(at_s), host=H, run=RunId(f"r{at_s}"))
    assert len(book.all()) == MOST_INCIDENTS
    evidence = [Evidence(float(n), "log", f"line {n}") for n in range(100)]
    for line in evidence:
        book.take(finding(offset=None), 9000, host=H, run=R, evidence=(line,))
    kept = next(one for one in book.all() if one.run == R).evidence
    assert (kept[0].text, kept[-1].text, len(kept)) == ("line 0", "line 99", MOST_EVIDENCE)


@pytest.mark.parametrize(
    ("sign", "sign_cause", "end"),
    [
        ("near_full", "near_full", "gpu_oom"),
        ("near_full", "full_soon", "gpu_oom"),
        ("leak", "leak_gpu", "gpu_oom"),
        ("host_oom", "host_near_full", "host_oom"),
        ("shm", "shm_near_full", "shm"),
        ("disk", "disk_low", "disk"),
    ],
)
def test_what_ends_as_it_was_foreseen_is_one_incident_however_late(
    sign: Family, sign_cause: str, end: Family
) -> None:
    book = IncidentBook()
    early = replace(finding(sign, "sign", "warning", offset=None), cause=sign_cause)
    book.take(early, 10, host=H)
    told = book.take(finding(end, "the-end"), 9000, host=H, run=R)
    assert [(now.finding.signature, now.state) for now, _ in told] == [
        ("the-end", "open"),
        ("sign", "closed"),
    ]
    assert len(opened(book)) == 1


def test_an_end_that_nobody_foresaw_there_leaves_the_signs_of_elsewhere() -> None:
    book = IncidentBook()
    low = replace(finding("disk", "disk-low", "warning", offset=None), cause="disk_low")
    book.take(low, 10, host=HostName("other"))
    book.take(finding("disk", "enospc"), 20, host=H, run=R)
    assert len(opened(book)) == 2


def test_a_leak_stays_the_cause_of_the_oom_that_it_led_to() -> None:
    book = IncidentBook()
    leak = Finding(
        "leak",
        "memory-trend-7",
        "warning",
        {"slope_mib_per_h": 412.0},
        cause="leak_gpu",
        remedies=(Remedy("detach_what_is_kept"),),
    )
    book.take(leak, 10, host=H, gpu=0, run=R)
    end = replace(finding(), cause="too_big", remedies=(Remedy("smaller_batch"),))
    book.take(end, 9000, host=H, gpu=0, run=R)
    book.take(end, 9001, host=H, gpu=0, run=R)
    [one] = opened(book)
    assert (one.family, one.finding.cause) == ("gpu_oom", "grew_until_full")
    assert one.finding.facts["slope_mib_per_h"] == 412.0
    assert [remedy.code for remedy in one.finding.remedies] == [
        "detach_what_is_kept",
        "smaller_batch",
    ]


def test_a_disk_that_both_the_run_and_its_host_see_is_one_and_two_disks_are_two() -> None:
    book = IncidentBook()
    low = replace(finding("disk", "disk-low", "warning", offset=None), cause="disk_low")
    book.take(low, 10, host=H, run=R)
    book.take(replace(low, signature="disk-low:/data"), 500, host=H)
    assert len(opened(book)) == 1
    both = IncidentBook()
    both.take(replace(low, signature="disk-low:/"), 10, host=H)
    both.take(replace(low, signature="disk-low:/data"), 500, host=H)
    assert len(opened(both)) == 2


def test_a_condition_that_is_told_anew_has_happened_once() -> None:
    book = IncidentBook()
    growing = Finding("leak", "memory-trend-7", "warning", {"slope_mib_per_h": 400.0})
    for minute in range(5):
        book.take(growing, 60.0 * minute, host=H, gpu=0, run=R)
    [one] = book.all()
    assert (one.count, one.last_s) == (1, 240.0)
    book.settle(one.key, "recovered", 300.0)
    book.take(growing, 400.0, host=H, gpu=0, run=R)
    assert book.all()[0].count == 2
