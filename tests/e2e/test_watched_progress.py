"""A run that hangs, from the card's counters to a line of `cockpit run --json`: real probe, NVML double, real job."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.nvml.double import drop_locks, make_driver, own_cards

pytestmark = [pytest.mark.nvml]

SCRIPT = """
say() { { cat cards; printf '%s\\n' "gpu 0 proc $$ 1000" "$@"; } > next; mv next scenario; }
say "gpu 0 util 97" "gpu 0 power 560"
i=0
while [ $i -lt 60 ]; do i=$((i+1)); echo "step $i/900 loss 1.$i"; sleep 0.1; done
say "gpu 0 util 100" "gpu 0 power 150"
while [ ! -e go ]; do sleep 0.1; done
"""


async def test_a_collective_that_spins_is_an_event_of_its_run(tmp_path: Path) -> None:
    cards = own_cards(1)
    driver = make_driver(tmp_path, cards)
    (tmp_path / "cards").write_text("\n".join(cards) + "\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "hosts.toml").write_text(f'[hosts.here]\nlocal = true\nrun_root = "{tmp_path}/runs"\n')
    profile = tmp_path / "sft.toml"
    profile.write_text(
        f"name = 'sft'\nkind = 'command'\nhosts = ['here']\ncwd = '{tmp_path}'\n[gpus]\nindex = [0]\n"
        f"[watch]\nstall = '3s'\n[command]\nscript = '''{SCRIPT}'''\n"
    )
    env = driver.environ(COCKPIT_HOME=str(home), HOME=str(tmp_path))
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cockpit", "run", str(profile), "--json",
        env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    events = []
    try:

        async def read() -> None:
            assert run.stdout is not None
            async for line in run.stdout:
                events.append(json.loads(line))
                if events[-1]["event"] == "incident":
                    (tmp_path / "go").touch()

        await asyncio.wait_for(read(), 60)
        assert await asyncio.wait_for(run.wait(), 20) == 0
    finally:
        (tmp_path / "go").touch()
        if run.returncode is None:
            run.terminate()
            await run.wait()
        drop_locks(tmp_path)
    [incident] = [event for event in events if event["event"] == "incident"][:1]
    assert (incident["family"], incident["signature"], incident["severity"]) == (
        "hang", "hang-silence", "fatal",
    )  # fmt: skip
    assert incident["facts"]["confidence"] == "likely" and incident["facts"]["step"] == 60
    assert (
        "collective" in incident["summary"]
        and "py-spy dump --pid" in incident["remedies"][0]["text"]
    )
