from __future__ import annotations

import base64
import json
import subprocess
from typing import get_args

import pytest

from cockpit.config.profile import Kind, Profile, parse_profile
from cockpit.errors import ProfileError
from cockpit.launchers import LAUNCHERS, build
from cockpit.launchers.base import ENV_DEFAULTS, Launch, LaunchFacts, Readiness

ONE = LaunchFacts(gpus=(2,), home="/root", free_port=12345)
TWO = LaunchFacts(gpus=(2, 3), home="/root", free_port=12345)
NONE = LaunchFacts()
SECOND = LaunchFacts(gpus=(0, 1), free_port=12345, nodes=2, node_rank=1, master_addr="203.0.113.5")
FIRST = LaunchFacts(gpus=(0, 1), free_port=12345, nodes=2, node_rank=0, master_addr="203.0.113.5")
OVER_IPV6 = LaunchFacts(
    gpus=(3,), free_port=12345, nodes=2, master_addr="fd00::5", local_addr="fd00::5"
)


def profile(kind: str, table: str, rest: str = "") -> Profile:
    return parse_profile(f"kind = '{kind}'\n[{kind}]\n{table}\n{rest}", name="job")


def argv(kind: str, table: str, facts: LaunchFacts = TWO) -> str:
    return " ".join(build(profile(kind, table), facts).argv)


def world(cards: list[int], nodes: int) -> str:
    told = json.dumps({f"node{rank}": cards for rank in range(nodes)})
    return base64.urlsafe_b64encode(told.encode()).decode()


def launch(table: str, facts: LaunchFacts = NONE) -> Launch:
    return build(parse_profile("kind = 'command'\n" + table, name="job"), facts)


# -- command --------------------------------------------------------------------------------------

COMMAND = "[command]\nargv = ['python', 'train.py']\n"


def test_argv_is_run_as_it_stands() -> None:
    words = ["a b", "$(id)", "`id`", "; rm -rf ~", "'", '"', "\\", "-c", "*", "日本"]
    assert launch(f"[command]\nargv = {json.dumps(words)}\n").argv == tuple(words)


def test_a_script_is_one_argument_of_sh_and_its_args_are_its_parameters() -> None:
    made = launch("[command]\nscript = '''\necho \"$0:$1:$#\"\n'''\nargs = ['a b; id', '$HOME']\n")
    assert made.argv[:2] == ("/bin/sh", "-c")
    done = subprocess.run(made.argv, capture_output=True, text=True, timeout=10, check=True)
    assert done.stdout == "job:a b; id:2\n"


def test_what_every_launch_has() -> None:
    made = launch("cwd = '~/x'\n" + COMMAND, LaunchFacts(home="/home/me"))
    assert made.cwd == "/home/me/x"
    assert made.env_defaults == ENV_DEFAULTS
    assert (made.env, made.path_first, made.ports, made.ready) == ({}, (), (), None)
    assert launch("cwd = '~/x'\n" + COMMAND).cwd == "~/x"


def test_reserved_cards_are_numbered_as_nvml_does() -> None:
    made = launch(COMMAND + "[env]\nset = { CUDA_VISIBLE_DEVICES = '7' }\n", TWO)
    assert made.env == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,3"}


def test_without_a_reservation_the_cards_are_left_alone() -> None:
    assert "CUDA_VISIBLE_DEVICES" not in launch(COMMAND).env


@pytest.mark.parametrize(
    ("env", "variables", "path"),
    [
        ("conda = '/opt/c/'", {"CONDA_PREFIX": "/opt/c"}, "/opt/c/bin"),
        ("venv = '~/v'", {"VIRTUAL_ENV": "/root/v"}, "/root/v/bin"),
        ("uv = '~/proj'", {"VIRTUAL_ENV": "/root/proj/.venv"}, "/root/proj/.venv/bin"),
    ],
)
def test_a_python_environment_is_taken_by_its_path(
    env: str, variables: dict[str, str], path: str
) -> None:
    made = launch(COMMAND + f"[env]\n{env}\n", LaunchFacts(home="/root"))
    assert (made.env, made.path_first) == (variables, (path,))


def test_secrets_are_names_and_never_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_verysecret")
    made = launch(COMMAND + "[env]\nsecrets = ['HF_TOKEN']\n")
    assert made.secret_names == ("HF_TOKEN",)
    assert "hf_verysecret" not in repr(made)


