"""Numbers that went wrong: NaN, infinite gradients, loss scales."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

NUMERIC: Final = (
    Signature(
        id="nan-hf",
        family="nan",
        severity="warning",
        literals=("'grad_norm': nan", "'grad_norm': 'nan", "'grad_norm': inf", "'grad_norm': 'inf"),
        pattern=(r"\{'loss': (?:'[^']*'|[\w.+-]+), 'grad_norm': '?(?:nan|inf)\b"),
        cause="loss_not_finite",
        remedies=("use_bf16", "lower_lr", "check_batch"),
        source="transformers Trainer log dict",
        examples=("{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1.8e-05, 'epoch': 0.42}",),
    ),
    Signature(
        id="nan-megatron",
        family="nan",
        literals=("found NaN in local grad norm", "Unexpected result"),
        pattern=(
            r"found NaN in local grad norm for bucket #(?P<_b>\d+)|Unexpected result (?P<_v>nan|inf)\b"
        ),
        cause="nan_gradient",
        remedies=("use_bf16", "lower_lr", "suspect_card"),
        source="Megatron-LM megatron/core/rerun_state_machine.py, param_and_grad_buffer.py",
        examples=(
            "AssertionError: Rank 3: found NaN in local grad norm for bucket #0 in backward pass "
            "before data-parallel communication collective.",
        ),
    ),
    Signature(
        id="nan-loss",
        family="nan",
        severity="warning",
        literals=("nan", "loss=inf", "loss: inf", "loss': inf", "loss': 'inf"),
        pattern=(
            r"(?:^|[\s,{|\[(])(?:train[_/ ])?(?:lm |total_|"
            r"""avg_)?loss['\"]?\s*[:=]\s*['\"]?(?P<_v>[-+]?(?:nan|inf))\b"""
        ),
        cause="loss_not_finite",
        remedies=("use_bf16", "lower_lr", "resume_checkpoint"),
        source="generic trainer lines",
        examples=(
            "step 1200 | loss: nan | lr 3.0e-04",
            "Epoch 3:  12%|#2        | 120/1000 [01:02<07:31,  1.95it/s, loss=nan]",
        ),
    ),
    Signature(
        id="nan-iterations",
        family="nan",
        severity="warning",
        literals=("number of nan iterations:",),
        pattern=(
            r"iteration +(?P<step>\d+)/ *(?P<total_steps>\d+) \|.*?number of nan iterations: +[1-9]\d*"
            r" \|"
        ),
        cause="loss_not_finite",
        remedies=("use_bf16", "lower_lr", "resume_checkpoint"),
        source="Megatron-LM training.py",
        examples=(
            " [2026-11-30 12:00:00.000001] iteration     1300/  500000 | consumed samples:       "
            "665600 | elapsed time per iteration (ms): 1820.4 | learning rate: 1.2E-04 | global "
            "batch size:   512 | loss scale: 1.0 | number of skipped iterations:   0 | number of "
            "nan iterations:   3 |",
        ),
    ),
    Signature(
        id="megatron-iter",
        family="nan",
        severity="notice",
        role="metric",
        literals=("elapsed time per iteration (ms):",),
        pattern=(
            r"iteration +(?P<step>\d+)/ *(?P<total_steps>\d+) \|.*?elapsed time per iteration \(ms\):"
            r" (?P<_ms>[\d.]+) \|(?:.*?lm loss: (?P<_loss>[\d.E+-]+) \|)?(?:.*?grad norm:"
            r" (?P<_gn>[\d.]+|nan|inf) \|)?(?:.*?number of skipped iterations: +(?P<_skip>\d+)"
            r" \|)?(?:.*?number of nan iterations: +(?P<_nan>\d+) \|)?"
        ),
        cause="loss_not_finite",
        source="Megatron-LM megatron/training/training.py",
        examples=(
            " [2026-11-30 12:00:00.000001] iteration     1200/  500000 | consumed samples:       "
            "614400 | elapsed time per iteration (ms): 1820.4 | learning rate: 1.200000E-04 | "
            "global batch size:   512 | lm loss: 2.310000E+00 | loss scale: 1.0 | grad norm: "
            "0.912 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        ),
    ),
    Signature(
        id="ds-minscale",
        family="nan",
        literals=("Current loss scale already at minimum",),
        pattern=(
            r"Current loss scale already at minimum - cannot decrease scale anymore\. Exiting run\."
        ),
        cause="loss_scale_exhausted",
        remedies=("use_bf16", "lower_lr", "resume_checkpoint"),
        source="DeepSpeed runtime/fp16/loss_scaler.py",
        examples=(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
            "Exiting run.",
        ),
    ),
    Signature(
        id="ds-overflow",
        family="nan",
        severity="notice",
        role="count",
        literals=("Skipping step.",),
        pattern=(
            r"(?:\[deepspeed\] )?(?:OVERFLOW! Rank (?P<rank>\d+) Skipping step\.|Overflow detected\."
            r" Skipping step\.)(?: Attempted loss ?scale: (?P<_from>[\d.e+]+), reducing to"
            r" (?P<_to>[\d.e+]+))?"
        ),
        cause="loss_scale_falling",
        remedies=("use_bf16", "lower_lr"),
        at_least=10,
        source="DeepSpeed runtime/fp16/loss_scaler.py",
        examples=(
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing "
            "to 32768",
        ),
    ),
    Signature(
        id="nan-multinomial",
        family="nan",
        literals=("probability tensor contains either `inf`, `nan` or element < 0",),
        pattern=(r"probability tensor contains either `inf`, `nan` or element < 0"),
        cause="nan_logits",
        remedies=("use_bf16", "check_checkpoint"),
        source="pytorch ATen multinomial",
        examples=("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",),
    ),
    Signature(
        id="anomaly",
        family="nan",
        literals=("returned nan values in its",),
        pattern=(r"Function '(?P<_fn>\w+)' returned nan values in its (?P<_i>\d+)th output"),
        cause="nan_gradient",
        remedies=("fix_operation", "use_bf16"),
        source="pytorch autograd",
        examples=(
            "RuntimeError: Function 'SoftmaxBackward0' returned nan values in its 0th output.",
        ),
    ),
)
