"""Applies a recording's frames to the stores of a replay, one by one. No clock, no task: told how far to go."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Final, get_args

from cockpit.domain.models import HostName, HostSample, LinkState, RunId
from cockpit.domain.recording import BadLine, Frame, number_of, parsed, text_of
from cockpit.domain.wire import SampleDecoder
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
from cockpit.engine.fleet import FleetStore, HostState
from cockpit.engine.recording_read import Recording
from cockpit.engine.recording_rows import (
    as_run,
    log_data,
    read_incident_of,
    read_note,
    read_run_of,
    read_why,
)
from cockpit.engine.replay_stores import ReplayIncidents, ReplayLogs, ReplayRunBook

LOUD_S: Final = 3.0
"""Events further back than this from where one goes are not news."""
_OFFSET_MAX: Final = 1 << 53

Told = Mapping[str, object]


class ReplayPlayer:
    """`position` counts the frames that were applied."""

    def __init__(self, recording: Recording, fleet: FleetStore, bus: EventBus) -> None:
        self.incidents = ReplayIncidents()
        self.runs = ReplayRunBook()
        self.logs = ReplayLogs()
        self.position = 0
        self.on_log: Callable[[RunId, HostName | None, Told], None] = lambda run, host, told: None
        """Hears each piece of a log."""
        self.on_sample: Callable[[HostSample, float], None] = lambda sample, at_s: None
        self._frames = recording.frames
        self._fleet = fleet
        self._bus = bus
        self._decoders: dict[HostName, SampleDecoder] = {}
        self._is_loud = True
        self._kinds: dict[str, Callable[[Frame, Told], None]] = {
            "wire": self._wire,
            "full": self._full,
            "link": self._link,
            "run": self._run,
            "incident": self._incident,
            "log": self._log,
            "note": self._note,
            "step": self._step,
            "restarted": self._restarted,
        }

    def play(self, until_s: float, most: int) -> bool:
        """Apply frames up to that time, `most` of them at once; True when there is nothing left to apply."""
        for _n in range(most):
            if self.position >= len(self._frames):
                return True
            frame = self._frames[self.position]
            if frame.at_s > until_s:
                return True
            self.position += 1
            self._is_loud = frame.at_s >= until_s - LOUD_S
            self._apply(frame)
        return False

    def rewind(self) -> None:
        """To before the first frame."""
        self.position = 0
        self._decoders.clear()
        self.incidents.clear()
        self.runs.clear()
        self.logs.clear()
        for host in self._fleet.hosts:
            self._fleet.update(host, **_nothing_known(host))

    def _apply(self, frame: Frame) -> None:
        apply = self._kinds.get(frame.kind)
        if apply is None:
            return
        try:
            told = parsed(frame.line)
        except BadLine:
            return
        apply(frame, told)

    def _publish(self, event: Event) -> None:
        if self._is_loud:
            self._bus.publish(event)

    # -- kinds ------------------------------------------------------------------------------

    def _wire(self, frame: Frame, told: Told) -> None:
        host = frame.host
        if host is None or host not in self._fleet.hosts:
            return
        decoder = self._decoders.get(host)
        if decoder is None:
            decoder = self._decoders[host] = SampleDecoder(host)
        decoded = decoder.feed(json.dumps(told.get("line")).encode())
        if isinstance(decoded, HostSample):
            self._fleet.record(decoded, frame.at_s)
            self.on_sample(decoded, frame.at_s)
            state = self._fleet.hosts[host]
            if state.link == "connecting":
                self._fleet.set_link(host, "live" if decoded.gpus else "degraded")

    def _full(self, frame: Frame, told: Told) -> None:
        if frame.host is not None:
            self._decoders.pop(frame.host, None)
        self._wire(frame, told)

    def _link(self, frame: Frame, told: Told) -> None:
        host, state = frame.host, told.get("state")
        if host is None or host not in self._fleet.hosts or state not in get_args(LinkState):
            return
        link: LinkState = state  # type: ignore[assignment]
        code = text_of(told.get("code"), 60)
        before = self._fleet.hosts[host].link
        self._fleet.set_link(host, link, code=code)
        retry_s = number_of(told.get("retry_in_s"))
        self._fleet.update(
            host,
            why=read_why(told.get("why")),
            address=text_of(told.get("address"), 255),
            latency_s=number_of(told.get("latency_s")),
            key_type=text_of(told.get("key_type"), 60),
            fingerprint=text_of(told.get("fingerprint"), 120),
            known_fingerprint=text_of(told.get("known_fingerprint"), 120),
            retry_at_s=None if retry_s is None else frame.at_s + retry_s,
        )
        if before != link:
            self._publish(LinkChanged(host, before, link, code, frame.at_s))

    def _run(self, frame: Frame, told: Told) -> None:
        view = read_run_of(told, frame.at_s)
        if view is None:
            return
        before = self.runs.put(view)
        if before is None or (before.state, before.attempt) != (view.state, view.attempt):
            self._publish(RunChanged(view, before, frame.at_s))

    def _incident(self, frame: Frame, told: Told) -> None:
        incident = read_incident_of(told)
        if incident is None or not incident.key:
            return
        before = self.incidents.put(incident)
        if incident.run is not None:
            self.logs.of(incident.run).mark(incident)
        if before != incident:
            self._publish(IncidentChanged(incident, before, frame.at_s))

    def _log(self, frame: Frame, told: Told) -> None:
        run, offset, number = as_run(told.get("run")), told.get("offset"), told.get("number")
        data = log_data(told)
        if run is not None and _is_place(offset) and _is_place(number) and data:
            self.logs.of(run).feed(offset, number, data, frame.at_s)  # type: ignore[arg-type]
            self.on_log(run, frame.host, told)

    def _note(self, frame: Frame, told: Told) -> None:
        run, event = as_run(told.get("run")), read_note(told)
        if run is not None and event is not None and frame.host is not None:
            self._publish(RunNoted(run, frame.host, event, frame.at_s))

    def _step(self, frame: Frame, told: Told) -> None:
        run, code = as_run(told.get("run")), text_of(told.get("code"), 60)
        if run is not None and code is not None and frame.host is not None:
            words = text_of(told.get("text"), 400) or ""
            self._publish(LaunchStep(run, frame.host, code, frame.at_s, words))

    def _restarted(self, frame: Frame, told: Told) -> None:
        if frame.host is not None:
            self._publish(HostRestarted(frame.host, frame.at_s))


def _nothing_known(host: HostName) -> dict[str, object]:
    """The fields of a state as they are at first; the state itself may be in screens' hands."""
    blank = HostState(host)
    return {
        each.name: getattr(blank, each.name)
        for each in fields(HostState)
        if each.name not in ("host", "version")
    }


def _is_place(value: object) -> bool:
    return type(value) is int and 0 <= value < _OFFSET_MAX
