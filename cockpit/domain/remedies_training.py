"""Remedies of a training run, with the options that its own profile names."""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from typing import Final

from cockpit.domain.profile_options import Option, ProfileOptions
from cockpit.domain.remedy_case import Case, Fit, Fitted, told, whole_of

BATCH: Final = (
    "per_device_train_batch_size", "micro_batch_size", "micro_train_batch_size",
    "train_micro_batch_size_per_gpu", "train_batch_size", "device_batch_size", "batch_size_per_gpu",
    "batch_size", "batch", "bs",
)  # fmt: skip
ACCUMULATION: Final = (
    "gradient_accumulation_steps", "accumulate_grad_batches", "grad_accumulation_steps",
    "grad_accum_steps", "gradient_accumulate_every", "accumulation_steps", "accum_steps",
    "accum_iter", "grad_accum",
)  # fmt: skip
CHECKPOINTING: Final = ("gradient_checkpointing", "activation_checkpointing", "grad_checkpointing")
RECOMPUTE: Final = ("recompute_activations", "recompute_granularity")
LENGTH: Final = (
    "max_seq_length", "max_length", "model_max_length", "cutoff_len", "max_seq_len", "seq_length",
    "sequence_len", "seq_len", "block_size",
)  # fmt: skip
EVAL_BATCH: Final = ("per_device_eval_batch_size", "eval_batch_size", "val_batch_size")
WORKERS: Final = ("dataloader_num_workers", "num_workers", "workers")
RATE: Final = ("learning_rate", "lr", "lr0")
LEAST_LENGTH: Final = 256
IMAGE_STEP: Final = 32
MOST_WORKERS: Final = 8
EVAL_STEPS: Final = 8
_DIFFUSERS: Final = (
    "train_text_to_image", "train_dreambooth", "train_controlnet", "textual_inversion",
    "train_instruct_pix2pix",
)  # fmt: skip
_ALLOCATOR: Final = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_GROWS: Final = "expandable_segments"
_NEVER_WITH_IT: Final = "max_split_size_mb"
"""Both at once make the reserved memory grow without end (pytorch#123548)."""


def smaller_batch(code: str, case: Case) -> Fitted:
    """Half the batch, and as many more accumulation steps where the program has such an option."""
    options = case.options()
    option = options.find(BATCH)
    before = whole_of(option)
    if option is None or before is None or before < 2:
        return told(code)
    batch = before // 2
    options.set(option, batch)
    facts: dict[str, int] = {"batch": batch, "batch_before": before}
    steps = _accumulate(options, option, math.ceil(before / batch))
    if steps is not None:
        facts |= {"steps": steps[1], "steps_before": steps[0]}
    return told(code, options, **facts)


def _accumulate(options: ProfileOptions, batch: Option, factor: int) -> tuple[int, int] | None:
    """(steps before, steps now); None where the program is not known to accumulate, or does it by itself."""
    option = options.find(ACCUMULATION)
    before = whole_of(option)
    if option is not None and before is not None:
        options.set(option, before * factor)
        return before, before * factor
    if option is not None:
        return None
    if is_hugging_face(options):
        options.add(batch, "gradient_accumulation_steps", factor)
    elif _is_lightning(options):
        options.add(batch, "trainer.accumulate_grad_batches", factor)
    else:
        return None
    return 1, factor


def gradient_checkpointing(code: str, case: Case) -> Fitted | None:
    options = case.options()
    option = options.find(CHECKPOINTING)
    if option is not None:
        if option.is_on:
            return None
        options.set(option, True)
    elif options.kind == "megatron":
        if options.find(RECOMPUTE) is not None:
            return None
        options.add(None, "recompute-activations", None)
    elif is_hugging_face(options):
        options.add(options.find(BATCH), "gradient_checkpointing", True)
    elif _is_diffusers(options):
        options.add(None, "gradient_checkpointing", None)
    return told(code, options)


