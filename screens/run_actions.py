"""What one can do to a run, the same from every screen: stop, relaunch, apply a remedy, save its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tomli
from textual.app import App
from textual.content import Content
from textual.notifications import SeverityLevel
from textual.screen import Screen

from cockpit.domain.models import HostName
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import bytes_text, mib_text, price_text
from cockpit.errors import CockpitError, ConfigError
from cockpit.i18n import _, ngettext
from cockpit.screens.base import services
from cockpit.screens.dialogs import ConfirmDialog, MessageDialog, TextPrompt
from cockpit.widgets.run_words import cards_text, state_word
from cockpit.widgets.text_pane import Para, Role

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi, LaunchPlan, StopReport

MOST_PROFILE_BYTES = 1024 * 1024
_COLOURS: dict[Role, str] = {
    "text": "$foreground",
    "strong": "bold",
    "muted": "$text-muted",
    "ok": "$accent",
    "warn": "$warning",
    "fatal": "$error",
}


def as_content(paras: Sequence[Para]) -> Content:
    """The same paragraphs for one of Textual's own widgets; never markup."""
    lines = [
        Content.assemble(
            " " * one.indent, *((text, _COLOURS[role]) for text, role in one.pieces if text)
        )
        for one in paras
    ]
    return Content("\n").join(lines)


def show_error(app: App[object], title: str, error: CockpitError) -> None:
    """What went wrong, in the house's voice; a file's mistakes with their lines."""
    from cockpit.i18n.messages import explain

    message = explain(error.code, error.facts)
    actions = list(message.actions)
    if isinstance(error, ConfigError):
        actions = [*problem_lines(error), *actions]
    app.push_screen(
        MessageDialog(
            title,
            safe_line(message.headline),
            message.body,
            actions=[safe_line(action) for action in actions],
            code=message.code,
        )
    )


def problem_lines(error: ConfigError) -> list[str]:
    """ "qwen.toml line 7  gpus.min_fre: there is no such key" for each mistake of a file."""
    from cockpit.i18n.problem_text import problem_line

    return [
        safe_line(problem_line(one.code, Path(one.file).name, one.line, one.key, one.facts).strip())
        for one in error.problems
    ]


def price_line(engine: EngineApi, host: HostName) -> str:
    spec = engine.hosts.get(host)
    if spec is None or spec.price_per_h is None:
        return ""
    return _("{host} goes on costing {price}").format(
        host=host, price=price_text(spec.price_per_h, spec.currency)
    )


async def stop_run(screen: Screen[None], view: RunView) -> None:
    """Ask, with what follows; then the stop ladder, to its end. To be run in a worker."""
    app, engine = screen.app, services(screen).engine
    name = safe_line(view.profile)
    if view.ended:
        app.notify(
            _("{name} has ended: {how}").format(name=name, how=state_word(view)), markup=False
        )
        return
    if not await app.push_screen_wait(_stop_dialog(engine, view)):
        return
    app.notify(_("Stopping {name} on {host}").format(name=name, host=view.host), markup=False)
    try:
        report = await engine.stop(view.run)
    except CockpitError as error:
        show_error(app, _("{name} was not stopped").format(name=name), error)
        return
    tell_stopped(app, name, report)


def _stop_dialog(engine: EngineApi, view: RunView) -> ConfirmDialog:
    name = safe_line(view.profile)
    cards = _(", GPU {cards}").format(cards=cards_text(view.gpus)) if view.gpus else ""
    body = _("Run {run} on {host}{cards}.").format(run=view.run, host=view.host, cards=cards)
    follows = [
        _(
            "It gets SIGINT, and time to save a checkpoint; then SIGTERM, then SIGKILL, as its profile says."
        ),
        _("Every process that it started is stopped with it."),
    ]
    if view.gpus:
        words = ngettext(
            "Its card is free after that.", "Its {n} cards are free after that.", len(view.gpus)
        )
        follows.append(words.format(n=len(view.gpus)))
    if price := price_line(engine, view.host):
        follows.append(price + ".")
    return ConfirmDialog(
        _("Stop {name}?").format(name=name), body, confirm=_("Stop it"), cancel=_("Let it run"),
        follows=follows, danger=True,
    )  # fmt: skip


