"""What is told of a run beside its log: events as DESIGN names them, each state once, and words for people."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.domain.gang import is_of_gang
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.run_notes import note_code, note_facts
from cockpit.domain.runs import Progress, RunView
from cockpit.engine.engine import Engine
from cockpit.engine.events import (
    Event,
    IncidentChanged,
    LaunchStep,
    LinkChanged,
    OwnTrouble,
    RunChanged,
    RunNoted,
)
from cockpit.headless.incident_line import incident_fields, incident_text
from cockpit.headless.run_report import RunReport, words_for
from cockpit.headless.step_talk import TOLD

_LIVE = ("live", "degraded", "stale")
_LOST = ("unreachable", "auth_failed", "host_key")
_EVENTS = {
    "queued": "run.queued",
    "running": "run.started",
    "ready": "run.ready",
    "stopping": "run.stopping",
}
_REASONS = {"exited": "", "signal": "", "hook_failed": "before_failed"}
"""Reasons that say nothing more, and one that has another sentence at the end of a run."""
_METRICS = ("step", "total_steps", "epoch", "loss", "step_s", "tokens_s", "eta_s")
_SERVED = (
    "running", "waiting", "kv_usage", "preemptions_per_s", "prompt_tokens_per_s", "gen_tokens_per_s",
    "requests_per_s", "aborted_per_s", "prefix_hit", "ttft_p50_s", "ttft_p95_s", "tpot_p50_s", "tpot_p95_s",
    "itl_p50_s", "itl_p95_s", "e2e_p50_s", "e2e_p95_s", "queue_p50_s", "queue_p95_s",
)  # fmt: skip


class RunTeller:
    def __init__(self, engine: Engine, report: RunReport, run: RunId, host: HostName) -> None:
        self._engine = engine
        self._report = report
        self._run = run
        self._host = host
        self._told: set[str] = set()
        self._is_lost = False
        self._last_end = ""
        self.progress: Progress | None = None
        self._told_progress: Progress | None = None
        self._told_sample_s: float | None = None
        self._told_served_s: float | None = None

    def has_told(self, name: str) -> bool:
        return name in self._told

    def concerns(self, event: Event) -> bool:
        """Of a host's incidents, those of the whole host and of the run's own cards do; other runs' do not."""
        if isinstance(event, IncidentChanged):
            incident = event.incident
            if incident.run is not None:
                return incident.run == self._run or is_of_gang(incident.run, self._run)
            return incident.host == self._host and (
                incident.gpu is None or incident.gpu in self._cards()
            )
        if isinstance(event, RunChanged):
            return event.view.run == self._run
        if isinstance(event, RunNoted):
            return event.run == self._run
        if isinstance(event, LaunchStep):
            return event.run == self._run and event.code not in TOLD
        if isinstance(event, OwnTrouble):
            return True
        return isinstance(event, LinkChanged) and event.host == self._host

    async def event(self, event: Event) -> None:
        if isinstance(event, IncidentChanged) and not _is_news(event):
            return
        if isinstance(event, IncidentChanged):
            words = "" if event.incident.mute else incident_text(event.incident)
            await self._event("incident", incident_fields(event.incident), words)
        elif isinstance(event, RunChanged):
            await self._changed(event.view)
        elif isinstance(event, LinkChanged):
            await self._link(event)
        elif isinstance(event, RunNoted):
            await self._note(event)
        elif isinstance(event, OwnTrouble):
            await self._report.say(words_for(event.code, event.facts))
        elif isinstance(event, LaunchStep) and event.text:
            facts = {"text": event.text, "port": event.text}
            await self._report.say(words_for(event.code, facts))

    async def _changed(self, view: RunView) -> None:
        """A run whose hook `after` works is on its way out too, but nobody stops it."""
        if view.state in _EVENTS and (view.state != "stopping" or view.by == "cockpit"):
            await self.state(_EVENTS[view.state], view)

    async def state(self, name: str, view: RunView | None = None) -> None:
        """run.queued, run.started, …: each once, and in their order."""
        view = view or self._engine.runs.get(self._run)
        if name in self._told or view is None:
            return
        if name == "run.ready" and "run.started" not in self._told:
            await self.state("run.started", view)
        self._told.add(name)
        fields: dict[str, object] = {"gpus": list(view.gpus)}
        if name == "run.queued":
            fields |= {"position": view.position, "waiting_for": view.waiting_for or None}
        await self._event(name, fields, words_for(name.replace(".", "_"), _facts(view)))

    async def _note(self, noted: RunNoted) -> None:
        """Another attempt is a start of its own; everything else is talk."""
        event, view = noted.event, self._engine.runs.get(self._run)
        code = note_code(event)
        words = "" if code is None else words_for(code, note_facts(event, view, self._last_end))
        if event.name == "ended":
            self._last_end = words_for("run_attempt_ended", event.facts)
        attempt = event.facts.get("attempt")
        if event.name == "restart_due":
            await self.state("run.started", view)
            restarts = None if view is None else view.restarts
            wait = {"attempt": attempt, "restarts": restarts, "in_s": event.facts.get("in_s")}
            await self._event("run.starting", wait, words)
        elif event.name == "started" and attempt not in (None, 1):
            begun = {"gpus": list(self._cards()), "attempt": attempt}
            await self._event("run.started", begun, words)
        else:
            await self._report.say(words)

    async def ended(self, view: RunView) -> None:
        await self.metrics()
        fields = {
            "code": view.code,
            "signal": view.signal,
            "reason": view.reason,
            "by": view.by,
            "state": view.state,
            "left": list(view.leftover_pids),
        }
        await self._event("run.exited", fields, how_it_ended(view))

    async def sample(self) -> None:
        """The run's cards and its host now; once a sample."""
        if "run.started" not in self._told:
            return
        await self.metrics()
        await self.served()
        state = self._engine.fleet.hosts.get(self._host)
        latest = state.latest if state is not None else None
        if latest is None or latest.at_s == self._told_sample_s:
            return
        self._told_sample_s = latest.at_s
        await self._event("sample", _sample_fields(latest, self._cards()))

    async def metrics(self) -> None:
        progress = self.progress
        if progress is None or progress == self._told_progress:
            return
        self._told_progress = progress
        await self._event("metric", {name: getattr(progress, name) for name in _METRICS})

    async def served(self) -> None:
        """What a server's own metrics say; once for each look at them."""
        view = self._engine.runs.get(self._run)
        now = None if view is None else view.served
        if now is None or now.at_s == self._told_served_s:
            return
        self._told_served_s = now.at_s
        fields: dict[str, object] = {name: _short(getattr(now, name)) for name in _SERVED}
        if now.models is not None:
            fields["models"] = [
                {
                    "name": one.name,
                    "size_mib": _short(one.size_mib),
                    "vram_mib": _short(one.vram_mib),
                }
                for one in now.models
            ]
        await self._event("metric", fields)

    async def _link(self, event: LinkChanged) -> None:
        if event.after in _LOST and not self._is_lost:
            self._is_lost = True
            words = words_for("run_link_lost", {"host": self._host, "run": self._run})
            await self._event("link.lost", {"code": event.code}, words)
        elif event.after in _LIVE and self._is_lost:
            self._is_lost = False
            await self._event(
                "link.restored", {}, words_for("run_link_restored", {"host": self._host})
            )

    async def _event(self, name: str, fields: Mapping[str, object], words: str = "") -> None:
        await self._report.event(name, self._engine.wall_s(), fields, words)

    def _cards(self) -> tuple[int, ...]:
        view = self._engine.runs.get(self._run)
        return view.gpus if view is not None else ()


