"""A run on two hosts with networks of their own: they meet, finish together, and fail together.

`torchrun` is a small program of ours that meets as the real one does; COCKPIT_TEST_TORCH names the folder of a
Python environment with the real one, for the test that needs it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.desk import until
from tests.networks import NetworkedDesk, Wired, wired
from tests.servers import Identity, OpenSshServer, openssh

pytestmark = pytest.mark.sshd

TORCHRUN = f"""#!{sys.executable}
import os, runpy, socket, sys
words = sys.argv[1:]
said = {{}}
while words and words[0].startswith("--"):
    name = words.pop(0)
    said[name] = words.pop(0)
rank, address = int(said["--node-rank"]), (said["--master-addr"], int(said["--master-port"]))
if rank == 0:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(1)
    peer, _ = listener.accept()
else:
    import time
    for _ in range(200):
        try:
            peer = socket.create_connection(address, 1)
            break
        except OSError:
            time.sleep(0.05)
os.environ["RANK"] = str(rank)
sys.argv = words
runpy.run_path(words[0], {{"peer": peer}}, "__main__")
"""
TRAIN = """
import os, sys, time
rank, way = os.environ["RANK"], os.environ["GLOO_SOCKET_IFNAME"]
peer.sendall(rank.encode())
print(f"rank {rank} of {os.environ['NNODES']} by {way} heard {peer.recv(1).decode()}", flush=True)
open(os.path.expanduser("~/met"), "w").close()
while sys.argv[1] == "wait":
    time.sleep(0.05)
    if rank == "1" and os.path.exists(os.path.expanduser("~/fail")):
        sys.exit(7)