def tell_stopped(app: App[object], name: str, report: StopReport) -> None:
    if not report.left:
        last = report.signals[-1] if report.signals else ""
        words = _("{name} is stopped ({last}); nothing of it is left").format(
            name=name, last=last or "-"
        )
        held = [
            _("{memory} still held on GPU {index}").format(memory=mib_text(mib), index=index)
            for index, mib in report.held_mib
        ]
        severity: SeverityLevel = "warning" if held else "information"
        app.notify("\n".join([words, *held]), severity=severity, markup=False)
        return
    stuck = frozenset(report.stuck)
    lines = [
        f"pid {pid}  {safe_line(command, 100)}"
        + (_("  hangs in the kernel: only a restart of the host ends it") if pid in stuck else "")
        for pid, command in zip(
            report.left, report.left_commands or ("",) * len(report.left), strict=False
        )
    ]
    app.push_screen(
        MessageDialog(
            name,
            _("Not everything of the run could be ended."),
            _("These processes are left on the host:"),
            actions=lines,
            code="stop_left",
        )
    )


async def save_log(screen: Screen[None], view: RunView) -> None:
    """Ask for a path, copy the whole log there, say where it is. To be run in a worker."""
    app, engine = screen.app, services(screen).engine
    size = "" if view.log_bytes is None else f", {bytes_text(view.log_bytes)}"
    path = await app.push_screen_wait(
        TextPrompt(
            _("Write the whole log to a file"),
            body=_("Run {run} of {name}{size}. Every byte as the job wrote it.").format(
                run=view.run, name=safe_line(view.profile), size=size
            ),
            value=str(Path.cwd() / file_name(view)),
            check=check_new_file,
        )
    )
    if not path:
        return
    target = full_path(path)
    try:
        written = await engine.save_log(view.run, target)
    except CockpitError as error:
        show_error(app, _("The log was not saved"), error)
        return
    app.notify(_("{size} in {path}").format(size=bytes_text(written), path=target), markup=False)


def file_name(view: RunView) -> str:
    """A plain name for the run's log: its id, which mostly begins with the profile's name."""
    name = view.run if view.run.startswith(view.profile) else f"{view.profile}-{view.run}"
    plain = "".join(char if char.isalnum() or char in "-_." else "-" for char in name)
    return plain.lstrip("-.")[:100] + ".log"


def full_path(typed: str) -> Path:
    return Path(typed.strip()).expanduser()


def check_new_file(typed: str) -> tuple[bool, str]:
    """A file that does not exist yet, in a folder that does."""
    if not typed.strip():
        return False, _("a path is needed")
    target = full_path(typed)
    try:
        if target.exists():
            return False, _("there is such a file; it will not be replaced")
        if not target.parent.is_dir():
            return False, _("there is no folder {folder}").format(folder=target.parent)
    except OSError as error:
        return False, error.strerror or str(error)
    return True, _("a new file in {folder}").format(folder=target.parent)


def show_blocked(app: App[object], plan: LaunchPlan) -> None:
    from cockpit.screens.plan_words import check_text

    lines = [check_text(check) for check in plan.checks if check.verdict == "blocked"]
    words = _("Something speaks against starting it now.")
    app.push_screen(
        MessageDialog(safe_line(plan.profile.name), words, actions=lines, code="launch_blocked")
    )


def read_profile(engine: EngineApi, name: str) -> Mapping[str, object] | None:
    """The profile's file as plain values, for a diff; None when it is not to be found."""
    entry = next((one for one in engine.profiles() if one.name == name), None)
    if entry is None:
        return None
    try:
        if entry.path.stat().st_size > MOST_PROFILE_BYTES:
            return None
        return tomli.loads(entry.path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
