"""What is looked at on several hosts before any is prepared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from cockpit.config.profile import parse_profile
from cockpit.domain.models import HostName
from cockpit.engine.api import CardChoice, LaunchPlan
from cockpit.engine.gang_plans import agreed, as_one, scripts_present
from cockpit.errors import LinkLost
from cockpit.launchers import build
from cockpit.launchers.base import LaunchFacts
from cockpit.transport.base import Completed, HostTransport
from cockpit.transport.local import LocalTransport

H1, H2 = HostName("h1"), HostName("h2")


class Telling:
    """A host whose Python has these packages; None: it does not answer."""

    def __init__(self, versions: dict[str, str | None] | None) -> None:
        self._versions = versions

    async def run(self, script: bytes, *, timeout_s: float, limit: int) -> Completed:
        if self._versions is None:
            raise LinkLost(host="h2", why="closed")
        return Completed(0, json.dumps(self._versions).encode(), b"")


def plans(cwd: str = "~", rest: str = "") -> list[LaunchPlan]:
    text = f"kind = 'torchrun'\ncwd = '{cwd}'\n[torchrun]\nscript = 'src/train.py'\n{rest}"
    profile = parse_profile(text, name="ddp")
    launch = build(profile, LaunchFacts(nodes=2))
    return [
        LaunchPlan(profile, host, (), (), launch.argv, launch.cwd, {}, (), (), "", None, None, launch=launch)
        for host in (H1, H2)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "one", "two", "differ"),
    [
        ("python", "3.11.7", "3.11.2", False),
        ("python", "3.11.7", "3.12.7", True),
        ("torch", "2.4.0", "2.4.1", True),
        ("torch", "2.4.0", "2.4.0+cu121", False),
        ("torch", "2.4.0+cu118", "2.4.0+cu121", True),
        ("nvidia-nccl-cu12", "2.20.5", "2.18.1", True),
        ("vllm", "0.33.0", None, False),
    ],
    ids=[
        "python-patch", "python-minor", "torch-release", "torch-build-unsaid", "torch-build",
        "nccl", "known-on-one",
    ],
)  # fmt: skip
async def test_versions_that_differ_are_named_with_their_hosts(
    name: str, one: str, two: str | None, differ: bool
) -> None:
    hosts = {H1: Telling({name: one}), H2: Telling({name: two})}
    checks = await agreed(plans(), cast(dict[HostName, HostTransport], hosts))
    assert len(checks) == (1 if differ else 0)
    for check in checks:
        assert (check.code, check.verdict) == ("gang_versions_differ", "blocked")
        assert check.facts == {"name": name, "found": f"h1 {one}, h2 {two}"}


async def test_a_host_that_does_not_answer_speaks_against_nothing() -> None:
    hosts = {H1: Telling({"torch": "2.4.0"}), H2: Telling(None)}
    assert await agreed(plans(), cast(dict[HostName, HostTransport], hosts)) == []
    assert await scripts_present(plans(), {H2: cast(HostTransport, hosts[H2])}) == []


async def test_a_script_that_a_host_lacks_is_named_unless_it_is_sent(tmp_path: Path) -> None:
    transport = LocalTransport(H2)
    await transport.connect()
    try:
        hosts = {H2: cast(HostTransport, transport)}
        cwd = tmp_path / "it's here"
        here = [replace(one, cwd=str(cwd)) for one in plans()]
        (missing,) = await scripts_present(here, hosts)
        assert (missing.code, missing.verdict) == ("gang_script_missing", "blocked")
        assert missing.facts == {"host": "h2", "path": f"{cwd}/src/train.py"}
        (cwd / "src").mkdir(parents=True)
        (cwd / "src" / "train.py").touch()
        assert await scripts_present(here, hosts) == []
        assert await scripts_present(plans(rest="[code]\npath = '.'\n"), hosts) == []
    finally:
        await transport.close()


def test_hosts_that_would_take_different_numbers_of_cards_are_named() -> None:
    one, two = plans()
    card = CardChoice(H1, 0, "H100", None, None, None)
    assert as_one([one, two], []).checks == ()
    (check,) = as_one(
        [replace(one, cards=(card, replace(card, index=1))), replace(two, cards=(card,))], []
    ).checks
    assert (check.code, check.verdict, check.facts) == (
        "gang_cards_differ",
        "blocked",
        {"found": "h1 2, h2 1"},
    )
