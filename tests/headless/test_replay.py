"""`cockpit replay FILE --json`, its exit codes, a copy without names, and a real incident seen again elsewhere."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders.recordings import BOX, RUN, header, story, written
from tests.builders.samples import AT_S
from tests.desk import Desk
from tests.rented import Rented, rented_box

SECRET = 'hf_planted-TOKEN/98"76'
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of"
    " 23.64 GiB of which 808.00 MiB is free."
)
JOB = f"""
echo "login with $TOKEN"
i=0
while [ $i -lt 30 ]; do echo "step $i"; sleep 0.1; i=$((i+1)); done
echo '{OOM}'
sleep 1
exit 1
"""


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


async def test_it_prints_what_happened(desk: Desk) -> None:
    done = await desk.call("replay", str(story(desk.folder / "s.cockpit.gz")), "--json")
    assert (done.code, done.err) == (0, "")
    first = done.events[0]
    assert (first["event"], first["hosts"], first["whole"]) == ("recording", [BOX], True)
    (incident,) = done.named("incident")
    assert (incident["family"], incident["at_s"], incident["run"]) == ("gpu_oom", AT_S + 30, RUN)
    assert incident["line"] == 11 and incident["facts"]["tried_mib"] == 1792
    assert len(done.named("sample")) == len(done.named("log")) == 60
    assert done.named("sample")[7]["gpus"][0]["mem_used_mib"] == 14_800
    assert done.names[:2] == ["recording", "log"] and "run.started" in done.names


async def test_exit_codes_say_what_is_wrong_with_a_file(desk: Desk) -> None:
    bad = written(desk.folder / "bad.cockpit.gz", header(), b"{")
    done = await desk.call("replay", str(bad), "--json")
    assert done.code == 65 and "line 2: no JSON" in done.err and done.out == b""
    done = await desk.call("replay", str(desk.folder / "none"), "--json")
    assert done.code == 74 and "cannot be read" in done.err
    done = await desk.call("replay", "--json")
    assert done.code == 64
    done = await desk.call("replay", str(bad))
    assert done.code == 65 and "line 2: no JSON" in done.err
    good = story(desk.folder / "good.cockpit.gz")
    done = await desk.call("replay", str(good))
    assert done.code == 64 and "--json" in done.err


async def test_a_cut_off_file_plays_as_far_as_it_goes_and_says_so(desk: Desk) -> None:
    path = story(desk.folder / "s.cockpit.gz")
    path.write_bytes(path.read_bytes()[:-400])
    done = await desk.call("replay", str(path), "--json")
    assert done.code == 0 and "cut off" in done.err and not done.events[0]["whole"]
    assert done.named("incident")


async def test_a_copy_without_names_is_made_on_request(desk: Desk) -> None:
    source = story(desk.folder / "s.cockpit.gz", seconds=33)
    target = desk.folder / "shown.cockpit.gz"
    done = await desk.call("replay", str(source), "--redact", str(target))
    assert (done.code, done.out) == (0, b"")
    text = gzip.decompress(target.read_bytes()).decode()
    assert BOX not in text and "alice" not in text
    done = await desk.call("replay", str(target), "--json")
    (incident,) = done.named("incident")
    assert (incident["host"], incident["at_s"]) == ("host-1", AT_S + 30)
    done = await desk.call("replay", str(source), "--redact", str(target))
    assert done.code == 64 and "exists" in done.err


@pytest.mark.sshd
async def test_an_incident_of_a_real_run_is_seen_again_on_another_computer(
    rented: Rented, tmp_path: Path
) -> None:
    path = rented.desk.profile("doomed", JOB, '[env]\nsecrets = ["TOKEN"]\n')
    done = await rented.desk.call("run", path, "--json", env={"TOKEN": SECRET})
    assert done.code == 1
    (lived,) = (one for one in done.named("incident") if one["family"] == "gpu_oom")
    (file,) = (rented.desk.home / "recordings").glob("*-box-gpu_oom-*.cockpit.gz")
    raw = gzip.decompress(file.read_bytes()).decode()
    assert "planted" not in raw and "login with ****" in raw

    elsewhere = Desk(tmp_path / "elsewhere")
    carried = elsewhere.folder / file.name
    carried.write_bytes(file.read_bytes())
    again = await elsewhere.call("replay", str(carried), "--json")
    assert again.code == 0, again.err
    seen = [one for one in again.named("incident") if one["family"] == "gpu_oom"][0]
    same = set(lived) - {"at_s", "event"}
    assert {name: seen[name] for name in same} == {name: lived[name] for name in same}
    assert seen["at_s"] == pytest.approx(lived["at_s"], abs=0.5)
    logs = "".join(one["text"] for one in again.named("log"))
    assert "step 29\n" in logs and OOM in logs
    assert again.named("run.started") and len(again.named("sample")) >= 2
