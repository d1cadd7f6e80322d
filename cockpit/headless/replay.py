"""`cockpit replay FILE --json`: a recording's events as JSON lines; `--redact OUT`: a copy without names."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cockpit.config.paths import Home
from cockpit.domain.models import HostSample
from cockpit.engine.events import (
    Event,
    EventBus,
    HostRestarted,
    IncidentChanged,
    LaunchStep,
    LinkChanged,
    RunChanged,
    RunNoted,
)
from cockpit.engine.fleet import FleetStore
from cockpit.engine.recording_read import Recording, find_recording, read_recording
from cockpit.engine.recording_redact import write_redacted
from cockpit.engine.recording_rows import log_data
from cockpit.engine.replay_player import ReplayPlayer
from cockpit.errors import UsageError
from cockpit.headless.incident_line import incident_fields
from cockpit.headless.status_json import gpu_object
from cockpit.i18n import _

Told = dict[str, Any]
_STATES = {
    "queued": "run.queued", "starting": "run.starting", "running": "run.started",
    "ready": "run.ready", "stopping": "run.stopping", "exited": "run.exited", "lost": "run.lost",
    "unreachable": "run.unreachable",
}  # fmt: skip
_LIVE = ("live", "degraded", "stale")


def main(args: argparse.Namespace) -> int:
    """Raises DataError with line and reason, StorageError, UsageError."""
    recording = read_recording(find_recording(Home.from_environ(), args.file))
    if args.redact:
        write_redacted(recording, Path(args.redact))
    if args.json:
        for told in events_of(recording):
            print(json.dumps(told, ensure_ascii=False))
    if not recording.is_whole:
        words = _("The recording is cut off; this is as far as it goes.")
        print(words, file=sys.stderr)
    return 0


def without_a_screen(args: argparse.Namespace) -> int:
    """A recording that was to be shown where there is no screen. Raises for the file first, then for the screen."""
    read_recording(find_recording(Home.from_environ(), args.file))
    raise UsageError("replay_no_terminal")


def events_of(recording: Recording) -> Iterator[Told]:
    """The recording itself, then what happened in it, in the shapes of `run --json`."""
    header, occasion = recording.header, recording.header.occasion
    yield {
        "event": "recording",
        "at_s": recording.begin_s,
        "end_s": recording.end_s,
        "hosts": [one.name for one in header.hosts],
        "incident": None
        if occasion is None
        else {"key": occasion.key, "at_s": occasion.at_s, "host": occasion.host},
        "made_by": header.made_by,
        "redacted": header.redacted,
        "whole": recording.is_whole,
    }
    fleet = FleetStore(_host_names(recording))
    heard: list[Told] = []
    bus = EventBus(lambda error: None)
    bus.subscribe(lambda event: heard.extend(_told(event)))
    player = ReplayPlayer(recording, fleet, bus)
    player.on_log = lambda run, host, told: heard.append(_log(run, host, told))
    player.on_sample = lambda sample, at_s: heard.append(_sample(sample, at_s))
    while player.position < len(recording.frames):
        player.play(recording.frames[player.position].at_s, 1)
        yield from heard
        heard.clear()


def _host_names(recording: Recording) -> list[Any]:
    names = {one.name: None for one in recording.header.hosts}
    names |= {frame.host: None for frame in recording.frames if frame.host is not None}
    return list(names)


def _told(event: Event) -> list[Told]:
    tell: Callable[[Any], Told] | None = _TELLERS.get(type(event))
    return [] if tell is None else [tell(event)]


def _link(event: LinkChanged) -> Told:
    is_live = event.after in _LIVE
    return {
        "event": "link.restored" if is_live else "link.lost",
        "run": None, "host": event.host, "at_s": event.at_s, "state": event.after, "code": event.code,
    }  # fmt: skip


def _run(event: RunChanged) -> Told:
    view = event.view
    told: Told = {
        "event": _STATES[view.state], "run": view.run, "host": view.host, "at_s": event.at_s,
        "name": view.profile, "gpus": list(view.gpus),
    }  # fmt: skip
    if view.ended:
        told |= {"code": view.code, "signal": view.signal, "reason": view.reason, "by": view.by}
    return told


def _incident(event: IncidentChanged) -> Told:
    one = event.incident
    head = {"event": "incident", "run": one.run, "host": one.host, "at_s": event.at_s}
    return {**head, **incident_fields(one), "key": one.key, "opened_s": one.opened_s}


def _note(event: RunNoted) -> Told:
    facts = dict(event.event.facts)
    return {
        "event": "run.noted", "run": event.run, "host": event.host, "at_s": event.at_s,
        "name": event.event.name, "facts": facts,
    }  # fmt: skip


def _step(event: LaunchStep) -> Told:
    return {
        "event": "run.step", "run": event.run, "host": event.host, "at_s": event.at_s,
        "code": event.code, "text": event.text,
    }  # fmt: skip


def _restarted(event: HostRestarted) -> Told:
    return {"event": "host.restarted", "run": None, "host": event.host, "at_s": event.at_s}


def _log(run: str, host: str | None, told: Any) -> Told:
    text = log_data(told).decode("utf-8", "replace")
    return {
        "event": "log", "run": run, "host": host, "at_s": told["t"], "offset": told["offset"],
        "text": text,
    }  # fmt: skip


def _sample(sample: HostSample, at_s: float) -> Told:
    return {
        "event": "sample", "run": None, "host": sample.host, "at_s": at_s,
        "gpus": [gpu_object(gpu) for gpu in sample.gpus],
        "cpu_pct": sample.cpu_pct, "mem_used_mib": sample.mem_used_mib,
        "mem_total_mib": sample.mem_total_mib,
    }  # fmt: skip


_TELLERS: dict[type, Callable[[Any], Told]] = {
    LinkChanged: _link, RunChanged: _run, IncidentChanged: _incident, RunNoted: _note,
    LaunchStep: _step, HostRestarted: _restarted,
}  # fmt: skip
