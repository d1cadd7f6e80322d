"""What an end says by itself: killed for memory, or gone without a word; a plain code says nothing."""

from __future__ import annotations

import pytest

from cockpit.domain.exits import finding_of_end
from cockpit.domain.models import RunId
from cockpit.domain.run_record import RunRecord
from cockpit.i18n.messages import describe_incident


def record(**more: object) -> RunRecord:
    return RunRecord(RunId("q-1"), now_s=0.0, **{"state": "exited", **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ended",
    [
        record(signal=9, reason="oom_killed", oom_kills=1),
        record(code=137, oom_kills=2),
        record(signal=9, reason="signal", oom_kills=1),
    ],
)
def test_a_kill_with_the_cgroups_counter_up_is_a_host_oom(ended: RunRecord) -> None:
    finding = finding_of_end(ended)
    assert finding is not None
    assert (finding.family, finding.severity) == ("host_oom", "fatal")
    assert (finding.facts["exitcode"], finding.facts["signal"]) == (137, 9)
    text = describe_incident(finding)
    assert text.cause and all(remedy.text for remedy in text.remedies)


@pytest.mark.parametrize(
    "ended",
    [
        record(code=0),
        record(code=1),
        record(signal=9),
        record(signal=15, oom_kills=3),
        record(code=137),
    ],
)
def test_an_end_of_its_own_is_no_incident(ended: RunRecord) -> None:
    assert finding_of_end(ended) is None


def test_a_lost_run_says_why_it_is_lost() -> None:
    finding = finding_of_end(record(state="lost", reason="host_restarted"))
    assert finding is not None
    assert (finding.family, finding.cause) == ("crash", "host_restarted")
    assert "restarted" in describe_incident(finding).cause
