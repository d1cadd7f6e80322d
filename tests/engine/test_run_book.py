"""The list of runs: what a host says wins, what it cannot know is kept, silence is never an end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import Progress, RunState, RunView
from cockpit.engine.run_book import RunBook
from cockpit.errors import RunUnknown

HOST = HostName("a")


def view(run: str, state: RunState = "running", **more: object) -> RunView:
    profile = run.rsplit("-", 1)[0]
    return RunView(RunId(run), profile, "command", HOST, state, **more)  # type: ignore[arg-type]


@pytest.fixture
def changes() -> list[tuple[str, str | None]]:
    return []


@pytest.fixture
def book(changes: list[tuple[str, str | None]]) -> RunBook:
    return RunBook(
        lambda now, before: changes.append((now.state, before.state if before else None))
    )


def test_only_changes_of_state_are_told(
    book: RunBook, changes: list[tuple[str, str | None]]
) -> None:
    book.record(view("q-1", log_bytes=1))
    version = book.version
    book.record(view("q-1", log_bytes=1))
    assert book.version == version
    book.record(view("q-1", log_bytes=2))
    assert book.version > version
    book.record(view("q-1", "exited", code=0))
    assert changes == [("running", None), ("exited", "running")]


def test_progress_and_readiness_outlive_the_hosts_next_answer(book: RunBook) -> None:
    book.record(view("q-1"))
    book.progress(RunId("q-1"), Progress(step=7))
    book.ready(RunId("q-1"))
    book.record(view("q-1", log_bytes=9))
    kept = book.get(RunId("q-1"))
    assert kept is not None
    assert (kept.state, kept.progress.step, kept.log_bytes) == ("ready", 7, 9)


def test_a_lost_link_makes_live_runs_unreachable_and_leaves_ended_ones_alone(book: RunBook) -> None:
    book.record(view("q-1"))
    book.record(view("q-2", "exited", code=3))
    book.host_lost(HOST)
    states = {one.run: one.state for one in book.all()}
    assert states == {"q-1": "unreachable", "q-2": "exited"}
    book.record(view("q-1"))
    assert book.get(RunId("q-1")).state == "running"  # type: ignore[union-attr]


def test_a_run_whose_folder_is_gone_is_lost_and_says_so(book: RunBook) -> None:
    book.record(view("q-1"))
    book.lost(RunId("q-1"), "run_dir_gone")
    gone = book.get(RunId("q-1"))
    assert gone is not None
    assert (gone.state, gone.reason) == ("lost", "run_dir_gone")


def test_a_run_is_found_by_id_by_unique_prefix_and_by_its_profiles_name(book: RunBook) -> None:
    book.record(view("qwen-aaa", started_s=1.0))
    book.record(view("qwen-abb", started_s=2.0))
    book.record(view("llama-ccc", started_s=3.0))
    assert book.find("qwen-aaa").run == "qwen-aaa"
    assert book.find("llama-c").run == "llama-ccc"
    assert book.find("qwen").run == "qwen-abb"


def test_a_run_on_several_hosts_is_meant_by_its_first_rank(book: RunBook) -> None:
    for run, claimed_s in (("q-1", 10.0), ("q-1-r1", 12.0), ("q-1-r2", 11.0)):
        book.record(replace(view(run, claimed_s=claimed_s), profile="q"))
    assert [book.find(wanted).run for wanted in ("q", "q-", "q-1", "q-1-r2")] == [
        "q-1", "q-1", "q-1", "q-1-r2",
    ]  # fmt: skip
    book.record(replace(view("q-2-r1", claimed_s=20.0), profile="q"))
    assert book.find("q").run == "q-2-r1"  # all that is known of the newest


def test_a_stop_during_the_hook_after_a_job_is_news(
    book: RunBook, changes: list[tuple[str, str | None]]
) -> None:
    book.record(view("q-1", "stopping"))
    book.record(view("q-1", "stopping", by="cockpit"))
    book.record(view("q-1", "stopping", by="cockpit", log_bytes=3))
    assert changes == [("stopping", None), ("stopping", "stopping")]


def test_an_answer_that_was_under_way_does_not_bring_an_ended_run_back(book: RunBook) -> None:
    book.record(view("q-1", "exited", code=3))
    book.record(view("q-1", "running"))
    assert book.get(RunId("q-1")).state == "exited"  # type: ignore[union-attr]


def test_a_run_that_waits_is_as_new_as_its_claim(book: RunBook) -> None:
    book.record(view("q-1", claimed_s=1.0, started_s=50.0))
    book.record(view("q-2", "queued", claimed_s=9.0))
    assert [one.run for one in book.all()] == ["q-2", "q-1"]


@pytest.mark.parametrize(
    ("wanted", "code"), [("nope", "run_unknown"), ("qwen-a", "run_ambiguous"), ("", "run_unknown")]
)
def test_what_names_no_run_or_several_is_an_error(book: RunBook, wanted: str, code: str) -> None:
    book.record(view("qwen-aaa"))
    book.record(view("qwen-abb"))
    with pytest.raises(RunUnknown) as caught:
        book.find(wanted)
    assert caught.value.code == code


def test_no_host_can_speak_of_another_host_s_run(book: RunBook) -> None:
    book.record(view("q-1", log_bytes=1))
    liar = replace(view("q-1", "exited", code=0), host=HostName("b"))
    assert book.record(liar) == book.get(RunId("q-1")) == view("q-1", log_bytes=1)


def test_who_has_a_run_is_believed_before_who_only_sees_its_folder(book: RunBook) -> None:
    beside = replace(view("q-1", "unreachable"), host=HostName("b"))
    book.record(beside)
    book.record(view("q-1"))
    book.record(beside)
    assert book.get(RunId("q-1")) == view("q-1")
