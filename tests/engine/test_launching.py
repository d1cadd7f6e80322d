"""From a profile to a plan and to what a host is asked for: hosts, cards, queue, secrets, patches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.incidents import Finding, Incident, Remedy
from cockpit.domain.models import GpuSample, HostSample, MigInstance, ProcessSample
from cockpit.domain.run_spec import RestartPolicy
from cockpit.engine.launching import overrides_of
from cockpit.engine.run_secrets import known_secrets, secret_values
from cockpit.errors import HostUnreachable, LaunchFailed, NotNow, ProfileError
from tests.builders.runs import HERE, Bench, make_bench
from tests.builders.samples import host_sample

GPUS = "[gpus]\n"


def card(index: int, used: int = 0, *, held: bool = False) -> GpuSample:
    processes = (ProcessSample(pid=7, name="python", user="ann"),) if held else ()
    return GpuSample(
        index=index,
        uuid=f"GPU-{index}",
        name="H100",
        util_pct=0,
        mem_used_mib=used,
        mem_total_mib=80_000,
        processes=processes,
    )


def sample(*gpus: GpuSample) -> HostSample:
    return replace(host_sample(gpus=0), host=HERE, gpus=gpus)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path, sample=sample(card(0, 9000, held=True), card(1), card(2), card(3)))


def live(bench: Bench) -> Bench:
    bench.parts.fleet.set_link(HERE, "live")
    return bench


def server(bench: Bench, more: str) -> str:
    path = bench.folder / "serve.toml"
    path.write_text(f"name = 'serve'\nkind = 'vllm'\n[vllm]\nmodel = 'm'\n{more}")
    return str(path)


async def test_a_run_without_cards_needs_a_connection_and_no_sample(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    path = bench.profile("plain", "true")
    with pytest.raises(HostUnreachable) as caught:
        await bench.runs.plan(path)
    assert caught.value.code == "no_host_ready"
    bench.connect()
    plan = await bench.runs.plan(path)
    assert (plan.host, plan.cards, plan.blocked) == (HERE, (), False)
    assert [check.code for check in plan.checks] == ["host_connected"]
    with pytest.raises(HostUnreachable):
        await bench.runs.plan(bench.profile("cards", "true", GPUS))
    await bench.runs.close()


async def test_the_request_names_every_card_that_would_do(bench: Bench) -> None:
    plan = await live(bench).runs.plan(server(bench, GPUS + "count = 2\n"))
    assert [one.index for one in plan.cards] == [1, 2] and plan.acceptable == (1, 2, 3)
    assert plan.argv[plan.argv.index("--tensor-parallel-size") + 1] == "2"
    spec = await bench.runs.specify(plan)
    assert spec.gpus is not None
    assert ([one.uuid for one in spec.gpus.cards], spec.gpus.count) == (
        ["GPU-1", "GPU-2", "GPU-3"],
        2,
    )
    assert spec.env["CUDA_VISIBLE_DEVICES"] == "1,2"


async def test_a_queued_run_takes_as_many_cards_as_it_asks_for_and_not_all_that_would_do(
    bench: Bench,
) -> None:
    busy = [card(index, 60_000, held=True) for index in range(8)]
    bench.parts.fleet.record(sample(*busy), 0.0)
    plan = await live(bench).runs.plan(server(bench, GPUS + "count = 2\nwait = '1h'\n"))
    assert plan.queued and len(plan.cards) == 2 and len(plan.acceptable) == 8
    assert plan.argv[plan.argv.index("--tensor-parallel-size") + 1] == "2"
    spec = await bench.runs.specify(plan)
    assert spec.gpus is not None
    assert (spec.gpus.count, spec.gpus.wait_s, spec.gpus.min_free_mib) == (2, 3600.0, 76_000)
    assert [check.code for check in plan.checks if check.verdict == "warning"] == ["cards_queued"]


async def test_named_cards_of_the_command_line_count_while_queueing_too(bench: Bench) -> None:
    path = bench.profile("p", "true", GPUS + "count = 1\nwait = '1h'\n")
    plan = await live(bench).runs.plan(path, gpus=(0, 1))
    assert plan.queued and plan.acceptable == (0, 1) and len(plan.cards) == 2
    spec = await bench.runs.specify(plan)
    assert spec.gpus is not None and spec.gpus.count == 2


async def test_no_room_and_no_wait_is_not_now_with_what_was_short(bench: Bench) -> None:
    with pytest.raises(NotNow) as caught:
        await live(bench).runs.plan(bench.profile("p", "true", GPUS + "count = 4\n"))
    facts = caught.value.facts
    assert (facts["count"], facts["free_cards"], facts["cards"]) == (4, 3, 4)
    assert facts["holders"] == ("here:0 ann: python",)
    assert facts["nearest"] == ("here 3/4, 78.1 GiB",)


async def test_too_few_hosts_for_several_nodes_and_a_host_that_is_not_there_is_a_mistake(
    bench: Bench,
) -> None:
    path = bench.folder / "n.toml"
    text = Path(bench.profile("p", "true")).read_text()
    path.write_text("nodes = 2\nfrom = ['here', 'gone']\n" + text)
    with pytest.raises(NotNow) as refused:
        await live(bench).runs.plan(str(path), hosts=[HERE])
    assert refused.value.code == "gang_too_few_hosts"
    assert (refused.value.facts["nodes"], refused.value.facts["found"]) == (2, 1)
    path.write_text("hosts = ['gone', 'here']\n" + text)
    with pytest.raises(ProfileError) as wrong:
        await bench.runs.plan(str(path))
    assert [problem.code for problem in wrong.value.problems] == ["profile_host_unknown"]
    assert (await bench.runs.plan(str(path), hosts=[HERE])).host == HERE


async def test_restarts_and_the_hosts_hooks_are_in_what_the_host_is_asked_for(bench: Bench) -> None:
    more = (
        "[hooks]\nbefore = 'nvidia-smi'\nafter = 'sync'\n[log]\nmax = '1 GiB'\n"
        "[restart]\non = 'always'\nmax = 5\nbackoff = '1m'\nresume_args = ['--resume']\n"
    )
    plan = await live(bench).runs.plan(bench.profile("again", "true", more))
    spec = await bench.runs.specify(plan)
    assert spec.restart == RestartPolicy("always", 5, 60.0, ("--resume",))
    assert (spec.before, spec.after, spec.expect) == ("nvidia-smi", "sync", "end")
    assert (spec.log_max_mib, spec.log_share_pct) == (1024, None)


async def test_what_a_profile_does_not_say_is_the_hosts_to_bound(bench: Bench) -> None:
    spec = await bench.runs.specify(await live(bench).runs.plan(bench.profile("p", "true")))
    assert spec.restart.on == "never" and spec.before is None and spec.after is None
    assert (spec.log_max_mib, spec.log_share_pct) == (512, 5.0)


async def test_the_env_file_is_beside_the_profile_and_a_secret_of_that_name_wins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / ".env").write_text("A=from-file\nB=two\n")
    monkeypatch.setenv("A", "from-here")
    path = bench.profile("p", "true", "[env]\nfile = '.env'\nsecrets = ['A']\n")
    spec = await bench.runs.specify(await live(bench).runs.plan(path))
    assert spec.secrets == {"A": "from-here", "B": "two"}
    assert spec.notes["secrets"] == "A B"
    assert "from-here" not in repr(spec)


async def test_a_keyring_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from cockpit.engine import run_secrets

    hanging = threading.Event()
    monkeypatch.setattr(run_secrets, "KEYRING_LIMIT_S", 0.05)
    monkeypatch.setattr(run_secrets, "_ask_keyring", lambda name: hanging.wait(30))
    try:
        assert await known_secrets(["A", "B"], {"A": "1"}) == {"A": "1"}
        with pytest.raises(LaunchFailed) as caught:
            await secret_values(["B"], {})
    finally:
        hanging.set()
    assert (caught.value.code, caught.value.facts["name"]) == ("secret_missing", "B")


def test_a_patch_travels_as_set_strings() -> None:
    patch = {
        "vllm.max_model_len": 8192,
        "gpus.index": [0, 1],
        "env.set.X": "a b",
        "watch.oom": False,
    }
    finding = Finding(
        "kv_cache", "s", "fatal", remedies=(Remedy("none"), Remedy("one", patch=patch))
    )
    assert overrides_of(Incident("k", finding, 0.0, 0.0)) == [
        "vllm.max_model_len=8192",
        "gpus.index=[0, 1]",
        "env.set.X=a b",
        "watch.oom=false",
    ]


async def test_slices_of_a_split_card_go_by_their_uuids_and_say_what_they_cannot_do(
    bench: Bench,
) -> None:
    slices = tuple(MigInstance(place, f"MIG-{place}", "1g.10gb", 20, 10_000) for place in range(3))
    split = replace(card(0, 60), mig=True, mig_instances=slices)
    bench.parts.fleet.record(sample(split), 0.0)
    one = await live(bench).runs.plan(server(bench, GPUS + "count = 1\n"))
    assert [choice.index for choice in one.cards] == [0] and one.slices == (
        "MIG-0",
        "MIG-1",
        "MIG-2",
    )
    assert one.env_set["CUDA_VISIBLE_DEVICES"] == "MIG-0"
    assert [check.code for check in one.checks if check.verdict == "warning"] == []
    spec = await bench.runs.specify(one)
    assert spec.gpus is not None
    assert [(each.index, each.uuid) for each in spec.gpus.cards] == [
        (0, "MIG-0"), (0, "MIG-1"), (0, "MIG-2"),
    ]  # fmt: skip
    two = await bench.runs.plan(server(bench, GPUS + "count = 2\n"))
    plain = await bench.runs.plan(bench.profile("p", "true", GPUS + "count = 2\n"))
    codes = [
        [check.code for check in plan.checks if check.verdict == "warning"] for plan in (two, plain)
    ]
    assert codes == [["mig_no_tensor_parallel"], ["mig_one_each"]]
    assert two.env_set["CUDA_VISIBLE_DEVICES"] == "MIG-0,MIG-1"