"""


@dataclass
class Pair:
    desk: NetworkedDesk
    wires: Wired
    hosts: tuple[OpenSshServer, OpenSshServer]

    def home(self, node: int) -> Path:
        return self.hosts[node].folder / "home"

    def runs(self) -> list[Path]:
        return [path for node in (0, 1) for path in self.home(node).glob("**/v1/*/ddp-*")]

    def profile(self, how: str) -> str:
        return self.desk.file(
            "ddp.toml",
            'name = "ddp"\nkind = "torchrun"\nnodes = 2\nfrom = ["n1", "n2"]\n'
            f'[torchrun]\nscript = "train.py"\nargs = ["{how}"]\n'
            '[env]\nvenv = "~/env"\n[stop]\nint = "1s"\nterm = "1s"\n',
        )


def furnish(home: Path) -> None:
    (home / "env" / "bin").mkdir(parents=True)
    (home / "env" / "bin" / "python").symlink_to(sys.executable)
    (home / "env" / "bin" / "torchrun").write_text(TORCHRUN)
    (home / "env" / "bin" / "torchrun").chmod(0o755)
    (home / "train.py").write_text(TRAIN)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    key = Identity.make(tmp_path / "id_test")
    async with AsyncExitStack() as stack:
        wires = stack.enter_context(wired())
        hosts, toml, known = [], "", ""
        for number, network in enumerate(wires.nodes, 1):
            sshd = await stack.enter_async_context(
                openssh(
                    tmp_path / f"sshd{number}",
                    authorized=[key],
                    address=f"10.99.{number}.2",
                    enter=network.enter,
                )
            )
            furnish(sshd.folder / "home")
            hosts.append(sshd)
            known += sshd.known_hosts_line
            toml += (
                f'[hosts.n{number}]\nhost = "{sshd.address}"\nport = {sshd.port}\n'
                f'user = "{sshd.user}"\nidentity = "{key.file}"\n'
            )
        desk = NetworkedDesk(tmp_path / "desk", wires.client)
        desk.hosts(toml)
        (desk.home / "known_hosts").write_text(known)
        yield Pair(desk, wires, (hosts[0], hosts[1]))
        assert await desk.clear() == [], "the test left processes"


async def test_both_ranks_meet_and_finish(pair: Pair) -> None:
    done = await pair.desk.call("run", pair.profile("end"))
    assert done.code == 0, (done.err, done.out)
    assert done.out == b"rank 0 of 2 by data0 heard 1\n"
    assert "10.99.9.1" in done.err
    listed = {row["run"]: row for row in (await pair.desk.call("ps", "--json")).events}
    first, second = sorted(listed)
    assert second == f"{first}-r1" and (listed[first]["host"], listed[second]["host"]) == (
        "n1",
        "n2",
    )
    other = await pair.desk.call("logs", second)
    assert other.out == b"rank 1 of 2 by data0 heard 0\n"
    again = await pair.desk.call("logs", first, "--rank", "1")
    by_name = await pair.desk.call("logs", listed[first]["name"])
    assert (again.out, by_name.out) == (other.out, done.out)
    none = await pair.desk.call("logs", second, "--rank", "2")
    assert none.code == 64 and "has 2 ranks" in none.err
    assert (await pair.desk.call("wait", first)).code == 0


async def test_the_rank_that_fails_first_is_named_and_the_other_is_stopped(pair: Pair) -> None:
    process = await pair.desk.start("run", pair.profile("wait"), "--json")
    await until(lambda: (pair.home(0) / "met").exists() and (pair.home(1) / "met").exists(), "met")
    (pair.home(1) / "fail").touch()
    done = await pair.desk.end_of(process)
    assert done.code == 7, done.err
    assert "Rank 1 on n2 failed first (code 7)" in done.err
    (incident,) = [one for one in done.named("incident") if one["signature"] == "rank-failed"]
    assert (incident["host"], incident["facts"]["rank"], incident["facts"]["exitcode"]) == (
        "n2",
        1,
        7,
    )
    rows = (await pair.desk.call("ps", "--json")).events
    assert {row["state"] for row in rows} == {"exited"} and len(rows) == 2
    assert (await pair.desk.call("wait", done.events[0]["run"])).code == 7


@pytest.mark.parametrize(("whole", "code"), [(False, 137), (True, 75)], ids=["job", "whole"])
async def test_a_killed_rank_is_the_culprit_too(pair: Pair, whole: bool, code: int) -> None:
    """Of one that was killed whole nobody knows how it ended, whatever the others ended with."""
    process = await pair.desk.start("run", pair.profile("wait"))
    await until(lambda: (pair.home(0) / "met").exists() and (pair.home(1) / "met").exists(), "met")
    (path,) = (path for path in pair.runs() if path.name.endswith("-r1"))
    run = path.name
    other = await pair.desk.start("attach", run[:-3])
    assert other.stdout is not None
    await other.stdout.readline()
    if whole:
        os.kill(json.loads((path / "sup.json").read_bytes())["pid"], signal.SIGKILL)
    for pid in pair.desk.of_run(run):
        if whole or "train.py" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    for done in (await pair.desk.end_of(process), await pair.desk.end_of(other)):
        assert done.code == code and "Rank 1 on n2 failed first" in done.err
    await until(lambda: not pair.desk.of_run(run) and not pair.desk.of_run(run[:-3]), "all gone")


async def test_stop_ends_every_rank(pair: Pair) -> None:
    run = await pair.desk.detached(pair.profile("wait"))
    await until(lambda: (pair.home(0) / "met").exists() and (pair.home(1) / "met").exists(), "met")
    stopped = await pair.desk.call("stop", run)
    assert stopped.code == 0, stopped.err
    assert pair.desk.of_run(run) == pair.desk.of_run(f"{run}-r1") == []


async def test_hosts_that_cannot_meet_are_named_before_anything_starts(pair: Pair) -> None:
    pair.wires.cut()
    done = await pair.desk.call("run", pair.profile("end"))
    assert done.code == 69 and done.out == b""
    assert "n2 cannot reach n1" in done.err and "10.99.9.1" in done.err
    assert pair.runs() == []


async def test_versions_that_differ_start_nothing(pair: Pair) -> None:
    for node, version in enumerate(("2.4.0", "2.5.1")):
        found = pair.home(node) / "env" / f"torch-{version}.dist-info"
        found.mkdir()
        (found / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        python = pair.home(node) / "env" / "bin" / "python"
        python.unlink()
        python.write_text(f'#!/bin/sh\nPYTHONPATH={found.parent} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
    done = await pair.desk.call("run", pair.profile("end"))
    assert done.code == 69 and done.out == b""
    assert "torch differs between the hosts: n1 2.4.0, n2 2.5.1." in done.err
    assert pair.runs() == []


async def test_a_script_that_one_host_lacks_starts_nothing(pair: Pair) -> None:
    (pair.home(1) / "train.py").unlink()
    done = await pair.desk.call("run", pair.profile("end"))
    assert done.code == 69 and "n2 has no ~/train.py." in done.err
    assert pair.runs() == []


async def test_a_host_that_cannot_be_prepared_holds_nobody_else(pair: Pair) -> None:
    (pair.home(1) / "env" / "bin" / "python").unlink()
    done = await pair.desk.call("run", pair.profile("end"))
    assert done.code == 69 and "env/bin/python" in done.err
    rows = (await pair.desk.call("ps", "--json")).events
    assert [(row["host"], row["state"], row["code"]) for row in rows] in (
        [],
        [("n1", "exited", None)],
    )
    assert not any(pair.desk.of_run(path.name) for path in pair.runs())


async def test_a_dry_run_shows_every_rank(pair: Pair) -> None:
    (plan,) = (await pair.desk.call("run", pair.profile("end"), "--dry-run", "--json")).events
    assert [node["host"] for node in plan["nodes"]] == ["n2"]
    assert plan["nodes"][0]["argv"][plan["nodes"][0]["argv"].index("--node-rank") + 1] == "1"
    plain = await pair.desk.call("run", pair.profile("end"), "--dry-run")
    assert "rank 1" in plain.out.decode() and "n2" in plain.out.decode()
    assert pair.runs() == []


DDP = """
import os, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print("rank %d sum %g by %s" % (dist.get_rank(), total, os.environ["GLOO_SOCKET_IFNAME"]), flush=True)
open(os.path.expanduser("~/met"), "w").close()
while sys.argv[1] == "wait":
    if dist.get_rank() == 1 and os.path.exists(os.path.expanduser("~/fail")):
        os._exit(7)
    time.sleep(0.05)
    dist.all_reduce(total)
