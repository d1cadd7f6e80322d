"""Sentences and rows of a launch plan: cards, checks, command, price."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cockpit.domain.code_files import CodePlan
from cockpit.domain.text import safe_line
from cockpit.domain.units import bytes_text, price_text
from cockpit.engine.api import Check, LaunchPlan
from cockpit.errors import CockpitError, ConfigError
from cockpit.i18n import _, ngettext
from cockpit.widgets.drawing import padded
from cockpit.widgets.host_words import short_card
from cockpit.widgets.text_pane import BLANK, Para, Role, code, heading, para

_SIGNS: dict[str, tuple[str, Role]] = {
    "ok": ("ok", "ok"),
    "warning": ("!", "warn"),
    "blocked": ("no", "fatal"),
    "unknown": ("?", "muted"),
}


def check_text(check: Check) -> str:
    """A check as a sentence, made where all sentences are made."""
    from cockpit.i18n.messages import explain

    return safe_line(explain(check.code, check.facts).headline)


def check_paras(checks: Sequence[Check]) -> list[Para]:
    """One line a check: its verdict as a word, then what was looked at."""
    lines = []
    for check in checks:
        sign, role = _SIGNS.get(check.verdict, _SIGNS["unknown"])
        text_role: Role = "muted" if check.verdict == "ok" else "text"
        pieces: tuple[tuple[str, Role], ...] = (
            (sign.ljust(4), role),
            (check_text(check), text_role),
        )
        lines.append(Para(pieces, hang=4))
    return lines


def where_text(plan: LaunchPlan) -> str:
    """ "vast-a, GPU 0 (RTX 4090)", or the host alone when no card is reserved."""
    if not plan.cards:
        return _("{host}, no card reserved").format(host=plan.host)
    cards = ",".join(str(card.index) for card in plan.cards)
    name = short_card(plan.cards[0].name)
    words = _("{host}, GPU {cards} ({name})") if name else _("{host}, GPU {cards}")
    return words.format(host=plan.host, cards=cards, name=name)


def price_words(plan: LaunchPlan) -> str:
    price = price_text(plan.price_per_h, plan.currency)
    return price or _("price not known; set it in hosts.toml")


def plan_paras(plan: LaunchPlan, toml: Sequence[Para]) -> list[Para]:
    """Everything one reads before Go: where, price, checks, command, profile."""
    command = " ".join(shlex.quote(part) for part in plan.argv)
    rows = [
        Para(((padded(_("where"), 9), "muted"), (safe_line(where_text(plan)), "strong"))),
        Para(((padded(_("price"), 9), "muted"), (price_words(plan), "strong"))),
        Para(((padded(_("command"), 9), "muted"), (safe_line(command), "text")), hang=9),
        Para(((padded(_("folder"), 9), "muted"), (safe_line(plan.cwd), "text")), hang=9),
    ]
    if plan.env_set or plan.env_secret_names:
        names = [f"{name}={safe_line(value, 60)}" for name, value in plan.env_set.items()]
        names += [_("{name} (secret)").format(name=name) for name in plan.env_secret_names]
        rows.append(
            Para(((padded(_("env"), 9), "muted"), (safe_line("  ".join(names)), "text")), hang=9)
        )
    if plan.forwards:
        ports = ", ".join(f"localhost:{local} -> {remote}" for local, remote in plan.forwards)
        rows.append(Para(((padded(_("ports"), 9), "muted"), (ports, "text")), hang=9))
    if plan.code is not None:
        rows.append(
            Para(((padded(_("code"), 9), "muted"), (code_words(plan.code), "text")), hang=9)
        )
    rows.append(BLANK)
    if plan.checks:
        rows += [heading(_("Checks")), *check_paras(plan.checks), BLANK]
    return [*rows, heading(_("Profile")), *toml]


def code_words(code: CodePlan) -> str:
    """ "41 files, 1.2 MiB of ~/qwen go to ~/qwen", and where its repository stands."""
    words = ngettext(
        "{n} file, {size}, of {folder} goes to {cwd}",
        "{n} files, {size}, of {folder} go to {cwd}",
        code.count,
    ).format(
        n=code.count,
        size=bytes_text(code.total_bytes),
        folder=safe_line(code.root),
        cwd=safe_line(code.cwd),
    )
    if code.git is None or code.git.commit is None:
        return words
    changes = _(", with changes") if code.git.is_dirty else ""
    return f"{words} ({code.git.commit[:10]} {code.git.branch or ''}".rstrip() + f"{changes})"


def large_lines(code: CodePlan) -> list[str]:
    """What makes it large, and what to do about it."""
    names = ", ".join(f"{name} {bytes_text(size)}" for name, size in code.largest[:5])
    return [
        _("Largest: {names}.").format(names=names),
        _("What a run does not need can be left out: name it in .cockpitignore."),
    ]


def script_paras(plan: LaunchPlan) -> list[Para]:
    """Exactly what the host's shell would run; secrets are names only."""
    lines = [
        para(_("This is what {host} would run. V goes back.").format(host=plan.host), "muted"),
        BLANK,
    ]
    return [*lines, *(code((safe_line(line), "text")) for line in plan.script.splitlines())]


def error_paras(error: CockpitError) -> list[Para]:
    """Why there is no plan: the message, and every mistake of the file with its line."""
    from cockpit.i18n.messages import explain
    from cockpit.screens.run_actions import problem_lines

    message = explain(error.code, error.facts)
    rows = [para(safe_line(message.headline), "warn")]
    if isinstance(error, ConfigError):
        rows += [para(line, "fatal", indent=2, hang=2) for line in problem_lines(error)]
    if message.body:
        rows.append(para(message.body))
    rows += [para(safe_line(action), "text", indent=2, hang=2) for action in message.actions]
    return [*rows, para(message.code, "muted"), BLANK]
