"""Fleets for the screens' tests: calm, in trouble, hostile, large."""

from __future__ import annotations

import math
from dataclasses import replace

from cockpit.domain.models import HostName
from tests.builders.samples import (
    degraded_sample,
    disk,
    gpu,
    h100,
    host_facts,
    host_sample,
    lost_gpu,
    process,
)
from tests.screens.fake_engine import FakeEngine, leak_incident, oom_incident, run_view

A100 = {
    "name": "NVIDIA A100-SXM4-40GB", "mem_total_mib": 40_960, "power_limit_w": 250.0,
}  # fmt: skip


def wave(base: float, swing: float, count: int = 240) -> list[int | None]:
    return [max(0, min(100, round(base + swing * math.sin(n / 9)))) for n in range(count)]


def calm() -> FakeEngine:
    """Three hosts, six cards, three runs; nothing is wrong."""
    engine = FakeEngine()
    root = disk(free_mib=61_000)
    busy = process(4121, mem_used_mib=23_000)
    engine.with_host(
        host_sample("vast-a", gpus=[gpu(0, mem_used_mib=23_347, processes=(busy,))], disks=(root,)),
        price=0.42,
    )
    cards = [h100(n, processes=(process(900 + n, mem_used_mib=79_000),)) for n in range(2)]
    idle = h100(2, util_pct=0, mem_used_mib=3, power_w=72.0, temp_c=31)
    engine.with_host(
        host_sample(
            "h100",
            gpus=[*cards, idle],
            disks=(disk("/data", free_mib=7_400_000, total_mib=9_000_000),),
            facts=host_facts(platform="lambda", container=False),
            mem_used_mib=420_000,
            mem_total_mib=2_097_152,
        ),
        price=8.90,
    )
    serve = process(77, name="vllm", command="vllm serve Qwen/Qwen2.5-7B-Instruct --port 8000")
    engine.with_host(
        host_sample(
            "a100",
            gpus=[
                gpu(
                    0,
                    util_pct=41,
                    mem_used_mib=26_112,
                    power_w=180.0,
                    temp_c=52,
                    processes=(serve,),
                    **A100,
                ),
                gpu(1, util_pct=0, mem_used_mib=3, power_w=52.0, temp_c=30, **A100),
            ],
            disks=(root,),
            facts=host_facts(platform="runpod"),
        ),
        price=1.10,
    )
    engine.with_history("vast-a", wave(94, 6), [9_000 + 60 * n for n in range(240)])
    engine.with_history("h100", wave(96, 3), [79_000] * 240)
    engine.with_history("a100", wave(40, 25), [20_000 + 25 * n for n in range(240)])
    engine.put_run(run_view())
    engine.put_run(run_view("r-2b", profile="llama-sft", host=HostName("h100"), gpus=(0, 1)))
    engine.put_run(run_view("r-11c0", profile="vllm-7b", kind="vllm", host=HostName("a100")))
    return engine


def trouble() -> FakeEngine:
    """One of each: a lost card, heat, a stale host, one not reachable, a new key, a driver mismatch."""
    engine = calm()
    before = engine.state("h100").latest
    assert before is not None
    more = (lost_gpu(3), h100(4, throttle=("thermal_sw",), temp_c=89, ecc_uncorrected=2))
    engine.fleet.record(replace(before, gpus=before.gpus + more), engine.clock_s - 0.2)
    stale(engine)
    engine.with_host(
        "small-1",
        "unreachable",
        "unreachable",
        price=0.20,
        address="203.0.113.9",
        port=2222,
        timeout_s=10,
    )
    engine.fleet.update(HostName("small-1"), retry_at_s=engine.clock_s + 30)
    engine.with_host("new-box", "host_key", "host_key_unknown")
    engine.with_host(degraded_sample("rtx-lab"))
    engine.with_host("slow", "connecting")
    engine.put_incident(oom_incident())
    engine.put_incident(leak_incident())
    return engine


def stale(engine: FakeEngine, age_s: float = 14) -> FakeEngine:
    """The a100 has not answered for a while."""
    engine.fleet.update(HostName("a100"), received_s=engine.clock_s - age_s)
    engine.fleet.update(HostName("a100"), retry_at_s=engine.clock_s + 4)
    engine.set_link("a100", "stale", "link_lost")
    return engine


def sixteen() -> FakeEngine:
    """One host with sixteen cards, which must stay readable in 80x24."""
    cards = [h100(n, util_pct=100 - n, processes=(process(500 + n),)) for n in range(16)]
    engine = FakeEngine().with_host(host_sample("dgx-h200-east", gpus=cards), price=31.5)
    return engine.with_history("dgx-h200-east", wave(90, 8), [70_000] * 240)


def large(hosts: int = 100, cards: int = 8) -> FakeEngine:
    engine = FakeEngine()
    for number in range(hosts):
        engine.with_host(
            host_sample(f"node-{number:03}", gpus=[h100(n) for n in range(cards)]), price=8.9
        )
    return engine


HOSTILE = (
    "\x1b]0;PWNED-TITLE\x07"
    "\x1b]52;c;UFdORUQ=\x07"
    "\x1b[2J\x1b[31;1mPWNED-CSI"
    "\x9b31mPWNED-C1"
    "\x9d0;PWNED-OSC8\x9c"
    "\u202ePWNED-BIDI\u2066"
    "\x08\x08\r\n\x00"
    "[bold red]PWNED-MARKUP[/] [link=x]"
    "\u200b\ufe0f"
)
"""What a host could put into every text that it sends. Whatever is left of it must be harmless."""


def hostile() -> FakeEngine:
    """Every text that comes from a host, a run's log or a file is an attack."""
    engine = FakeEngine()
    evil = process(4121, name=HOSTILE, user=HOSTILE, command=HOSTILE)
    cards = [
        gpu(0, name="NVIDIA " + HOSTILE, processes=(evil,), throttle=(HOSTILE,)),
        gpu(1, error=HOSTILE, util_pct=None, mem_used_mib=None, uuid=HOSTILE),
    ]
    facts = host_facts(
        hostname=HOSTILE, user=HOSTILE, kernel=HOSTILE, os_name=HOSTILE, python=HOSTILE,
        platform=HOSTILE, driver=HOSTILE, cuda=HOSTILE, topology=(HOSTILE,),
    )  # fmt: skip
    engine.with_host(
        host_sample("evil", gpus=cards, facts=facts, disks=(disk("/" + HOSTILE, free_mib=1),)),
        "live",
    )
    engine.fleet.update(
        HostName("evil"),
        address=HOSTILE,
        key_type=HOSTILE,
        fingerprint=HOSTILE,
        noise=HOSTILE.encode(),
    )
    engine.with_host(degraded_sample("mute", gpu_error=HOSTILE))
    engine.with_host("far", "unreachable", "unreachable", why=HOSTILE, address=HOSTILE)
    engine.with_host("key", "host_key", "host_key_changed", hop=HOSTILE)
    engine.fleet.update(
        HostName("key"), known_fingerprint=HOSTILE, fingerprint=HOSTILE, key_type=HOSTILE
    )
    run = run_view(profile=HOSTILE, host=HostName("evil"), command=(HOSTILE,), tags=(HOSTILE,))
    engine.put_run(run)
    incident = oom_incident(host=HostName("evil"), profile=HOSTILE, state_why=HOSTILE)
    finding = replace(incident.finding, text=HOSTILE, facts={"path": HOSTILE, "tried_mib": 1})
    evidence = tuple(replace(one, text=HOSTILE, source=HOSTILE) for one in incident.evidence)
    engine.put_incident(replace(incident, finding=finding, evidence=evidence))
    return engine