@pytest.mark.parametrize(
    ("tables", "ready"),
    [
        ("[ready]\nlog = 'up'\n", Readiness(log="up")),
        ("[ready]\nno_progress = '10m'\n", Readiness(no_progress_s=600)),
        ("[forward]\n80 = 8000\n[ready]\nhttp = '/h'\n", Readiness(8000, ("/h",))),
        ("[ready]\nhttp = '/h'\nport = 9\n", Readiness(9, ("/h",))),
        ("[ready]\nhttp = 'http://localhost:7/h?x=1'\n", Readiness(7, ("/h?x=1",))),
    ],
)
def test_readiness_of_any_program(tables: str, ready: Readiness) -> None:
    assert launch(COMMAND + tables).ready == ready


def test_metrics_and_forwards() -> None:
    made = launch(COMMAND + "[forward]\n9000 = 8000\n[metrics]\nurl = '/m'\n")
    assert (made.forwards, made.metrics) == (((9000, 8000),), (8000, "/m"))
    made = launch(COMMAND + "[metrics]\nurl = 'http://127.0.0.1:9/m'\n")
    assert made.metrics == (9, "/m")


# -- vllm -----------------------------------------------------------------------------------------


def test_vllm_serves_on_loopback_and_says_when_it_is_up() -> None:
    made = build(profile("vllm", "model = 'Qwen/Q'\nmax_model_len = '32k'"), ONE)
    assert " ".join(made.argv) == (
        "vllm serve Qwen/Q --host 127.0.0.1 --port 8000 --max-model-len 32k"
    )
    assert made.ports == (8000,)
    assert made.ready == Readiness(8000, ("/health", "/v1/models"))
    assert made.metrics == (8000, "/metrics")
    assert made.notices == ()


def test_vllm_options_are_spelled_with_dashes() -> None:
    table = """
    model = 'm'
    served-model-name = ['a', 'b']
    gpu_memory_utilization = 0.85
    cpu_offload_gb = 4
    enforce_eager = true
    enable_prefix_caching = false
    disable_log_stats = false
    args = ['--x', 'y z']
    """
    assert build(profile("vllm", table), ONE).argv[7:] == (
        "--served-model-name", "a", "b", "--gpu-memory-utilization", "0.85",
        "--cpu-offload-gb", "4", "--enforce-eager", "--no-enable-prefix-caching", "--x", "y z",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", ["--tensor-parallel-size 2"]),
        ("tensor_parallel_size = 1", ["--tensor-parallel-size 1"]),
        ("data_parallel_size = 2", ["--data-parallel-size 2"]),
        ("pipeline_parallel_size = 2", ["--pipeline-parallel-size 2"]),
    ],
)
def test_vllm_uses_every_reserved_card(table: str, words: list[str]) -> None:
    line = argv("vllm", f"model = 'm'\n{table}")
    assert [word for word in words if word not in line] == []
    assert line.count("parallel-size") == 1


def test_vllm_over_two_hosts_listens_on_the_first_only() -> None:
    table = "model = 'm'\ntensor_parallel_size = 4"
    made = build(profile("vllm", table), SECOND)
    assert " ".join(made.argv).endswith(
        "--nnodes 2 --node-rank 1 --master-addr 203.0.113.5 --master-port 12345 --headless"
    )
    assert (made.ports, made.ready) == ((), None)
    first = build(profile("vllm", table), FIRST)
    assert "--headless" not in first.argv
    assert first.ports == (8000,)


def test_an_open_server_gets_a_word() -> None:
    assert build(profile("vllm", "model='m'\nhost='0.0.0.0'"), ONE).notices == ("binds_everywhere",)


def test_ready_of_the_profile_wins_over_the_server_s() -> None:
    rest = "[ready]\nhttp = '/ping'\nno_progress = '10m'\n"
    made = build(profile("vllm", "model='m'\nport = 9", rest), ONE)
    assert made.ready == Readiness(9, ("/ping",), None, 600)
    made = build(profile("vllm", "model='m'", "[ready]\nno_progress = '10m'\n"), ONE)
    assert made.ready == Readiness(8000, ("/health", "/v1/models"), None, 600)


# -- training -------------------------------------------------------------------------------------

SCRIPT = "script = 'train.py'\nargs = ['--lr', '1e-4']\n"


