"""Remedies of a run: in its kind's order, with its own numbers, as changes that its profile takes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import pytest

from cockpit.config.overrides import override_text
from cockpit.config.profile import Profile, parse_profile
from cockpit.domain.incidents import Finding, Remedy
from cockpit.domain.profile_options import ProfileOptions
from cockpit.domain.remedies import make_all
from cockpit.domain.remedy_case import Room
from cockpit.domain.remedy_fit import fitted
from cockpit.domain.scan import Scanner
from cockpit.i18n.messages import describe_incident

OOM = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of"
    b" 23.64 GiB of which 812.00 MiB is free. Including non-PyTorch memory, this process has 22.80 GiB memory"
    b" in use. Of the allocated memory 21.90 GiB is allocated by PyTorch, and 210.00 MiB is reserved by PyTorch"
    b" but unallocated.\n"
)
KV = (
    b"ValueError: To serve at least one request with the models's max seq len (65536), (28.00 GiB KV cache is"
    b" needed, which is larger than the available KV cache memory (16.18 GiB). Based on the available memory, the"
    b" estimated maximum model length is 37856. Try increasing `gpu_memory_utilization` or decreasing"
    b" `max_model_len` when initializing the engine.\n"
)


def finding_of(log: bytes) -> Finding:
    scanner = Scanner(settled=True)
    (found,) = [*scanner.feed(log), *scanner.finish()]
    return found


def general(family: str, cause: str, *codes: str, **facts: int | float | str) -> Finding:
    return Finding(family, "x", "fatal", facts, cause=cause, remedies=make_all(codes, facts))  # type: ignore[arg-type]


def profile(text: str) -> Profile:
    return parse_profile(text)


def codes_of(finding: Finding) -> list[str]:
    return [remedy.code for remedy in finding.remedies]


def patch_of(finding: Finding, code: str) -> Mapping[str, object] | None:
    return next(remedy.patch for remedy in finding.remedies if remedy.code == code)


def training(kind: str, args: str, more: str = "") -> Profile:
    table = "argv" if kind == "command" else "args"
    words = ", ".join(f'"{word}"' for word in shlex.split(args))
    script = "" if kind in ("command", "yolo") else 'script = "train.py"\n'
    return profile(f'kind = "{kind}"\n[{kind}]\n{script}{table} = [{words}]\n{more}')


BATCHES = {
    "hf_appends": (
        "accelerate", "--per_device_train_batch_size 8",
        ["--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "2"],
    ),
    "hf_doubles": (
        "torchrun", "--gradient_accumulation_steps 4 --per_device_train_batch_size 2",
        ["--gradient_accumulation_steps", "8", "--per_device_train_batch_size", "1"],
    ),
    "dashes": (
        "torchrun", "--per-device-train-batch-size=8",
        ["--per-device-train-batch-size=4", "--gradient-accumulation-steps=2"],
    ),
    "plain_script": ("torchrun", "--batch-size 16", ["--batch-size", "8"]),
    "odd": (
        "deepspeed", "--per_device_train_batch_size 3",
        ["--per_device_train_batch_size", "1", "--gradient_accumulation_steps", "3"],
    ),
    "lightning": (
        "command", "python train.py fit --data.batch_size 32",
        ["python", "train.py", "fit", "--data.batch_size", "16", "--trainer.accumulate_grad_batches", "2"],
    ),
    "hydra": (
        "command", "python train.py data.batch_size=64 trainer.accumulate_grad_batches=2",
        ["python", "train.py", "data.batch_size=32", "trainer.accumulate_grad_batches=4"],
    ),
    "nanogpt": (
        "torchrun", "--batch_size=12 --gradient_accumulation_steps=40",
        ["--batch_size=6", "--gradient_accumulation_steps=80"],
    ),
    "ultralytics_command": (
        "command", "yolo detect train model=a.pt batch=16", ["yolo", "detect", "train", "model=a.pt", "batch=8"],
    ),
    "the_last_counts": ("torchrun", "--bs 64 --bs 8", ["--bs", "64", "--bs", "4"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BATCHES))
def test_half_the_batch_with_twice_the_accumulation(name: str) -> None:
    kind, args, after = BATCHES[name]
    said = training(kind, args)
    key = f"{kind}.{'argv' if kind == 'command' else 'args'}"
    assert patch_of(fitted(finding_of(OOM), said.document), "smaller_batch") == {key: after}


@pytest.mark.parametrize(
    "args",
    [
        "--per_device_train_batch_size 1",
        "--lr 1e-4",
        "--batch_size auto",
        "batch=-1",
        "--batch-size",
    ],
)
def test_a_batch_that_cannot_be_halved_is_no_change_of_the_profile(args: str) -> None:
    found = fitted(finding_of(OOM), training("torchrun", args).document)
    assert patch_of(found, "smaller_batch") is None


def test_tables_of_their_own_kinds_are_changed_key_by_key() -> None:
    megatron = profile(
        'kind = "megatron"\n[megatron]\nscript = "p.py"\nmicro_batch_size = 4\nseq_length = 4096\n'
    )
    found = fitted(finding_of(OOM), megatron.document)
    assert patch_of(found, "smaller_batch") == {"megatron.micro_batch_size": 2}
    assert patch_of(found, "shorter_sequences") == {"megatron.seq_length": 2048}
    assert patch_of(found, "gradient_checkpointing") == {
        "megatron.args": ["--recompute-activations"]
    }
    yolo = profile('kind = "yolo"\n[yolo]\nmodel = "a.pt"\ndata = "d"\nbatch = 16\nimgsz = 640\n')
    found = fitted(finding_of(OOM), yolo.document)
    assert patch_of(found, "smaller_batch") == {"yolo.batch": 8}
    assert patch_of(found, "smaller_images") == {"yolo.imgsz": 480}
    deepspeed = (
        'kind = "accelerate"\n[accelerate]\nscript = "t.py"\nuse_deepspeed = true\nzero_stage = 2\n'
    )
    found = fitted(finding_of(OOM), profile(deepspeed).document)
    assert patch_of(found, "shard") == {"accelerate.zero_stage": 3}
    found = fitted(finding_of(OOM), profile(deepspeed.replace("= 2", "= 3")).document)
    assert "shard" not in codes_of(found)


def test_what_the_profile_does_already_is_not_said_again() -> None:
    args = "--per_device_train_batch_size 4 --gradient_checkpointing True --bf16"
    more = '[env]\nset = { PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True" }\n'
    said = training("accelerate", args, more)
    found = fitted(finding_of(OOM), said.document)
    assert codes_of(found) == ["smaller_batch", "shorter_sequences", "lean_optimizer", "shard"]
    fragmented = general("gpu_oom", "fragmentation", "expandable_segments", "smaller_batch")
    assert codes_of(fitted(fragmented, said.document)) == ["smaller_batch"]


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("garbage_collection_threshold:0.8", "garbage_collection_threshold:0.8,expandable_segments:True"),
        ("max_split_size_mb:128", "expandable_segments:True"),
        ("expandable_segments:False", "expandable_segments:True"),
    ],
    ids=["beside", "never_both", "turned_on"],
)  # fmt: skip
def test_the_allocator_keeps_what_its_variable_says_else(said: str, after: str) -> None:
    more = f'[env]\nset = {{ PYTORCH_ALLOC_CONF = "{said}" }}\n'
    document = training("torchrun", "", more).document
    found = fitted(general("gpu_oom", "fragmentation", "expandable_segments"), document)
    assert found.remedies[0].patch == {"env.set.PYTORCH_ALLOC_CONF": after}


def vllm(text: str = "", more: str = "") -> Profile:
    return profile(f'kind = "vllm"\n[vllm]\nmodel = "m"\n{text}\n{more}')


def test_a_kv_cache_that_does_not_fit_by_raising_has_the_length_first() -> None:
    said = vllm("gpu_memory_utilization = 0.8\nmax_model_len = 65536", "[gpus]\ncount = 1\n")
    found = fitted(finding_of(KV), said.document, Room(40_960, 0, 8))
    assert [(one.code, one.patch) for one in found.remedies] == [
        ("max_model_len_that_fits", {"vllm.max_model_len": 37856}),
        ("kv_fp8", {"vllm.kv_cache_dtype": "fp8"}),
        ("tensor_parallel", {"gpus.count": 2}),
        ("raise_utilisation", None),
    ]


def test_a_kv_cache_that_fits_by_raising_keeps_its_length() -> None:
    said = vllm("gpu-memory-utilization = 0.6")
    found = fitted(finding_of(KV), said.document, Room(81_559, 300))
    assert found.remedies[0] == Remedy(
        "raise_utilisation",
        {"value": 0.9, "option": "gpu_memory_utilization", "before": 0.6},
        {"vllm.gpu_memory_utilization": 0.9},
    )


def test_utilisation_is_raised_to_what_the_card_really_has_free() -> None:
    lacking = general("kv_cache", "kv_one_request", "raise_utilisation", "kv_fp8")
    said = vllm("gpu_memory_utilization = 0.7").document
    found = fitted(lacking, said, Room(80_000, 16_000))
    assert patch_of(found, "raise_utilisation") == {"vllm.gpu_memory_utilization": 0.78}
    assert "raise_utilisation" not in codes_of(fitted(lacking, said, Room(80_000, 30_000)))


def test_a_server_of_a_plain_command_has_its_words_changed() -> None:
    said = training("command", "vllm serve m --max-model-len 65536")
    found = fitted(finding_of(KV), said.document)
    assert patch_of(found, "max_model_len_that_fits") == {
        "command.argv": ["vllm", "serve", "m", "--max-model-len", "37856"]
    }
    assert patch_of(found, "kv_fp8") == {
        "command.argv": ["vllm", "serve", "m", "--max-model-len", "65536", "--kv-cache-dtype", "fp8"]
    }  # fmt: skip


def test_a_training_run_gets_no_change_of_a_server() -> None:
    found = fitted(finding_of(KV), training("torchrun", "").document)
    assert all(remedy.patch is None for remedy in found.remedies)


SERVERS = {
    "sglang": ("mem_fraction_static = 0.85", "sglang.mem_fraction_static", 0.8),
    "tgi": ("cuda_memory_fraction = 0.9", "tgi.cuda_memory_fraction", 0.85),
    "trtllm": ("free_gpu_memory_fraction = 0.9", "trtllm.free_gpu_memory_fraction", 0.85),
    "vllm": ("", "vllm.gpu_memory_utilization", 0.85),
}


@pytest.mark.parametrize("kind", list(SERVERS))
def test_a_full_card_of_a_server_is_mended_by_its_own_option(kind: str) -> None:
    text, key, value = SERVERS[kind]
    said = profile(f'kind = "{kind}"\n[{kind}]\nmodel = "m"\n{text}\n')
    full = general("near_full", "near_full", "smaller_batch", "watch_memory", gpu_index=0)
    found = fitted(full, said.document)
    assert codes_of(found) == ["lower_utilisation", "max_num_seqs_down", "watch_memory"]
    assert patch_of(found, "lower_utilisation") == {key: value}


def test_a_leak_of_a_server_is_not_told_to_detach_its_losses() -> None:
    leak = general("leak", "leak_gpu", "detach_what_is_kept", "restart_on_schedule", gpu_index=0)
    assert codes_of(fitted(leak, vllm().document))[:2] == ["upgrade_server", "restart_server"]


def test_workers_checkpoints_precision_and_rate_are_options_too() -> None:
    args = "--dataloader_num_workers 8 --fp16 --learning_rate 2e-4 --per_device_train_batch_size 2"
    document = training(
        "torchrun", args, '[restart]\nresume_args = ["--resume", "auto"]\n'
    ).document
    words = args.split()

    def changed(code: str, family: str = "crash") -> object:
        patch = patch_of(fitted(general(family, "x", code), document, Room(cores=16)), code)
        assert patch is not None
        return patch["torchrun.args"]

    assert changed("fewer_workers") == [words[0], "4", *words[2:]]
    assert changed("use_bf16") == [*words[:2], "--bf16", *words[3:]]
    assert changed("lower_lr") == [*words[:4], "0.0001", *words[5:]]
    assert changed("keep_few_checkpoints") == [*words, "--save_total_limit", "2"]
    assert changed("resume_checkpoint") == [*words, "--resume", "auto"]


def test_variables_of_the_environment_are_set_once() -> None:
    crash = general("crash", "x", "launch_blocking", "check_indices")
    found = fitted(crash, training("torchrun", "").document)
    assert found.remedies[0].patch == {"env.set.CUDA_LAUNCH_BLOCKING": "1"}
    more = '[env]\nset = { CUDA_LAUNCH_BLOCKING = "1" }\n'
    assert codes_of(fitted(crash, training("torchrun", "", more).document)) == ["check_indices"]


def test_a_port_that_others_are_led_to_stays() -> None:
    taken = general("port", "port_taken", "free_port", port=8000)
    assert fitted(taken, vllm().document).remedies[0].patch == {"vllm.port": 8001}
    forwarded = vllm("", "[forward]\n8000 = 8000\n").document
    assert fitted(taken, forwarded).remedies[0].patch is None


def test_numbers_of_the_profile_are_in_the_sentence() -> None:
    said = training("accelerate", "--per_device_train_batch_size 8 --max_seq_length 4096")
    texts = [one.text for one in describe_incident(fitted(finding_of(OOM), said.document)).remedies]
    assert texts[0].startswith("Batch 4 instead of 8, accumulation 2 instead of 1:")
    assert texts[2].startswith("Sequences of 2048 tokens instead of 4096;")


@pytest.mark.parametrize("name", list(BATCHES))
def test_every_change_goes_through_set_and_comes_out_the_same(name: str) -> None:
    kind, args, _after = BATCHES[name]
    text = training(kind, args + ' --note "it\'s a;b $(x)"').text
    found = fitted(finding_of(OOM), parse_profile(text).document)
    changes = [remedy.patch for remedy in found.remedies if remedy.patch]
    assert changes
    for patch in changes:
        sets = [override_text(key, value) for key, value in patch.items()]
        assert [shlex.split(shlex.quote(one)) for one in sets] == [[one] for one in sets]
        again = ProfileOptions(parse_profile(text, overrides=sets).document)
        assert {key: again.value(key) for key in patch} == dict(patch)


def test_more_workers_are_no_more_than_the_cores() -> None:
    starved = general("starved", "starved_workers", "more_workers", "workers_to_cores")
    document = training("command", "train --num_workers 1", "[gpus]\ncount = 2\n").document

    def words(cores: int) -> list[object]:
        found = fitted(starved, document, Room(cores=cores))
        return [(one.code, one.patch and one.patch["command.argv"]) for one in found.remedies]

    assert words(64) == [
        ("more_workers", ["train", "--num_workers", "4"]),
        ("workers_to_cores", ["train", "--num_workers", "32"]),
    ]
    assert words(2) == [("more_workers", ["train", "--num_workers", "2"])]


def test_evaluation_is_made_smaller_beside_the_training_batch() -> None:
    codes = ("smaller_eval_batch", "predictions_to_cpu")
    document = training("accelerate", "--per_device_train_batch_size 4").document
    found = fitted(general("gpu_oom", "x", *codes), document)
    args = ["--per_device_train_batch_size", "4"]
    assert patch_of(found, codes[0]) == {
        "accelerate.args": [*args, "--per_device_eval_batch_size", "4"]
    }
    assert patch_of(found, codes[1]) == {
        "accelerate.args": [*args, "--eval_accumulation_steps", "8"]
    }


def test_a_hang_goes_on_from_its_checkpoint_with_the_recorder_on() -> None:
    document = training(
        "torchrun", "--lr 1", '[restart]\nresume_args = ["--resume", "auto"]\n'
    ).document
    found = fitted(general("hang", "x", "py_spy", "flight_recorder"), document)
    assert patch_of(found, "flight_recorder") == {
        "env.set.TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "torchrun.args": ["--lr", "1", "--resume", "auto"],
    }


def test_servers_of_other_makers_have_their_own_names() -> None:
    ollama = profile('kind = "ollama"\n[ollama]\ncontext_length = 8192\nnum_parallel = 4\n')
    short = general("kv_cache", "x", "smaller_context", "fewer_slots", "kv_quant")
    assert [one.patch for one in fitted(short, ollama.document).remedies] == [
        {"ollama.context_length": 4096},
        {"ollama.num_parallel": 2},
        {"ollama.kv_cache_type": "q8_0", "ollama.flash_attention": True},
    ]
    text = 'kind = "sglang"\n[sglang]\nmodel = "m"\nmem_fraction_static = 0.85\n'
    sglang = profile(text).document
    tight = general("kv_cache", "x", "sgl_fraction_down", "fewer_requests", "sgl_chunked")
    assert [one.patch for one in fitted(tight, sglang).remedies] == [
        {"sglang.mem_fraction_static": 0.78},
        {"sglang.max_running_requests": 128},
        {"sglang.chunked_prefill_size": 2048},
    ]


def test_a_script_of_a_shell_is_left_alone() -> None:
    said = profile('kind = "command"\n[command]\nscript = "python t.py --batch_size 8"\n')
    patches = [one.patch for one in fitted(finding_of(OOM), said.document).remedies]
    assert patches == [None] * len(patches)
