"""Lines for a terminal: an error, the problems of a file, a notice."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cockpit.i18n import _
from cockpit.i18n.config_entries import NOTICES, PROBLEMS
from cockpit.i18n.messages import explain
from cockpit.i18n.sentences import fill, first_filled

_KEY = re.compile(r"`(?:[A-Za-z]|F[0-9]+)` ")
"""How an action begins that is a key of the screen: no help to a shell."""


def error_lines(code: str, facts: Mapping[str, object]) -> list[str]:
    """What happened, why, what to do, one a line; the stable code ends the first."""
    message = explain(code, facts)
    lines = (message.body, *(one for one in message.actions if not _KEY.match(one)))
    return [f"{message.headline}  {code}", *(line for line in lines if line)]


def problem_text(code: str, facts: Mapping[str, object]) -> str:
    """What is wrong with a key, without saying where."""
    expected = facts.get("expected")
    if isinstance(expected, str):
        facts = {**facts, "expected": _(expected)}
    return first_filled(PROBLEMS.get(code, ()), facts) or explain(code, facts).headline


def problem_line(
    code: str, file: str, line: int | None, key: str, facts: Mapping[str, object]
) -> str:
    """One mistake of a file: "qwen.toml line 12  stop.int = "15": a time needs …"."""
    where = f"{file} {fill(_('line {line}'), {'line': line})}" if line else file
    given = facts.get("given")
    subject = f"{key} = {given}" if key and given is not None and given != key else key
    said = problem_text(code, facts)
    text = f"{subject}: {said}" if subject else said
    return f"  {where}  {text}" if where else f"  {text}"


def notice_text(code: str, facts: Mapping[str, object]) -> str:
    """A word about something that stops nothing."""
    return first_filled(NOTICES.get(code, ()), facts) or code.replace("_", " ")