@pytest.mark.parametrize(
    ("kind", "table", "facts", "line"),
    [
        ("torchrun", SCRIPT, TWO,
         "torchrun --nproc-per-node 2 --standalone train.py --lr 1e-4"),
        ("torchrun", SCRIPT, NONE,
         "torchrun --nproc-per-node 1 --standalone train.py --lr 1e-4"),
        ("torchrun", "module = 'a.b'\nnproc_per_node = 'gpu'\nmax_restarts = 1", TWO,
         "torchrun --nproc-per-node gpu --standalone --max-restarts 1 --module a.b"),
        ("torchrun", SCRIPT, SECOND,
         "torchrun --nproc-per-node 2 --nnodes 2 --node-rank 1 --master-addr 203.0.113.5"
         " --master-port 12345 train.py --lr 1e-4"),
        ("torchrun", SCRIPT + "rdzv_backend = 'c10d'", SECOND,
         "torchrun --nproc-per-node 2 --nnodes 2 --rdzv-endpoint 203.0.113.5:12345"
         " --rdzv-conf is_host=0 --rdzv-backend c10d train.py --lr 1e-4"),
        ("torchrun", SCRIPT + "rdzv_backend = 'c10d'", OVER_IPV6,
         "torchrun --nproc-per-node 1 --nnodes 2 --rdzv-endpoint [fd00::5]:12345"
         " --rdzv-conf is_host=1 --local-addr fd00::5 --rdzv-backend c10d train.py --lr 1e-4"),
        ("accelerate", SCRIPT, TWO,
         "accelerate launch --num_processes 2 --num_machines 1 --machine_rank 0"
         " --main_process_port 12345 --multi_gpu --mixed_precision no --dynamo_backend no"
         " train.py --lr 1e-4"),
        ("accelerate", SCRIPT + "mixed_precision = 'bf16'\nuse_deepspeed = true\nzero_stage = 3", NONE,
         "accelerate launch --num_processes 1 --num_machines 1 --machine_rank 0"
         " --main_process_port 0 --mixed_precision bf16 --dynamo_backend no --use_deepspeed"
         " --zero_stage 3 train.py --lr 1e-4"),
        ("accelerate", SCRIPT + "config_file = 'a.yaml'", NONE,
         "accelerate launch --config_file a.yaml train.py --lr 1e-4"),
        ("accelerate", SCRIPT, SECOND,
         "accelerate launch --num_processes 4 --num_machines 2 --machine_rank 1"
         " --main_process_ip 203.0.113.5 --main_process_port 12345 --multi_gpu"
         " --mixed_precision no --dynamo_backend no train.py --lr 1e-4"),
        ("deepspeed", SCRIPT, TWO,
         "deepspeed --include localhost:2,3 --master_port 12345 train.py --lr 1e-4"),
        ("deepspeed", SCRIPT + "num_gpus = 1", TWO,
         "deepspeed --include localhost:2 --master_port 12345 train.py --lr 1e-4"),
        ("deepspeed", SCRIPT + "num_gpus = 4\nenable_each_rank_log = 'l'", NONE,
         "deepspeed --num_gpus 4 --master_port 29500 --enable_each_rank_log l train.py --lr 1e-4"),
        ("deepspeed", SCRIPT, SECOND,
         f"python3 -m deepspeed.launcher.launch --world_info {world([0, 1], 2)} --node_rank 1"
         " --master_addr 203.0.113.5 --master_port 12345 train.py --lr 1e-4"),
        ("deepspeed", "module = 'a.b'\nnum_gpus = 1", OVER_IPV6,
         f"python3 -m deepspeed.launcher.launch --world_info {world([3], 2)} --node_rank 0"
         " --master_addr fd00::5 --master_port 12345 --module a.b"),
        ("megatron", SCRIPT + "tensor_model_parallel_size = 2\nmicro_batch_size = 1", TWO,
         "torchrun --nproc-per-node 2 --standalone train.py --lr 1e-4"
         " --tensor-model-parallel-size 2 --micro-batch-size 1"),
        ("colossalai", SCRIPT, TWO,
         "colossalai run --nproc_per_node 2 --master_port 12345 train.py --lr 1e-4"),
        ("paddle", SCRIPT + "log_dir = 'l'", TWO,
         "python3 -m paddle.distributed.launch --log_dir l train.py --lr 1e-4"),
        ("paddle", SCRIPT, SECOND,
         "python3 -m paddle.distributed.launch --master 203.0.113.5:12345 --nnodes 2 --rank 1"
         " train.py --lr 1e-4"),
        ("yolo", "task='detect'\nmodel='m.pt'\nepochs=3\nbatch=-1\nname='n'\namp=false\nargs=['a=b']", TWO,
         "yolo detect train model=m.pt epochs=3 batch=-1 name=n amp=False device=2,3 a=b"),
        ("sglang", "model = 'm'\nmem_fraction_static = 0.8", TWO,
         "python3 -m sglang.launch_server --model-path m --host 127.0.0.1 --port 30000 --tp-size 2"
         " --mem-fraction-static 0.8 --enable-metrics"),
        ("sglang", "model = 'm'\ntp_size = 4", SECOND,
         "python3 -m sglang.launch_server --model-path m --host 127.0.0.1 --port 30000 --nnodes 2"
         " --node-rank 1 --dist-init-addr 203.0.113.5:12345 --tp-size 4 --enable-metrics"),
        ("sglang", "model = 'm'", OVER_IPV6,
         "python3 -m sglang.launch_server --model-path m --host 127.0.0.1 --port 30000 --tp-size 2"
         " --nnodes 2 --node-rank 0 --dist-init-addr [fd00::5]:12345 --enable-metrics"),
        ("tgi", "model = 'm'\nmax_total_tokens = 9", TWO,
         "text-generation-launcher --model-id m --hostname 127.0.0.1 --port 3000 --num-shard 2"
         " --max-total-tokens 9"),
        ("trtllm", "model = 'm'\nmax_seq_len = 9\nfree_gpu_memory_fraction = 0.5", TWO,
         "trtllm-serve m --host 127.0.0.1 --port 8000 --tp_size 2 --max_seq_len 9"
         " --free_gpu_memory_fraction 0.5"),
        ("ollama", "", ONE, "ollama serve"),
    ],
)  # fmt: skip
def test_the_command_of_each_kind(kind: str, table: str, facts: LaunchFacts, line: str) -> None:
    assert argv(kind, table, facts) == line


