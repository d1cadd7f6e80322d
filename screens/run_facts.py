"""What a run's screen says in words: its steps, its end, the link, and what to expect of a silent log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.domain.code_files import SENT_NOTE
from cockpit.domain.incidents import Incident
from cockpit.domain.models import GpuSample, RunId
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import bytes_text, duration_text, mib_text
from cockpit.i18n import _
from cockpit.i18n.messages import describe_incident, explain
from cockpit.i18n.sentences import join
from cockpit.widgets.drawing import padded
from cockpit.widgets.host_words import age_text
from cockpit.widgets.log_time import clock
from cockpit.widgets.look import Look
from cockpit.widgets.run_header import RunFacts
from cockpit.widgets.run_words import (
    cost,
    elapsed_s,
    elapsed_text,
    failed,
    reason_words,
    since_text,
    state_word,
)
from cockpit.widgets.text_pane import BLANK, Para, Role

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi, Forwarded


def cards_of(engine: EngineApi, view: RunView) -> list[GpuSample]:
    state = engine.fleet.hosts.get(view.host)
    sample = None if state is None else state.latest
    return [] if sample is None else [gpu for gpu in sample.gpus if gpu.index in view.gpus]


def facts_of(engine: EngineApi, view: RunView, losses: tuple[float, ...]) -> RunFacts:
    wall_s = engine.wall_s()
    cards = cards_of(engine, view)
    used = [gpu.mem_used_mib for gpu in cards if gpu.mem_used_mib is not None]
    total = [gpu.mem_total_mib for gpu in cards if gpu.mem_total_mib is not None]
    spec = engine.hosts.get(view.host)
    spent = cost(view, None if spec is None else spec.price_per_h, wall_s)
    currency = "" if spec is None or spec.currency is None else f" {spec.currency}"
    return RunFacts(
        view,
        elapsed=elapsed_text(view, wall_s),
        cost="" if spent is None else f"{spent:.2f}{currency}",
        link=link_words(engine, view),
        mem_used_mib=sum(used) if used else None,
        mem_total_mib=sum(total) if total else None,
        losses=losses,
    )


def link_words(engine: EngineApi, view: RunView) -> str:
    """Empty while the host answers."""
    state = engine.fleet.hosts.get(view.host)
    if state is None or state.link in ("live", "degraded") or view.ended:
        return ""
    age = age_text(state, engine.now_s())
    lost = _("no answer for {age}").format(age=age) if age else _("link lost")
    return lost + _("; the log goes on on the host")


def ending_words(view: RunView) -> str:
    """ "ended 12:04:31, exit 1"; empty while it lives."""
    if not view.ended:
        return ""
    when = "" if view.ended_s is None else " " + clock(view.here_s(view.ended_s))
    return _("ended{when}, {how}").format(when=when, how=state_word(view))


def empty_words(engine: EngineApi, view: RunView) -> str:
    """What to expect while nothing was printed."""
    if view.ended:
        return _("It printed nothing.")
    if view.state == "queued":
        words = [_("Queued: it starts by itself when its cards are free.")]
        if view.position is not None:
            words.append(_("Number {number} in the queue.").format(number=view.position))
        if view.waiting_for:
            words.append(_("Held: {holders}.").format(holders=safe_line(view.waiting_for, 200)))
        return join(tuple(words))
    seconds = elapsed_s(view, engine.wall_s())
    if seconds is None:
        return _("Starting; nothing printed yet.")
    words = [
        _("Started {age} ago, nothing printed yet.").format(age=since_text(seconds)),
        _("Loading weights often takes 1 to 5 min without a line."),
    ]
    used = [gpu.mem_used_mib for gpu in cards_of(engine, view) if gpu.mem_used_mib is not None]
    if used:
        words.append(_("GPU memory is at {memory}.").format(memory=mib_text(sum(used), width=0)))
    return join(tuple(words))


def step_paras(
    engine: EngineApi, view: RunView, look: Look, earlier: Sequence[Incident] = ()
) -> list[Para]:
    """Steps of a run's life with their marks, then facts about it."""
    done: tuple[str, Role] = (look.glyphs.done, "ok")
    going: tuple[str, Role] = (look.glyphs.connecting, "muted")
    later: tuple[str, Role] = (look.glyphs.dot, "muted")
    started = view.started_s is not None
    at = "" if view.started_s is None else clock(view.here_s(view.started_s))
    sent = dict(view.notes).get(SENT_NOTE)
    lines = [] if sent is None else [_row(done, _("code sent"), safe_line(sent, 120))]
    lines += [
        _row(
            done if started or view.state != "queued" else going,
            _("sent to {host}").format(host=view.host),
        ),
        _row(done if started else going, _("started"), at),
    ]
    if view.state == "ready" or view.kind in _SERVERS:
        ready = view.state == "ready" or (view.ended and view.exit_status == 0)
        lines.append(_row(done if ready else later if view.ended else going, _("ready")))
    else:
        first = view.progress.step is not None or (view.ended and view.exit_status == 0)
        lines.append(
            _row(done if first else later if view.ended or not started else going, _("first step"))
        )
    if view.ended:
        sign: tuple[str, Role] = (look.glyphs.lost, "fatal") if failed(view) else done
        when = "" if view.ended_s is None else clock(view.here_s(view.ended_s))
        lines.append(_row(sign, state_word(view), when))
    return [*lines, BLANK, *_facts(view), *_around(engine, view), *_earlier(earlier)]


