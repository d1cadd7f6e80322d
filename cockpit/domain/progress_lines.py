"""What one line of a training or serving tool says about progress: one small parser a format."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final, NamedTuple

_NUM: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf|NaN|-inf"

_TQDM: Final = re.compile(
    r"^(?P<desc>.{0,200}?):? *(?P<pct>\d{1,3})%\|[^|]{0,400}\| *(?P<n>[\d.]+[kMG]?)/(?P<total>[\d.]+[kMG]?)"
    r" \[(?P<elapsed>[\d:]+)<(?P<eta>[\d:]+|\?), +(?P<rate>[\d.]+|\?) *(?P<unit>it/s|s/it|step/s|s/step)"
    r"(?P<post>,[^\]]{0,400})?\]"
)
_HF: Final = re.compile(r"\{(?=[^{}]{0,2000}'loss': )([^{}]{0,2000})\}")
_PAIR: Final = re.compile(r"'([^']{1,60})': '?(" + _NUM + r"|\d+/\d+)'?")
_SWIFT: Final = re.compile(r"'global_step/max_steps': '(\d+)/(\d+)'")
_JSON_STEPS: Final = re.compile(r'"current_steps": (\d+), "total_steps": (\d+)')
_JSON_LOSS: Final = re.compile(r'"loss": (' + _NUM + ")")
_JSON_EPOCH: Final = re.compile(r'"epoch": (' + _NUM + ")")
_MEGATRON: Final = re.compile(
    r"iteration +(?P<step>\d+)/ *(?P<total>\d+) \|.{0,400}?elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
    r"(?:.{0,600}?lm loss: (?P<loss>" + _NUM + r"))?"
)
_DS_STEP: Final = re.compile(r"\[Rank 0\] step=(\d+), skipped=\d+")
_DS_SPEED: Final = re.compile(r"/global_step=(\d+), RunningAvgSamplesPerSec=")
_DS_PIPE: Final = re.compile(r"steps: (\d+) loss: (" + _NUM + r") iter time \(s\): ([\d.]+)")
_NANOGPT: Final = re.compile(r"^iter (\d+): loss (" + _NUM + r"), time ([\d.]+)ms")
_TORCHTUNE: Final = re.compile(r"^Step (\d+) \| .{0,200}?loss:(" + _NUM + ")")
_TORCHTUNE_TOKENS: Final = re.compile(r"tokens_per_second_per_gpu:([\d.]+)")
_VLLM: Final = re.compile(r"Avg generation throughput: ([\d.]+) tokens/s")
_SGLANG: Final = re.compile(r"gen throughput \(token/s\): ([\d.]+)")
_YOLO: Final = re.compile(
    r"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+[\d.]+[KMGT]?B?\s.{0,200}?(?P<pct>\d+)%\s.{0,100}?(?P<n>\d+)/(?P<total>\d+)"
    r"(?:\s+(?P<rate>[\d.]+)(?P<unit>it/s|s/it))?"
)
_LIGHTNING: Final = re.compile(
    r"Epoch (?P<epoch>\d+)(?:/\d+)? .{0,200}?(?P<n>\d+)/(?P<total>\d+) \S{1,12} .{0,20}?(?P<rate>[\d.]+)it/s"
)
_EPOCH: Final = re.compile(r"^Epoch (\d+)")
_PLAIN: Final = re.compile(
    r"\b(?:global_)?step[ :=]+(?P<step>\d{1,10})(?: ?/ ?(?P<total>\d{1,10}))?\b", re.IGNORECASE
)
_LOSS: Final = re.compile(r"\bloss[\"']?[ :=]+'?(" + _NUM + r")\b", re.IGNORECASE)
_NOT_TRAINING: Final = re.compile(
    r"eval|valid|predict|sav|writ|load|download|map|token|shard|fetch|filter|pack|rank|captur|test|generat",
    re.IGNORECASE,
)
_SCALE: Final = {"k": 1e3, "M": 1e6, "G": 1e9}


class Said(NamedTuple):
    """The parts of a progress report; None for what the line does not say."""

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    loss: float | None = None
    step_s: float | None = None
    tokens_s: float | None = None
    eta_s: float | None = None
    bar: bool = False
    """It is a bar's state: others (evaluation, saving) look just like it."""


def read(text: str) -> Said | None:
    """What the line says, if it is of a known form."""
    for word, parser in _PARSERS:
        if word in text:
            said = parser(text)
            if said is not None:
                return said
    return None


def _tqdm(text: str) -> Said | None:
    match = _TQDM.search(text[-1000:])
    if match is None or _NOT_TRAINING.search(match["desc"]):
        return None
    epoch = _EPOCH.match(match["desc"].strip())
    loss = _LOSS.search(match["post"] or "")
    return Said(
        step=_count(match["n"]),
        total=_count(match["total"]),
        epoch=float(epoch[1]) if epoch else None,
        loss=_finite(loss[1]) if loss else None,
        step_s=_seconds(match["rate"], match["unit"]),
        eta_s=_clock(match["eta"]),
        bar=True,
    )


