"""A fleet with runs, logs, incidents and a plan: what the screens about runs are shown with."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from cockpit import app as app_module
from cockpit.config.paths import Home
from cockpit.config.profile import load_profile
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import Progress
from cockpit.engine.api import CardChoice, Check, LaunchPlan, LogLine, ProfileEntry
from cockpit.widgets.options import UiOptions
from tests.builders.samples import gpu, h100, host_sample, process
from tests.screens.capture import CapturingApp
from tests.screens.fake_engine import (
    WALL_S,
    FakeEngine,
    FakeLog,
    leak_incident,
    oom_incident,
    run_view,
)

QUEUED, OOM, TRAINING, SERVING, DONE = (
    RunId(run) for run in ("r-3d77", "r-7f3a", "r-20b1", "r-11c0", "r-0a41")
)
PROFILES = Path(__file__).parents[2] / "profiles"
OOM_LINES = (
    "Traceback (most recent call last):",
    '  File "/root/qwen/train.py", line 88, in <module>',
    "    trainer.train()",
    '  File "/opt/conda/lib/python3.11/site-packages/transformers/trainer.py", line 2052, in train',
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total "
    "capacity of 23.60 GiB of which 809.00 MiB is free. Process 4121 has 22.80 GiB in use.",
)


def training_lines(count: int = 400, *, upto_s: float = WALL_S - 34) -> list[LogLine]:
    """A fine-tune that logs every 3 s, with a warning and a line of wide characters in it."""
    lines = []
    for number in range(1, count + 1):
        text = f"{{'loss': {3 - number * 1.2 / count:.4f}, 'grad_norm': 0.71, 'learning_rate': 8.1e-05}}"
        spans: tuple[tuple[int, int, str], ...] = ()
        if number % 60 == 17:
            text = "WARNING: the tokenizer has no pad token, using eos"
            spans = ((0, 8, "yellow"),)
        if number % 90 == 40:
            text = "评估：第 800 步，验证集 loss 1.91，显存占用 18.9/23.6 GiB"
        at_s = upto_s - (count - number) * 3.0
        lines.append(LogLine(number, number * 76, text, spans, at_s))
    return lines


def oom_log(count: int = 400) -> FakeLog:
    """The same fine-tune to its end; its last line opened the incident."""
    lines = training_lines(count)
    for text in OOM_LINES:
        fatal = text.startswith("torch.")
        lines.append(
            LogLine(
                len(lines) + 1, len(lines) * 76, text, (), WALL_S - 33, "fatal" if fatal else None
            )
        )
    return FakeLog([*lines], ended=True)


def live_log(count: int = 400) -> FakeLog:
    log = FakeLog([*training_lines(count, upto_s=WALL_S - 1)])
    log.open_text = " 41%|████▏     | 812/2000 [41:12<59:40,  2.97s/it]"
    return log


def memory_history(points: int = 600, total_mib: int = 24_564) -> list[int]:
    """Level for long, then the climb that ends a run."""
    level = [int(total_mib * 0.77)] * (points - 40)
    climb = [int(total_mib * (0.77 + 0.2 * step / 40)) for step in range(40)]
    return [int(total_mib * 0.1 * step) for step in range(7)] + level[7:] + climb


def busy_engine() -> FakeEngine:
    """Three hosts, five runs in five states, two incidents."""
    engine = FakeEngine()
    card = gpu(0, mem_used_mib=23_347, processes=(process(4121, run=RunId("r-7f3a")),))
    engine.with_host(host_sample("vast-a", gpus=[card]), price=0.42)
    cards = [h100(n, processes=(process(900 + n),)) for n in range(4)]
    cards += [h100(n, mem_used_mib=4, util_pct=0) for n in range(4, 8)]
    engine.with_host(host_sample("h100", gpus=cards), price=8.90)
    engine.with_host("a100", "unreachable", "link_lost", price=1.10)
    memory = memory_history()
    engine.with_history("vast-a", [90] * len(memory), memory)
    views = (
        run_view(state="exited", code=1, ended_s=WALL_S - 33),
        run_view(
            "r-20b1", profile="llama-sft", host=HostName("h100"), gpus=(0, 1, 2, 3), state="running",
            started_s=WALL_S - 7_500, progress=Progress(1204, 8000, loss=1.12, step_s=1.1, eta_s=7_476),
        ),
        run_view(
            "r-11c0", profile="vllm-7b", kind="vllm", host=HostName("a100"), state="unreachable",
            reason="unreachable", started_s=WALL_S - 40_000, progress=Progress(),
        ),
        run_view(
            "r-3d77", profile="eval-1", host=HostName("h100"), gpus=(), state="queued",
            started_s=None, progress=Progress(),
        ),
        run_view(
            "r-0a41", profile="qwen-lora", state="exited", code=0, started_s=WALL_S - 90_000,
            ended_s=WALL_S - 83_000, progress=Progress(2000, 2000, loss=1.61),
        ),
    )  # fmt: skip
    for view in views:
        engine.runs.put(view)
        engine.logs[view.run] = live_log()
    engine.logs[RunId("r-7f3a")] = oom_log()
    engine.incidents.put(_oom())
    engine.incidents.put(leak_incident())
    engine.profile_entries = profile_entries()
    for entry in engine.profile_entries:
        engine.plans[str(entry.path)] = plan_of(entry)
    engine.overrides["r-7f3a:gpu_oom"] = ('accelerate.args=["--batch", "4"]',)
    return engine


def _oom() -> Incident:
    incident = oom_incident()
    finding = replace(incident.finding, line=405, text=OOM_LINES[-1])
    evidence = tuple(replace(one, line=405, text=OOM_LINES[-1]) for one in incident.evidence)
    return replace(incident, finding=finding, evidence=evidence)


def profile_entries() -> list[ProfileEntry]:
    """The shipped profiles as the engine lists them."""
    home = Home(Path(tempfile.gettempdir()) / "no-such-home")
    entries = []
    for path in sorted(PROFILES.glob("*.toml")):
        profile = load_profile(path, home)
        entries.append(
            ProfileEntry(profile.name, path, "shipped", profile.kind, profile.description)
        )
    return entries


def plan_of(entry: ProfileEntry) -> LaunchPlan:
    """A plan as the engine would make it on this fleet."""
    home = Home(Path(tempfile.gettempdir()) / "no-such-home")
    profile = load_profile(entry.path, home)
    candidates = (
        CardChoice(HostName("h100"), 4, "NVIDIA H100 80GB HBM3", 81_555, 81_559),
        CardChoice(HostName("h100"), 5, "NVIDIA H100 80GB HBM3", 81_555, 81_559),
        CardChoice(HostName("h100"), 0, "NVIDIA H100 80GB HBM3", 1_585, 81_559, "llama-sft"),
        CardChoice(HostName("vast-a"), 0, "NVIDIA GeForce RTX 4090", 1_217, 24_564, "root:python"),
    )
    argv = (
        "vllm",
        "serve",
        "Qwen/Qwen2.5-7B-Instruct",
        "--port",
        "8000",
        "--gpu-memory-utilization",
        "0.9",
    )
    return LaunchPlan(
        profile=profile,
        host=HostName("h100"),
        cards=candidates[:1],
        candidates=candidates,
        argv=argv,
        cwd="/root/serve",
        env_set={"HF_HOME": "/data/hf", "CUDA_VISIBLE_DEVICES": "4"},
        env_secret_names=("HF_TOKEN",),
        forwards=((8000, 8000),),
        script="cd /root/serve\nexport CUDA_VISIBLE_DEVICES=4\nexec " + " ".join(argv),
        price_per_h=8.90,
        currency="USD",
        checks=(
            Check("python_found", "ok", {"version": "3.11.9"}),
            Check("port_free", "ok", {"port": 8000}),
            Check("disk_room", "warning", {"path": "/data", "free_gib": 41}),
        ),
    )


class WatchedApp(CapturingApp):
    """The real app; it keeps what was copied and said, and can be read as text."""

    CSS_PATH = Path(app_module.__file__).parent / "screens" / "base.tcss"

    def __init__(self, engine: FakeEngine, options: UiOptions | None = None) -> None:
        super().__init__(engine, options=options)
        self.copied = ""
        self.said: list[str] = []

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text

    def notify(self, message: str, **settings: object) -> None:
        self.said.append(message)

    @property
    def rows(self) -> list[str]:
        strips = self.screen._compositor.render_strips(self.size)
        return ["".join(segment.text for segment in strip) for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)


@asynccontextmanager
async def cockpit(
    engine: FakeEngine, *keys: str, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[WatchedApp, Pilot[str]]]:
    """The app on this engine after these keys, settled."""
    app = WatchedApp(engine)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        yield app, pilot


async def workers_done(app: App[Any]) -> None:
    """Until no worker is left; one that a newer one replaced is no failure."""
    while app.workers:
        try:
            await app.workers.wait_for_complete()
        except WorkerCancelled:
            continue
        return
