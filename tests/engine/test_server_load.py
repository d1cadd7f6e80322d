"""Whose load a host's memory is read against."""

from __future__ import annotations

from cockpit.domain.load_trend import Load
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.domain.server_sample import ServerSample
from cockpit.engine.run_book import RunBook
from cockpit.engine.server_load import load_by

BOX = HostName("box")


def book(*served: ServerSample | None) -> RunBook:
    made = RunBook(lambda view, before: None)
    for number, sample in enumerate(served):
        run = RunId(f"serve-{number}")
        made.record(RunView(run, "serve", "vllm", BOX, "ready"))
        made.served(run, sample)
    return made


def test_a_run_has_its_own_and_a_host_that_of_its_only_server() -> None:
    busy = ServerSample(1.0, running=5, waiting=2, finished_total=90.0)
    load = load_by(lambda: one)
    one = book(busy, None)
    assert load(BOX, RunId("serve-0")) == load(BOX, None) == Load(7, 90.0)
    assert load(BOX, RunId("serve-1")) is None and load(BOX, RunId("nobody")) is None
    assert load(HostName("other"), None) is None


def test_of_two_servers_a_hosts_memory_is_nobodys() -> None:
    two = book(ServerSample(1.0, running=5), ServerSample(1.0, running=1))
    assert load_by(lambda: two)(BOX, None) is None
    assert load_by(lambda: two)(BOX, RunId("serve-1")) == Load(1, None)


def test_what_tells_no_requests_has_no_load() -> None:
    assert load_by(lambda: book(ServerSample(1.0, models=())))(BOX, None) is None


def test_a_record_of_its_host_keeps_what_a_server_said_until_it_ends() -> None:
    one = book(ServerSample(1.0, running=5))
    one.record(RunView(RunId("serve-0"), "serve", "vllm", BOX, "running", log_bytes=5))
    view = one.get(RunId("serve-0"))
    assert view is not None and view.state == "ready" and view.served is not None
    one.record(RunView(RunId("serve-0"), "serve", "vllm", BOX, "exited", code=0))
    ended = one.get(RunId("serve-0"))
    assert ended is not None and ended.served is None