def _is_news(event: IncidentChanged) -> bool:
    """Not when only its recording was written, or a rule silenced it."""
    now, before = event.incident, event.before
    if before is None or (before.mute and not now.mute):
        return True
    return (now.state, now.severity, now.finding) != (before.state, before.severity, before.finding)


def how_it_ended(view: RunView) -> str:
    """ "t42 on here ended with code 42.", and what was left over."""
    facts = _facts(view)
    if view.state == "exited" and view.code is not None:
        code = "run_exited"
    elif view.state == "exited" and view.signal is not None:
        code = "run_signalled"
    else:
        code = "run_not_known"
    words = words_for(code, facts)
    reason = _REASONS.get(view.reason or "", view.reason or "")
    return f"{words} {words_for(reason, facts)}" if reason else words


def _facts(view: RunView) -> dict[str, object]:
    return {
        "run": view.run,
        "profile": view.profile,
        "host": view.host,
        "gpus": ", ".join(map(str, view.gpus)),
        "code": view.code,
        "signal": view.signal,
        "left": ", ".join(map(str, view.leftover_pids)),
        "position": view.position,
        "holders": view.waiting_for or None,
    }


def _short(value: float | None) -> float | None:
    return round(value, 4) if isinstance(value, float) else value


def _sample_fields(sample: HostSample, cards: tuple[int, ...]) -> dict[str, object]:
    return {
        "gpus": [
            {
                "index": gpu.index,
                "util_pct": gpu.util_pct,
                "mem_used_mib": gpu.mem_used_mib,
                "mem_total_mib": gpu.mem_total_mib,
                "temp_c": gpu.temp_c,
                "power_w": gpu.power_w,
            }
            for gpu in sample.gpus
            if gpu.index in cards
        ],
        "cpu_pct": sample.cpu_pct,
        "mem_used_mib": sample.mem_used_mib,
        "mem_total_mib": sample.mem_total_mib,
    }