def test_ollama_is_set_by_variables() -> None:
    made = build(profile("ollama", "keep_alive = '5m'\nflash_attention = true\nmodels = '/d'"), ONE)
    ours = {name: value for name, value in made.env.items() if name.startswith("OLLAMA_")}
    assert ours == {
        "OLLAMA_HOST": "127.0.0.1:11434",
        "OLLAMA_KEEP_ALIVE": "5m",
        "OLLAMA_FLASH_ATTENTION": "1",
        "OLLAMA_MODELS": "/d",
    }


def test_sglang_is_ready_when_its_log_says_so() -> None:
    made = build(profile("sglang", "model = 'm'"), ONE)
    assert made.ready is not None
    assert made.ready.log is not None
    assert made.ready.http == ("/health", "/v1/models")


def test_several_hosts_know_each_other() -> None:
    made = build(profile("torchrun", SCRIPT), SECOND)
    assert {
        key: made.env[key] for key in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "NNODES")
    } == {
        "MASTER_ADDR": "203.0.113.5",
        "MASTER_PORT": "12345",
        "NODE_RANK": "1",
        "NNODES": "2",
    }


def test_a_command_on_several_hosts_is_one_rank_on_each() -> None:
    made = launch(COMMAND, SECOND)
    assert (made.env["RANK"], made.env["WORLD_SIZE"]) == ("1", "2")
    assert launch(COMMAND + "[env]\nset = {WORLD_SIZE = '16'}", SECOND).env["WORLD_SIZE"] == "16"
    assert "RANK" not in launch(COMMAND).env
    assert "RANK" not in build(profile("torchrun", SCRIPT), SECOND).env


def test_cards_of_one_host_cannot_be_named_for_several() -> None:
    table = SCRIPT + "include = 'localhost:0'"
    with pytest.raises(ProfileError) as caught:
        build(profile("deepspeed", table), SECOND)
    assert caught.value.problems[0].code == "one_host_key"


@pytest.mark.parametrize(
    ("table", "facts", "words"),
    [
        ("", FIRST, "--tensor-parallel-size 2 --pipeline-parallel-size 2 --nnodes 2"),
        ("", OVER_IPV6, "8000 --pipeline-parallel-size 2 --nnodes 2"),
        ("tensor_parallel_size = 4", FIRST, "8000 --tensor-parallel-size 4 --nnodes 2"),
        ("data_parallel_size = 2", FIRST, "8000 --data-parallel-size 2 --nnodes 2"),
    ],
    ids=["cards", "one-card", "said", "divided"],
)
def test_vllm_uses_every_card_of_every_host(table: str, facts: LaunchFacts, words: str) -> None:
    assert words in argv("vllm", f"model = 'm'\n{table}", facts)


@pytest.mark.parametrize("kind", ["colossalai", "yolo", "tgi", "trtllm", "ollama"])
def test_a_kind_of_one_host_says_so(kind: str) -> None:
    tables = {"tgi": "model='m'", "trtllm": "model='m'", "yolo": "", "ollama": ""}
    with pytest.raises(ProfileError) as caught:
        build(profile(kind, tables.get(kind, SCRIPT)), SECOND)
    assert caught.value.problems[0].code == "one_host_only"


def test_every_kind_has_a_launcher() -> None:
    assert set(LAUNCHERS) == set(get_args(Kind))
