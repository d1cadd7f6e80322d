"""Pictures of a run that serves: its own numbers stand where a training run shows steps and loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cockpit.domain.models import HostName
from cockpit.domain.runs import Progress
from cockpit.domain.server_json import LoadedModel
from cockpit.domain.server_sample import ServerSample
from cockpit.screens.run import RunScreen
from cockpit.widgets.options import UiOptions
from tests.screens.fake_engine import WALL_S, FakeEngine, run_view
from tests.screens.run_scenes import SERVING, WatchedApp, busy_engine
from tests.screens.test_snapshots_runs import after

SIZES = [(80, 24), (120, 40)]
by_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
BUSY = ServerSample(
    100.0, running=41, waiting=17, kv_usage=0.97, preemptions_per_s=0.2, gen_tokens_per_s=1874.0,
    prompt_tokens_per_s=5120.0, requests_per_s=8.1, prefix_hit=0.41, ttft_p50_s=0.21, ttft_p95_s=3.4,
    tpot_p50_s=0.0223, tpot_p95_s=0.031, e2e_p50_s=6.4, e2e_p95_s=14.2, queue_p50_s=0.12, queue_p95_s=3.1,
)  # fmt: skip
MODELS = ServerSample(
    100.0,
    models=(
        LoadedModel("qwen3:32b", 20_480.0, 14_336.0),
        LoadedModel("nomic-embed-text", 320.0, 320.0),
    ),
)


def serving(sample: ServerSample) -> FakeEngine:
    engine = busy_engine()
    engine.runs.put(
        run_view(
            SERVING, profile="vllm-7b", kind="vllm", host=HostName("h100"), gpus=(4,), state="ready",
            started_s=WALL_S - 40_000, progress=Progress(tokens_s=1700.0), served=sample,
        )
    )  # fmt: skip
    return engine


class Shown(WatchedApp):
    """The run's screen after a while: each look was another speed."""

    def __init__(self, sample: ServerSample, options: UiOptions | None = None) -> None:
        self.sample = sample
        self.fake = serving(sample)
        super().__init__(self.fake, options)

    async def look_for_a_while(self) -> None:
        screen = self.screen
        assert isinstance(screen, RunScreen)
        view = self.fake.runs.get(SERVING)
        assert view is not None
        for number in range(1, 12):
            speed = 900.0 + 100.0 * number if self.sample.models is None else None
            newer = replace(self.sample, at_s=100.0 + number, gen_tokens_per_s=speed)
            self.fake.runs.put(replace(view, served=newer))
            screen.pull()
        self.fake.runs.put(replace(view, served=replace(self.sample, at_s=200.0)))


def pictured(*keys: str) -> Callable[..., object]:
    async def run(pilot: object) -> None:
        await after(*keys)(pilot)  # type: ignore[arg-type]
        app = pilot.app  # type: ignore[attr-defined]
        if isinstance(app, Shown) and isinstance(app.screen, RunScreen):
            await app.look_for_a_while()
        await after()(pilot)  # type: ignore[arg-type]

    return run


@by_size
def test_a_busy_server(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    keys = ("2", *("down",) * 3, "enter")
    assert snap_compare(Shown(BUSY), terminal_size=size, run_before=pictured(*keys))


@by_size
def test_the_list_says_tokens_a_second(
    snap_compare: Callable[..., bool], size: tuple[int, int]
) -> None:
    assert snap_compare(Shown(BUSY), terminal_size=size, run_before=pictured("2"))


def test_models_in_memory(snap_compare: Callable[..., bool]) -> None:
    keys = ("2", *("down",) * 3, "enter")
    assert snap_compare(Shown(MODELS), terminal_size=(120, 40), run_before=pictured(*keys))
