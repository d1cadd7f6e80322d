"""What happens in the demo: its runs are started through the same engine as anyone's."""

from __future__ import annotations

import asyncio
import logging

from cockpit.domain.models import HostName
from cockpit.engine.api import EngineApi
from cockpit.errors import CockpitError

log = logging.getLogger(__name__)

LINK_LIMIT_S = 60.0
LOOK_EVERY_S = 0.1
SCRIPT: tuple[tuple[str, HostName], ...] = (
    ("qwen-lora", HostName("vast-a")),
    ("vllm-7b", HostName("a100")),
    ("llama-sft", HostName("h100")),
)
"""Profile and host of each run, in the order in which they start."""


async def direct(engine: EngineApi) -> None:
    """Start every run as soon as its host is live."""
    await asyncio.gather(*(_launch(engine, profile, host) for profile, host in SCRIPT))


async def _launch(engine: EngineApi, profile: str, host: HostName) -> None:
    if host not in engine.hosts:
        return
    deadline_s = engine.now_s() + LINK_LIMIT_S
    while engine.fleet.hosts[host].latest is None and engine.now_s() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_EVERY_S)
    try:
        await engine.launch(await engine.plan(profile, hosts=[host]))
    except CockpitError as error:
        log.warning("demo run %s on %s: %s", profile, host, error)
