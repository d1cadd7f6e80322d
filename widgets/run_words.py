"""Short words about a run, for rows and headers where a sentence does not fit."""

from __future__ import annotations

from rich.style import Style

from cockpit.domain.runs import RunState, RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text
from cockpit.i18n import _
from cockpit.widgets.look import Look

STATE_ORDER: tuple[RunState, ...] = (
    "lost", "unreachable", "stopping", "starting", "running", "ready", "queued", "exited",
)  # fmt: skip


def failed(view: RunView) -> bool:
    """Ended by something other than its own success or our stop."""
    if view.state == "exited" and view.by == "cockpit":
        return False
    return view.ended and view.exit_status != 0


def state_word(view: RunView) -> str:
    """The state in a word; an end says how."""
    if view.state == "exited":
        return end_word(view)
    return {
        "queued": _("queued"),
        "starting": _("starting"),
        "running": _("running"),
        "ready": _("ready"),
        "stopping": _("stopping"),
        "lost": _("lost"),
        "unreachable": _("unreachable"),
    }.get(view.state, view.state)


def end_word(view: RunView) -> str:
    if view.by == "cockpit":
        return _("stopped")
    if view.signal is not None:
        return _("signal {number}").format(number=view.signal)
    if view.code is None:
        return _("ended")
    return _("done") if view.code == 0 else _("exit {code}").format(code=view.code)


def state_sign(view: RunView, look: Look) -> tuple[str, Style]:
    """Glyph and colour of the state."""
    glyphs = look.glyphs
    if view.state in ("running", "ready"):
        return (glyphs.warning, look.warn) if view.degraded else (glyphs.live, look.ok)
    if view.state in ("queued", "starting", "stopping"):
        return glyphs.connecting, look.muted
    if view.state == "unreachable":
        return glyphs.stale, look.warn
    if view.state == "lost":
        return glyphs.lost, look.fatal
    if view.by == "cockpit" or view.exit_status == 0:
        return glyphs.done, look.muted
    return glyphs.lost, look.fatal


def reason_words(view: RunView) -> str:
    """What is worth knowing beside the state: why it ended, what is worse than it should be."""
    if view.leftover_pids:
        return _("{count} of its processes are left").format(count=len(view.leftover_pids))
    if view.restart_in_s is not None and not view.ended:
        return _("restart {number} of {limit} in {wait}").format(
            number=view.attempt, limit=view.restarts, wait=duration_text(view.restart_in_s)
        )
    if view.state == "queued" and view.position is not None:
        return _("number {number} in the queue").format(number=view.position)
    for code in (view.degraded, view.reason):
        if code and code not in ("exited", "signal", "stopped"):
            return {
                "bad_record": _("its record cannot be read"),
                "never_started": _("it was never started"),
                "hook_cut_off": _("cut off in its hook; the job never started"),
                "run_dir_gone": _("its folder on the host is gone"),
                "oom_killed": _("killed for want of memory"),
                "host_restarted": _("the host restarted"),
                "killed_at_logout": _("killed with the last login, it seems"),
                "killed_without_record": _("killed, no record left"),
                "unreachable": _("no link to the host"),
                "another_machine": _("another machine answers at its address"),
                "server_ended": _("a server that nobody had asked to end"),
                "hook_failed": _("its hook before the job failed"),
                "cancelled": _("stopped before it began"),
                "supervisor_died": _("runs on without its supervisor"),
                "sh_only": _("by the shell alone, without Python"),
                "supervisor_stalled": _("its supervisor is stalled"),
            }.get(code, safe_line(code.replace("_", " "), 40))
    return ""


def place_text(view: RunView) -> str:
    """ "vast-a:0", "h100:0-3,6", or the host alone."""
    return f"{view.host}:{cards_text(view.gpus)}" if view.gpus else str(view.host)


def cards_text(gpus: tuple[int, ...]) -> str:
    """Indices with runs of three and more as ranges: "0-3,6"."""
    parts: list[str] = []
    ordered = sorted(gpus)
    while ordered:
        run = 1
        while run < len(ordered) and ordered[run] == ordered[0] + run:
            run += 1
        first, last = ordered[0], ordered[run - 1]
        parts += [f"{first}-{last}"] if run > 2 else [str(index) for index in ordered[:run]]
        ordered = ordered[run:]
    return ",".join(parts)


def elapsed_s(view: RunView, wall_s: float) -> float | None:
    """How long it runs or ran."""
    if view.started_s is None:
        return None
    if view.ended_s is not None:
        return max(0.0, view.ended_s - view.started_s)
    return max(0.0, wall_s - view.here_s(view.started_s))


def elapsed_text(view: RunView, wall_s: float) -> str:
    seconds = elapsed_s(view, wall_s)
    return "" if seconds is None else since_text(seconds)


def since_text(seconds: float) -> str:
    """Whole seconds and whole minutes, rounded down: a clock, not a measurement."""
    return f"{int(seconds)} s" if seconds < 60 else duration_text(seconds - seconds % 60)


def step_text(view: RunView) -> str:
    """ "812/2000", "step 812", "epoch 1.5" or nothing."""
    progress = view.progress
    if progress.step is not None:
        return (
            f"{progress.step}/{progress.total_steps}"
            if progress.total_steps
            else f"step {progress.step}"
        )
    return "" if progress.epoch is None else f"epoch {progress.epoch:.2f}"


def percent_text(view: RunView) -> str:
    progress = view.progress
    if progress.step is None or not progress.total_steps:
        return ""
    return f"{min(100, 100 * progress.step // progress.total_steps)}%"


def cost(view: RunView, price_per_h: float | None, wall_s: float) -> float | None:
    """What the host took while the run was on it. The host goes on costing after it."""
    seconds = elapsed_s(view, wall_s)
    return None if price_per_h is None or seconds is None else price_per_h * seconds / 3600
