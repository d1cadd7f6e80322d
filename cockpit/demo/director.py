"""What happens in the demo: its runs are started through the same engine as anyone's.

Nothing is staged beyond that: each run goes wrong by itself, and what is said of it the detectors say.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from cockpit.domain.models import HostName
from cockpit.engine.api import EngineApi
from cockpit.errors import CockpitError

log = logging.getLogger(__name__)

LINK_LIMIT_S = 60.0
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Start:
    """A run of the script: its profile, its host, and how long after the host is live it begins."""

    profile: str
    host: HostName
    after_s: float = 0.0


SCRIPT: tuple[Start, ...] = (
    Start("qwen-lora", HostName("vast-a")),
    Start("vllm-7b", HostName("a100")),
    Start("llama-sft", HostName("h100")),
    Start("vit-images", HostName("a6000")),
    Start("vllm-long", HostName("vast-b"), 15.0),
    Start("phi-sft", HostName("a6000"), 30.0),
    Start("whisper-ft", HostName("vast-b"), 45.0),
)
"""In the first three minutes: a KV cache that does not fit, a starved input pipeline, fragmented memory,
a leak, a full disk, a hang, an Xid."""


async def direct(engine: EngineApi, pace: float = 1.0) -> None:
    """Start every run in its time; `pace` is how long a second of the script takes."""
    await asyncio.gather(*(_launch(engine, start, pace) for start in SCRIPT))


async def _launch(engine: EngineApi, start: Start, pace: float) -> None:
    if start.host not in engine.hosts:
        return
    deadline_s = engine.now_s() + LINK_LIMIT_S
    while engine.fleet.hosts[start.host].latest is None and engine.now_s() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_EVERY_S)
    await asyncio.sleep(start.after_s * pace)
    try:
        await engine.launch(await engine.plan(start.profile, hosts=[start.host]))
    except CockpitError as error:
        log.warning("demo run %s on %s: %s", start.profile, start.host, error)
