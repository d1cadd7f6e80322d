"""A fleet with incidents as they are after some hours: with curves, contexts, steps, mutes and a past."""

from __future__ import annotations

from dataclasses import replace

from cockpit.domain.incident_proof import Curve, Holder, Proof, Step
from cockpit.domain.incidents import Evidence, Finding, Incident, Remedy
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import HOUR_S, mute_for, mute_of
from cockpit.engine.api import LogLine
from tests.screens.fake_engine import WALL_S, FakeEngine, leak_incident, oom_incident
from tests.screens.run_scenes import OOM_LINES, busy_engine

OOM_KEY, LEAK_KEY = "r-7f3a:gpu_oom", "r-11c0:leak"
OFFSET = 1_190_112
MACHINE = {
    "gpu": "NVIDIA GeForce RTX 4090", "driver": "550.54.15", "cuda": "12.4",
    "os": "Ubuntu 22.04", "kernel": "5.15.0-105-generic", "platform": "vast",
}  # fmt: skip


def climb() -> tuple[float | None, ...]:
    """Ten minutes of a training: loading, level, and the climb that ends it. MiB."""
    loading: list[float | None] = [None] * 4 + [900.0 * step for step in range(1, 21)]
    level = [18_900.0 + (n % 7) * 90 for n in range(82)]
    end = [19_400.0 + 280 * n for n in range(14)]
    return tuple([*loading, *level, *end])


def slope() -> tuple[float | None, ...]:
    """Nine hours of a server that leaks."""
    return tuple(21_700.0 + 36.7 * n for n in range(104))


def oom() -> Incident:
    incident = oom_incident()
    opened_s = incident.opened_s
    finding = replace(incident.finding, line=405, text=OOM_LINES[-1], cause="activations")
    evidence = (
        Evidence(opened_s, "log", OOM_LINES[-1], OFFSET, 405),
        Evidence(opened_s + 2, "exit", "state exited, code 1"),
    )
    proof = Proof(
        Curve("gpu", 5.0, opened_s, climb(), 24_564.0, gpu=0),
        (
            Holder(4121, "python", "root", 22_700, "r-7f3a"),
            Holder(977, "jupyter-lab", "anna", 640),
        ),
        MACHINE,
    )
    return replace(
        incident,
        finding=finding,
        evidence=evidence,
        proof=proof,
        steps=(Step(opened_s, "open"),),
        recording="vast-a-20231114-2212.rec",
    )


def leak() -> Incident:
    incident = leak_incident()
    finding = replace(
        incident.finding,
        signature="memory-trend-88",
        cause="leak_gpu",
        facts={**incident.finding.facts, "in_use_mib": 25_500, "total_mib": 40_960, "pid": 88},
        remedies=(Remedy("snapshot_memory"), Remedy("restart_on_schedule")),
    )
    curve = Curve("process", 320.0, incident.opened_s, slope(), 40_960.0, "vllm 88", 0)
    proof = Proof(
        curve, (Holder(88, "vllm", "root", 25_500, "r-11c0"),), {**MACHINE, "gpu": "A100"}
    )
    steps = (
        Step(WALL_S - 3000, "open"),
        Step(WALL_S - 2000, "recovered"),
        Step(WALL_S - 240, "again"),
    )
    return replace(incident, finding=finding, proof=proof, steps=steps, count=9)


def other(family: str, severity: str, key: str, minutes: int, **changes: object) -> Incident:
    at_s = WALL_S - 60 * minutes
    finding = Finding(family, f"{family}-x", severity, text=f"what the log says of {family}")  # type: ignore[arg-type]
    incident = Incident(
        key=key, finding=finding, opened_s=at_s, last_s=at_s, host=HostName("h100"), gpu=2,
        steps=(Step(at_s, "open"),),
    )  # fmt: skip
    return replace(incident, **changes)  # type: ignore[arg-type]


def storied() -> FakeEngine:
    """busy_engine() with all of it."""
    engine = busy_engine()
    hang = other("hang", "warning", "r-20b1:hang", 12, run=RunId("r-20b1"), profile="llama-sft")
    use: tuple[float | None, ...] = (*[96.0] * 90, *[100.0] * 12, *[0.0] * 18)
    curve = Curve("util", 5.0, hang.opened_s, use, 100.0, gpu=2)
    disk = other("disk", "warning", "h100:disk", 30, gpu=None)
    settled = other("starved", "warning", "h100:starved", 95, state="recovered")
    steps = (*settled.steps, Step(WALL_S - 4000, "recovered"))
    for one in (
        oom(),
        leak(),
        replace(hang, proof=Proof(curve, ()), state="seen"),
        disk,
        replace(settled, steps=steps),
        other(
            "nan",
            "fatal",
            "r-0a41:nan",
            1400,
            run=RunId("r-0a41"),
            profile="qwen-lora",
            state="closed",
            state_why="fixed",
        ),
    ):
        engine.incidents.put(one)
    rule = mute_for(disk, "host", WALL_S - 60, HOUR_S)
    engine.mutes = (rule,)
    for one in engine.incidents.all():
        engine.incidents.put(replace(one, mute=mute_of(one, engine.mutes, WALL_S)))
    engine.earlier = (
        other(
            "gpu_oom",
            "fatal",
            "run:r-old/gpu_oom/torch",
            3000,
            run=RunId("r-old"),
            profile="qwen-lora",
        ),
        oom(),
    )
    engine.contexts[OFFSET] = tuple(
        LogLine(number, OFFSET - 100 * (5 - place), text)
        for place, (number, text) in enumerate(
            zip(range(400, 406), ("{'loss': 1.8342}", *OOM_LINES), strict=True)
        )
    )
    return engine
