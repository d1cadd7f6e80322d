"""What a run's row in the history leaves out and a screen shows: the queue, all of its progress, how it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Final, get_type_hints

from cockpit.domain.recording import number_of, text_of
from cockpit.domain.runs import Progress, RunView
from cockpit.domain.server_json import LoadedModel
from cockpit.domain.server_sample import ServerSample

MOST_MODELS: Final = 32
MOST_NAMES: Final = 64
_PARTS: Final = frozenset({"at_s", "models", "names", "restarted"})


def more_of(view: RunView) -> dict[str, object]:
    served = None if view.served is None else asdict(view.served)
    return {
        "restarts": view.restarts,
        "restart_in_s": view.restart_in_s,
        "waiting_for": view.waiting_for[:400],
        "position": view.position,
        "progress": asdict(view.progress),
        "served": served,
    }


def with_more(view: RunView, told: object, at_s: float) -> RunView:
    """`at_s` is when it was recorded."""
    if not isinstance(told, dict):
        return view
    progress = told.get("progress")
    restarts, position = number_of(told.get("restarts")), number_of(told.get("position"))
    return replace(
        view,
        restarts=int(restarts or 0),
        restart_in_s=number_of(told.get("restart_in_s")),
        waiting_for=text_of(told.get("waiting_for"), 400) or "",
        position=None if position is None else int(position),
        progress=Progress(**_numbers(Progress, progress)) if progress else view.progress,
        served=_served(told.get("served"), at_s),
    )


def _served(told: object, at_s: float) -> ServerSample | None:
    if not isinstance(told, dict):
        return None
    models = told.get("models")
    pairs = told["names"] if isinstance(told.get("names"), list) else []
    words = [
        tuple(text_of(one, 120) or "" for one in pair)
        for pair in pairs[:MOST_NAMES]
        if _is_pair(pair)
    ]
    return ServerSample(
        at_s,
        **_numbers(ServerSample, told),
        restarted=told.get("restarted") is True,
        models=_models(models) if isinstance(models, list) else None,
        names=tuple((word[0], word[1]) for word in words),
    )


def _models(told: list[object]) -> tuple[LoadedModel, ...]:
    found = []
    for one in told[:MOST_MODELS]:
        if isinstance(one, dict) and (name := text_of(one.get("name"), 200)) is not None:
            found.append(LoadedModel(name, **_numbers(LoadedModel, one)))
    return tuple(found)


def _numbers(kind: type[Any], told: object) -> dict[str, Any]:
    """The fields of a kind that are numbers or nothing."""
    values: Mapping[str, object] = told if isinstance(told, dict) else {}
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in _PARTS or each.name not in values:
            continue
        number = number_of(values[each.name])
        if hints[each.name] == int | None:
            found[each.name] = None if number is None else int(number)
        elif hints[each.name] == float | None:
            found[each.name] = number
    return found


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2
