"""What one line of a training or serving tool says about progress: one small parser a format."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from cockpit.domain.progress_bars import keras, lightning, tqdm, yolo
from cockpit.domain.progress_said import LOSS, NUM, Said, finite, is_bad
from cockpit.domain.progress_serving import llamacpp, sglang, vllm

MOST_STEPS: Final = 10**12
_HF: Final = re.compile(r"\{(?=[^{}]{0,2000}'loss': )([^{}]{0,2000})\}")
_PAIR: Final = re.compile(r"'([^']{1,60})': '?(" + NUM + r"|\d+/\d+)'?")
_SWIFT: Final = re.compile(r"'global_step/max_steps': '(\d+)/(\d+)'")
_JSON_STEPS: Final = re.compile(r'"current_steps": (\d+), "total_steps": (\d+)')
_JSON_LOSS: Final = re.compile(r'"loss": (' + NUM + ")")
_JSON_EPOCH: Final = re.compile(r'"epoch": (' + NUM + ")")
_MEGATRON: Final = re.compile(
    r"iteration +(?P<step>\d+)/ *(?P<total>\d+) \|.{0,400}?elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
    r"(?:.{0,400}?global batch size: +(?P<batch>\d{1,9}))?(?:.{0,600}?lm loss: (?P<loss>"
    + NUM
    + r"))?"
)
_DS_STEP: Final = re.compile(r"\[Rank 0\] step=(\d+), skipped=\d+")
_DS_SPEED: Final = re.compile(
    r"/global_step=(\d+), RunningAvgSamplesPerSec=(?P<mean>[\d.]+)?(?:, CurrSamplesPerSec=(?P<now>[\d.]+))?"
)
_DS_PIPE: Final = re.compile(
    r"steps: (\d+) loss: (" + NUM + r") iter time \(s\): ([\d.]+)(?: samples/sec: ([\d.]+))?"
)
_NANOGPT: Final = re.compile(r"^iter (\d+): loss (" + NUM + r"), time ([\d.]+)ms")
_TORCHTUNE: Final = re.compile(r"^Step (\d+) \| .{0,200}?loss:(" + NUM + ")")
_TORCHTUNE_TOKENS: Final = re.compile(r"tokens_per_second_per_gpu:([\d.]+)")
_TITAN: Final = re.compile(r"\bstep: *(?P<step>\d{1,10}) +loss: *(?P<loss>" + NUM + ")")
_TITAN_TOKENS: Final = re.compile(r"\btps: *([\d,.]{1,20})")
_TIMED: Final = re.compile(
    r"(?<![\w.])(?:t_)?(?:iter_|batch_|step_)?time:?\s{1,4}(?P<time>\d+\.\d+)(?P<unit>s?)",
    re.IGNORECASE,
)
_DATA: Final = re.compile(
    r"(?<![\w.])(?:t_data|data(?:_time|load_time|_wait|loading_time)?)[:=]?\s{0,4}(?P<data>\d+\.\d+)",
    re.IGNORECASE,
)
_OF_TOTAL: Final = re.compile(
    r"\[ *(?P<step>\d{1,9})/ *(?P<total>\d{1,9})|\biter: *(?P<iter>\d{1,10})\b"
)
_EVALUATION: Final = re.compile(r"\W{0,20}(?:\w{1,20} )?(?:test|val\w*|eval\w*)\b", re.IGNORECASE)
_PLAIN: Final = re.compile(
    r"\b(?:global_)?step[ :=]+(?P<step>\d{1,10})(?: ?/ ?(?P<total>\d{1,10}))?\b", re.IGNORECASE
)


def read(text: str) -> Said | None:
    """What the line says, if it is of a known form."""
    for word, parser in _PARSERS:
        if word in text:
            said = _bounded(parser, text)
            if said is not None:
                return said
    return None


def _bounded(parser: Callable[[str], Said | None], text: str) -> Said | None:
    """A line may be made up: thousands of digits are no number, and no run has so many steps."""
    try:
        said = parser(text)
    except (ValueError, OverflowError):
        return None
    if said is None or max(said.step or 0, said.total or 0) > MOST_STEPS:
        return None
    return said


def _hf(text: str) -> Said | None:
    body = _HF.search(text)
    if body is None:
        return None
    pairs = dict(_PAIR.findall(body[1]))
    place = _SWIFT.search(body[1])
    return Said(
        step=int(place[1]) if place else None,
        total=int(place[2]) if place else None,
        epoch=finite(pairs.get("epoch")),
        loss=finite(pairs.get("loss")),
        step_s=finite(pairs.get("train_speed(s/it)")),
        tokens_s=finite(pairs.get("train_tokens_per_second")),
        is_bad=is_bad(pairs.get("loss")),
    )


def _json(text: str) -> Said | None:
    place = _JSON_STEPS.search(text)
    if place is None:
        return None
    loss, epoch = _JSON_LOSS.search(text), _JSON_EPOCH.search(text)
    return Said(
        step=int(place[1]),
        total=int(place[2]),
        loss=finite(loss[1]) if loss else None,
        epoch=finite(epoch[1]) if epoch else None,
        is_bad=loss is not None and is_bad(loss[1]),
    )


def _megatron(text: str) -> Said | None:
    match = _MEGATRON.search(text)
    if match is None:
        return None
    step_s = (finite(match["ms"]) or 0.0) / 1000
    samples_s = int(match["batch"]) / step_s if match["batch"] and step_s > 0 else None
    return Said(
        int(match["step"]),
        int(match["total"]),
        loss=finite(match["loss"]),
        step_s=step_s or None,
        is_bad=is_bad(match["loss"]),
        samples_s=samples_s,
    )


def _deepspeed(text: str) -> Said | None:
    match = _DS_PIPE.search(text)
    if match is not None:
        return Said(
            int(match[1]),
            loss=finite(match[2]),
            step_s=finite(match[3]),
            is_bad=is_bad(match[2]),
            samples_s=finite(match[4]),
        )
    match = _DS_SPEED.search(text)
    if match is not None:
        return Said(int(match[1]), samples_s=finite(match["now"] or match["mean"]))
    match = _DS_STEP.search(text)
    return Said(int(match[1])) if match else None


def _nanogpt(text: str) -> Said | None:
    match = _NANOGPT.match(text)
    if match is None:
        return None
    step_s = (finite(match[3]) or 0.0) / 1000
    return Said(
        int(match[1]), loss=finite(match[2]), step_s=step_s or None, is_bad=is_bad(match[2])
    )


def _torchtune(text: str) -> Said | None:
    match = _TORCHTUNE.match(text)
    if match is None:
        return None
    tokens = _TORCHTUNE_TOKENS.search(text)
    return Said(
        int(match[1]),
        loss=finite(match[2]),
        tokens_s=finite(tokens[1]) if tokens else None,
        is_bad=is_bad(match[2]),
    )


def _titan(text: str) -> Said | None:
    match, tokens = _TITAN.search(text[:600]), _TITAN_TOKENS.search(text[:600])
    if match is None or tokens is None:
        return None
    return Said(
        int(match["step"]),
        loss=finite(match["loss"]),
        tokens_s=finite(tokens[1]),
        is_bad=is_bad(match["loss"]),
    )


def _timed(text: str) -> Said | None:
    """A line with the time of a step and the part of it that was spent on data: torchvision, timm, mmengine, …"""
    head = text[:600]
    time, data, place = _TIMED.search(head), _DATA.search(head), _OF_TOTAL.search(head)
    if time is None or data is None or place is None or _EVALUATION.match(head):
        return None
    loss = LOSS.search(head)
    step = place["step"] or place["iter"]
    return Said(
        int(step),
        int(place["total"]) if place["total"] else None,
        loss=finite(loss[1]) if loss else None,
        step_s=finite(time["time"]),
        is_bad=loss is not None and is_bad(loss[1]),
        data_s=finite(data["data"]),
    )


def _plain(text: str) -> Said | None:
    """`step 812/2000 | loss 1.83`, as people write it themselves; a step alone is not enough."""
    match = _PLAIN.search(text[:400])
    loss = LOSS.search(text[:600])
    if match is None or (loss is None and match["total"] is None):
        return None
    data = _DATA.search(text[:600])
    return Said(
        int(match["step"]),
        int(match["total"]) if match["total"] else None,
        loss=finite(loss[1]) if loss else None,
        is_bad=loss is not None and is_bad(loss[1]),
        data_s=finite(data["data"]) if data else None,
    )


_PARSERS: Final[tuple[tuple[str, Callable[[str], Said | None]], ...]] = (
    ("%|", tqdm),
    ("'loss': ", _hf),
    ('"current_steps"', _json),
    ("elapsed time per iteration", _megatron),
    ("global_step=", _deepspeed),
    ("] step=", _deepspeed),
    ("iter time (s)", _deepspeed),
    ("Step ", _torchtune),
    ("throughput: ", vllm),
    ("running-req", sglang),
    ("tokens per second", llamacpp),
    ("iter ", _nanogpt),
    ("━", yolo),
    ("━", keras),
    ("/step - ", keras),
    ("- ETA: ", keras),
    ("it/s", lightning),
    ("tps: ", _titan),
    ("ata", _timed),
    ("tep", _plain),
)
"""A word that must be there, and the parser to try then; the first that understands the line wins."""