def _hf(text: str) -> Said | None:
    body = _HF.search(text)
    if body is None:
        return None
    pairs = dict(_PAIR.findall(body[1]))
    place = _SWIFT.search(body[1])
    return Said(
        step=int(place[1]) if place else None,
        total=int(place[2]) if place else None,
        epoch=_finite(pairs.get("epoch")),
        loss=_finite(pairs.get("loss")),
        step_s=_finite(pairs.get("train_speed(s/it)")),
        tokens_s=_finite(pairs.get("train_tokens_per_second")),
    )


def _json(text: str) -> Said | None:
    place = _JSON_STEPS.search(text)
    if place is None:
        return None
    loss, epoch = _JSON_LOSS.search(text), _JSON_EPOCH.search(text)
    return Said(
        step=int(place[1]),
        total=int(place[2]),
        loss=_finite(loss[1]) if loss else None,
        epoch=_finite(epoch[1]) if epoch else None,
    )


def _megatron(text: str) -> Said | None:
    match = _MEGATRON.search(text)
    if match is None:
        return None
    loss = _finite(match["loss"]) if match["loss"] else None
    return Said(
        int(match["step"]), int(match["total"]), loss=loss, step_s=float(match["ms"]) / 1000
    )


def _deepspeed(text: str) -> Said | None:
    match = _DS_PIPE.search(text)
    if match is not None:
        return Said(int(match[1]), loss=_finite(match[2]), step_s=_finite(match[3]))
    match = _DS_STEP.search(text) or _DS_SPEED.search(text)
    return Said(int(match[1])) if match else None


def _nanogpt(text: str) -> Said | None:
    match = _NANOGPT.match(text)
    if match is None:
        return None
    return Said(int(match[1]), loss=_finite(match[2]), step_s=float(match[3]) / 1000)


def _torchtune(text: str) -> Said | None:
    match = _TORCHTUNE.match(text)
    if match is None:
        return None
    tokens = _TORCHTUNE_TOKENS.search(text)
    return Said(
        int(match[1]), loss=_finite(match[2]), tokens_s=_finite(tokens[1]) if tokens else None
    )


def _vllm(text: str) -> Said | None:
    match = _VLLM.search(text)
    return Said(tokens_s=_finite(match[1])) if match else None


def _sglang(text: str) -> Said | None:
    match = _SGLANG.search(text)
    return Said(tokens_s=_finite(match[1])) if match else None


def _yolo(text: str) -> Said | None:
    match = _YOLO.match(text)
    if match is None:
        return None
    return Said(
        step=int(match["n"]),
        total=int(match["total"]),
        epoch=float(match["epoch"]),
        step_s=_seconds(match["rate"] or "?", match["unit"] or "it/s"),
        bar=True,
    )


def _lightning(text: str) -> Said | None:
    match = _LIGHTNING.search(text)
    if match is None:
        return None
    step_s = _seconds(match["rate"], "it/s")
    return Said(
        int(match["n"]), int(match["total"]), float(match["epoch"]), step_s=step_s, bar=True
    )


def _plain(text: str) -> Said | None:
    """`step 812/2000 | loss 1.83`, as people write it themselves; a step alone is not enough."""
    match = _PLAIN.search(text[:400])
    loss = _LOSS.search(text[:600])
    if match is None or (loss is None and match["total"] is None):
        return None
    total = int(match["total"]) if match["total"] else None
    return Said(int(match["step"]), total, loss=_finite(loss[1]) if loss else None)


def _count(text: str) -> int:
    scale = _SCALE.get(text[-1], 1.0)
    number = text if scale == 1.0 else text[:-1]
    try:
        return int(float(number) * scale)
    except (ValueError, OverflowError):
        return 0


def _seconds(rate: str, unit: str) -> float | None:
    number = _finite(rate)
    if number is None or number <= 0:
        return None
    return number if unit.startswith("s/") else 1 / number


def _finite(text: str | None) -> float | None:
    """A number, unless it is NaN, infinite or none at all: those are for the detectors."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _clock(text: str) -> float | None:
    """1:22:36 in seconds."""
    if text == "?" or not text:
        return None
    seconds = 0.0
    for part in text.split(":")[:4]:
        seconds = seconds * 60 + (float(part) if part else 0.0)
    return seconds


_PARSERS: Final[tuple[tuple[str, Callable[[str], Said | None]], ...]] = (
    ("%|", _tqdm),
    ("'loss': ", _hf),
    ('"current_steps"', _json),
    ("elapsed time per iteration", _megatron),
    ("] step=", _deepspeed),
    ("global_step=", _deepspeed),
    ("iter time (s)", _deepspeed),
    ("Step ", _torchtune),
    ("throughput: ", _vllm),
    ("gen throughput", _sglang),
    ("iter ", _nanogpt),
    ("━", _yolo),
    ("it/s", _lightning),
    ("tep", _plain),
)
"""A word that must be there, and the parser to try then; the first that understands the line wins."""
