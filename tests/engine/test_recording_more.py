"""Everything that a screen shows of a run survives a recording."""

from __future__ import annotations

import json

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import Progress, RunView
from cockpit.domain.server_json import LoadedModel
from cockpit.domain.server_sample import ServerSample
from cockpit.engine.recording_rows import read_run_of, run_fields

SERVED = ServerSample(
    77.0, running=3, waiting=12, kv_usage=0.97, ttft_p95_s=4.5, restarted=True,
    models=(LoadedModel("llama3:8b", 5000.0, 4800.0),), names=(("waiting", "num_requests_waiting"),),
)  # fmt: skip
VIEW = RunView(
    run=RunId("vllm-7b-20231114-221000-a1b2"), profile="vllm-7b", kind="vllm", host=HostName("a100"),
    state="queued", gpus=(0, 1), claimed_s=5.0, position=2, waiting_for="alice:python", restarts=3,
    restart_in_s=12.5, progress=Progress(step=5, loss=2.5, requests_waiting=3, kv_pct=97.0),
    command=("vllm", "serve"), tags=("serve",), notes=(("a", "b"),), remark="mine", served=SERVED,
)  # fmt: skip


def again(told: dict[str, object], at_s: float = 77.0) -> RunView | None:
    return read_run_of(json.loads(json.dumps(told)), at_s)


def test_a_run_is_read_as_it_was() -> None:
    assert again(run_fields(VIEW)) == VIEW


def test_what_a_server_said_is_as_old_as_its_frame() -> None:
    view = again(run_fields(VIEW), 1000.0)
    assert view is not None and view.served is not None and view.served.at_s == 1000.0


@pytest.mark.parametrize(
    "more",
    [None, [], {"progress": [], "served": 5}, {"served": {"models": [1, {}], "names": [[], 3], "running": "x"}},
     {"restarts": "\x1b", "position": 1e300, "waiting_for": 7}],
    ids=["none", "list", "types", "parts", "values"],
)  # fmt: skip
def test_spoilt_parts_are_left_out(more: object) -> None:
    view = again({**run_fields(VIEW), "more": more})
    assert view is not None and view.run == VIEW.run