_LABEL = 7
_STEPS_SHOWN = 4
_SERVERS = frozenset({"vllm", "sglang", "tgi", "trtllm", "ollama"})


def _row(sign: tuple[str, Role], words: str, detail: str = "") -> Para:
    return Para((sign, (f" {words}", "text"), (f"  {detail}" if detail else "", "muted")), hang=2)


def _facts(view: RunView) -> list[Para]:
    facts: list[tuple[str, str, Role]] = [(_("run"), view.run, "text")]
    if reason := reason_words(view):
        facts.append((_("note"), reason, "warn"))
    if view.attempt > 1:
        attempt = _("{number} of {limit}").format(number=view.attempt, limit=view.restarts + 1)
        facts.append((_("try"), attempt, "text"))
    if view.leftover_pids:
        pids = ", ".join(map(str, view.leftover_pids[:12]))
        facts.append((_("left"), "pid " + pids, "warn"))
    if view.command:
        facts.append((_("job"), safe_line(" ".join(view.command), 400), "muted"))
    if view.tags:
        facts.append((_("tags"), safe_line(", ".join(view.tags)), "muted"))
    if view.log_bytes is not None:
        facts.append((_("log"), bytes_text(view.log_bytes), "muted"))
    if view.remark:
        facts.append((_("remark"), view.remark, "strong"))
    return [_fact(label, text, role) for label, text, role in facts]


def _fact(label: str, text: str, role: Role) -> Para:
    return Para(((padded(label, _LABEL), "muted"), (safe_line(text, 400), role)), hang=_LABEL)


def _around(engine: EngineApi, view: RunView) -> list[Para]:
    """Its ports, its model, how old what is known is, what hooks and messages came to."""
    around, past = engine.around(view.run), engine.past(view.run)
    rows = [
        _fact(_("port"), port_words(one), "text" if one.is_open else "warn")
        for one in around.forwards
    ]
    if around.model:
        rows.append(_fact(_("model"), around.model, "text"))
    if view.state == "unreachable" and past is not None:
        age = duration_text(int(max(0.0, engine.wall_s() - past.seen_s)))
        words = _("{state}, {age} ago").format(state=past.view.state, age=age)
        rows.append(_fact(_("known"), words, "warn"))
    for at_s, code, text in around.steps[-_STEPS_SHOWN:]:
        message = explain(code, {"text": text})
        rows.append(_fact(clock(at_s)[:5], message.headline, "muted"))
    return rows


async def earlier_incidents(engine: EngineApi, run: RunId) -> list[Incident]:
    """What earlier sessions saw of a run, where this one has not seen it itself."""
    known = {one.key for one in engine.incidents.all()}
    return [one for one in await engine.past_incidents(run) if one.key not in known]


def _earlier(incidents: Sequence[Incident]) -> list[Para]:
    """What an earlier session saw go wrong with it."""
    return [
        _fact(clock(one.opened_s)[:5], describe_incident(one).title, "warn")
        for one in incidents[:_STEPS_SHOWN]
    ]


def port_words(one: Forwarded) -> str:
    """ "localhost:8000 -> 8000", or why not."""
    way = f"localhost:{one.local_port} -> {one.remote_port}"
    if one.is_open:
        return way
    why = _("taken on this computer") if one.code == "port_taken" else one.code.replace("_", " ")
    return f"{way}  {why or _('not open')}"