def shorter_sequences(code: str, case: Case) -> Fitted | None:
    options = case.options()
    if _is_ultralytics(options):
        return _smaller_images(options)
    option = options.find(LENGTH)
    before = whole_of(option)
    if option is None or before is None or before < 2 * LEAST_LENGTH:
        return told(code)
    options.set(option, before // 2)
    return told(code, options, tokens=before // 2, tokens_before=before)


def _smaller_images(options: ProfileOptions) -> Fitted:
    option = options.find(("imgsz",))
    before = whole_of(option)
    if option is None or before is None or before < 10 * IMAGE_STEP:
        return told("smaller_images")
    size = before * 3 // 4 // IMAGE_STEP * IMAGE_STEP
    options.set(option, size)
    return told("smaller_images", options, size=size, size_before=before)


def lean_optimizer(code: str, case: Case) -> Fitted | None:
    """Ultralytics and Megatron have no such choice."""
    options = case.options()
    return None if _is_ultralytics(options) else told(code)


def shard(code: str, case: Case) -> Fitted | None:
    """One ZeRO stage more, where the profile says which stage it is."""
    options = case.options()
    if _is_ultralytics(options):
        return None
    stage = options.value("accelerate.zero_stage")
    if options.value("accelerate.use_deepspeed") and isinstance(stage, int):
        if stage >= 3:
            return None
        options.put("accelerate.zero_stage", stage + 1)
        return told(code, options, stage=stage + 1)
    return told(code)


def expandable_segments(code: str, case: Case) -> Fitted | None:
    """Beside what the variable says already; None when it says this already."""
    options = case.options()
    key = f"env.set.{_ALLOCATOR[1]}"
    for name in _ALLOCATOR:
        if options.value(f"env.set.{name}") is not None:
            key = f"env.set.{name}"
            break
    said = [part.strip() for part in str(options.value(key) or "").split(",") if part.strip()]
    if f"{_GROWS}:True" in said:
        return None
    kept = [part for part in said if part.partition(":")[0] not in (_GROWS, _NEVER_WITH_IT)]
    options.put(key, ",".join([*kept, f"{_GROWS}:True"]))
    return told(code, options)


def smaller_eval_batch(code: str, case: Case) -> Fitted:
    options = case.options()
    option = options.find(EVAL_BATCH)
    before = whole_of(option)
    if option is None and is_hugging_face(options):
        before = 8  # transformers' default
        options.add(options.find(BATCH), EVAL_BATCH[0], before // 2)
    elif option is not None and before is not None and before > 1:
        options.set(option, before // 2)
    else:
        return told(code)
    assert before is not None
    return told(code, options, batch=before // 2, batch_before=before)


def predictions_to_cpu(code: str, case: Case) -> Fitted | None:
    options = case.options()
    if options.find(("eval_accumulation_steps",)) is not None:
        return None
    if is_hugging_face(options):
        options.add(options.find(BATCH), "eval_accumulation_steps", EVAL_STEPS)
    return told(code, options)


def fewer_workers(code: str, case: Case) -> Fitted | None:
    options = case.options()
    option = options.find(WORKERS)
    if option is None:
        return told(code)
    before = option.whole
    if before is None or before < 1:
        return None  # there are none
    options.set(option, before // 2)
    return told(code, options, workers=before // 2, workers_before=before)


def more_workers(code: str, case: Case) -> Fitted | None:
    """Twice as many, but no more than there are cores or than help."""
    options = case.options()
    option = options.find(WORKERS)
    before = option.whole if option is not None else None
    if option is None and is_hugging_face(options):
        before = 0  # transformers' default
    if before is None:
        return told(code)
    most = min(MOST_WORKERS, case.room.cores or MOST_WORKERS)
    workers = min(most, max(4, 2 * before))
    if workers <= before:
        return None
    if option is not None:
        options.set(option, workers)
    else:
        options.add(options.find(BATCH), WORKERS[0], workers)
    return told(code, options, workers=workers, workers_before=before)


def workers_to_cores(code: str, case: Case) -> Fitted | None:
    options = case.options()
    option = options.find(WORKERS)
    before, count = whole_of(option), options.value("gpus.count")
    if option is None or before is None or case.room.cores is None:
        return told(code)
    workers = max(1, case.room.cores // (count if isinstance(count, int) else 1))
    if workers == before:
        return None
    options.set(option, workers)
    return told(code, options, workers=workers, workers_before=before)


def keep_few_checkpoints(code: str, case: Case) -> Fitted | None:
    options = case.options()
    option = options.find(("save_total_limit",))
    before = whole_of(option)
    if before is not None and before <= 2:
        return None
    if option is not None:
        options.set(option, 2)
    elif is_hugging_face(options):
        options.add(options.find(BATCH), "save_total_limit", 2)
    return told(code, options)


def use_bf16(code: str, case: Case) -> Fitted | None:
    options = case.options()
    precision = options.value("accelerate.mixed_precision")
    if precision == "bf16" or ((on := options.find(("bf16",))) is not None and on.is_on):
        return None
    if precision == "fp16":
        options.put("accelerate.mixed_precision", "bf16")
    option = options.find(("fp16",))
    if option is not None and option.is_on and option.form in ("pair", "flag"):
        words = options.words(option.key)
        words[option.position] = option.name.replace("fp16", "bf16")
        options.put(option.key, words)
    return told(code, options)


def lower_lr(code: str, case: Case) -> Fitted:
    options = case.options()
    option = options.find(RATE)
    before = option.number if option is not None else None
    if option is None or before is None or before <= 0:
        return told(code)
    rate = float(f"{before / 2:.3g}")
    options.set(option, rate)
    return told(code, options, rate=rate, rate_before=before)


def from_checkpoint(code: str, case: Case) -> Fitted:
    """With the arguments that the profile names for a run that goes on where one ended."""
    options = case.options()
    resume(options)
    return told(code, options)


def resume(options: ProfileOptions) -> None:
    """Add the profile's own `resume_args`, unless they are there."""
    added, key = options.words("restart.resume_args"), f"{options.kind}.args"
    words = options.words(key)
    places = range(len(words)) if added else ()
    if added and not any(words[at : at + len(added)] == added for at in places):
        options.put(key, [*words, *added])


def is_hugging_face(options: ProfileOptions) -> bool:
    """Its arguments are those of transformers' TrainingArguments."""
    return options.find(BATCH[:1]) is not None


def _is_lightning(options: ProfileOptions) -> bool:
    words = (*options.words(f"{options.kind}.args"), *options.words("command.argv"))
    return any(word.startswith(("--trainer.", "--data.")) for word in words)


def _is_ultralytics(options: ProfileOptions) -> bool:
    words = options.words("command.argv")
    return options.kind == "yolo" or bool(words and PurePosixPath(words[0]).name == "yolo")


def _is_diffusers(options: ProfileOptions) -> bool:
    script = options.value(f"{options.kind}.script")
    return isinstance(script, str) and PurePosixPath(script).name.startswith(_DIFFUSERS)


FITS: Final[dict[str, Fit]] = {
    "smaller_batch": smaller_batch,
    "gradient_checkpointing": gradient_checkpointing,
    "shorter_sequences": shorter_sequences,
    "lean_optimizer": lean_optimizer,
    "shard": shard,
    "expandable_segments": expandable_segments,
    "smaller_eval_batch": smaller_eval_batch,
    "predictions_to_cpu": predictions_to_cpu,
    "fewer_workers": fewer_workers,
    "more_workers": more_workers,
    "workers_to_cores": workers_to_cores,
    "keep_few_checkpoints": keep_few_checkpoints,
    "use_bf16": use_bf16,
    "lower_lr": lower_lr,
    "resume_checkpoint": from_checkpoint,
    "restart_from_checkpoint": from_checkpoint,
}