"""
OLD_SPELLING = """#!/bin/sh
for word; do
  case $word in --*-*) word=--$(printf %s "${word#--}" | tr - _) ;; esac
  set -- "$@" "$word"; shift
done
exec "$(dirname "$0")/python" -m torch.distributed.run "$@"
"""
"""torchrun before 2.0 knows its options with underscores only."""


@pytest.fixture
def real_torch(pair: Pair) -> Pair:
    folder = os.environ.get("COCKPIT_TEST_TORCH")
    if not folder:
        pytest.skip("COCKPIT_TEST_TORCH names no Python environment with torch")
    for node in (0, 1):
        home = pair.home(node)
        (home / "env" / "bin" / "python").unlink()
        own = f"TMPDIR={home} exec {folder}/bin/python"  # torchrun leaves a folder there when it is stopped
        (home / "env" / "bin" / "python").write_text(f'#!/bin/sh\n{own} "$@"\n')
        (home / "env" / "bin" / "python").chmod(0o755)
        (home / "env" / "bin" / "torchrun").write_text(OLD_SPELLING)
        (home / "train.py").write_text(DDP)
    return pair


async def test_real_ddp_over_gloo_finishes_on_both_ranks(real_torch: Pair) -> None:
    done = await real_torch.desk.call("run", real_torch.profile("end"))
    assert done.code == 0, done.out.decode()
    assert b"rank 0 sum 3 by data0" in done.out
    (second,) = (path for path in real_torch.runs() if path.name.endswith("-r1"))
    assert b"rank 1 sum 3 by data0" in (second / "log").read_bytes()


async def test_a_real_rank_that_fails_stops_the_other(real_torch: Pair) -> None:
    process = await real_torch.desk.start("run", real_torch.profile("wait"))
    await until(lambda: all((real_torch.home(node) / "met").exists() for node in (0, 1)), "met")
    (real_torch.home(1) / "fail").touch()
    done = await real_torch.desk.end_of(process)
    assert done.code == 1 and "failed first" in done.err  # torchrun's own code for a failed worker
    runs = [path.name for path in real_torch.runs()]
    await until(lambda: not any(real_torch.desk.of_run(run) for run in runs), "all are gone")
