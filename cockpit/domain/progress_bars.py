"""Bars: tqdm, ultralytics, Lightning, Keras. Which of several bars is the training's is not decided here."""

from __future__ import annotations

import re
from typing import Final

from cockpit.domain.progress_said import LOSS, Said, clock, count, finite, is_bad, seconds

_TQDM: Final = re.compile(
    r"^(?P<desc>.{0,200}?):? *(?P<pct>\d{1,3})%\|[^|]{0,400}\| *(?P<n>[\d.]+[kMG]?)/(?P<total>[\d.]+[kMG]?)"
    r" \[(?P<elapsed>[\d:]+)<(?P<eta>[\d:]+|\?), +(?P<rate>[\d.]+|\?) *"
    r"(?P<unit>(?:it|step|batch|iter)/s|s/(?:it|step|batch|iter))(?P<post>,[^\]]{0,400})?\]"
)
_YOLO: Final = re.compile(
    r"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+[\d.]+[KMGT]?B?\s.{0,200}?(?P<pct>\d+)%\s.{0,100}?(?P<n>\d+)/(?P<total>\d+)"
    r"(?:\s+(?P<rate>[\d.]+)(?P<unit>it/s|s/it))?"
)
_LIGHTNING: Final = re.compile(
    r"Epoch (?P<epoch>\d+)(?:/\d+)? .{0,200}?(?P<n>\d+)/(?P<total>\d+) \S{1,12} .{0,20}?(?P<rate>[\d.]+)it/s"
)
_KERAS: Final = re.compile(
    r"^ *(?P<n>\d+)/(?P<total>\d+) +(?:[━─╸╺ ]{1,80}|\[[=>.]{1,80}\](?: -)?)"
    r" *(?:ETA: [\d:hms]+|[\d:hms]+)?(?: +(?P<pace>[\d.]+)(?P<unit>us|µs|ms|s)/step)?(?P<rest> - .{0,400})?$"
)
_EPOCH: Final = re.compile(r"^Epoch (\d+)")
_NOT_TRAINING: Final = re.compile(
    r"eval|valid|predict|sav|writ|load|download|map|token|shard|fetch|filter|pack|rank|captur|test|generat",
    re.IGNORECASE,
)
_OTHER_BAR: Final = re.compile(
    r"\d{1,3}%\|[^|]{0,400}\| *(?P<n>[\d.]+[kMGT]?)i?B?/(?P<total>[\d.?]+)"
    r"|^ *(?:Class|Images|Scanning|Fusing).{0,200}?(?P<n2>\d+)/(?P<total2>\d+)"
    r"|Completed \| (?P<n3>\d+)/(?P<total3>\d+)"
)
_UNIT_S: Final = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def tqdm(text: str) -> Said | None:
    match = _TQDM.search(text[-1000:])
    if match is None or _NOT_TRAINING.search(match["desc"]):
        return None
    epoch = _EPOCH.match(match["desc"].strip())
    loss = LOSS.search(match["post"] or "") or _LAST_LOSS.search(match["post"] or "")
    return Said(
        step=count(match["n"]),
        total=count(match["total"]),
        epoch=float(epoch[1]) if epoch else None,
        loss=finite(loss[1]) if loss else None,
        step_s=seconds(match["rate"], match["unit"]),
        eta_s=clock(match["eta"]),
        bar=True,
        is_bad=loss is not None and is_bad(loss[1]),
    )


_LAST_LOSS: Final = re.compile(r"\btrain[_/]loss(?:_step)?=([-+\w.]+)")


def yolo(text: str) -> Said | None:
    match = _YOLO.match(text)
    if match is None:
        return None
    return Said(
        step=int(match["n"]),
        total=int(match["total"]),
        epoch=float(match["epoch"]),
        step_s=seconds(match["rate"] or "?", match["unit"] or "it/s"),
        bar=True,
    )


def lightning(text: str) -> Said | None:
    match = _LIGHTNING.search(text)
    if match is None:
        return None
    step_s = seconds(match["rate"], "it/s")
    return Said(
        int(match["n"]), int(match["total"]), float(match["epoch"]), step_s=step_s, bar=True
    )


def keras(text: str) -> Said | None:
    """`938/1875 ━━━━ 3s 2ms/step - loss: 0.41`, and its older form with `[==>...]`."""
    match = _KERAS.match(text[:800])
    if match is None or (match["rest"] is None and match["pace"] is None):
        return None
    loss = LOSS.search(match["rest"] or "")
    pace = finite(match["pace"])
    return Said(
        int(match["n"]),
        int(match["total"]),
        loss=finite(loss[1]) if loss else None,
        step_s=None if pace is None else pace * _UNIT_S[match["unit"]],
        bar=True,
        is_bad=loss is not None and is_bad(loss[1]),
    )


def other_bar(text: str) -> str:
    """Where a bar that is not the training's stands, as `n/total`; empty when there is none."""
    match = _OTHER_BAR.search(text[-1000:])
    if match is None:
        return ""
    groups = ((match[n], match[total]) for n, total in _OTHER_NAMES)
    return next((f"{n}/{total}" for n, total in groups if n is not None), "")


_OTHER_NAMES: Final = (("n", "total"), ("n2", "total2"), ("n3", "total3"))
