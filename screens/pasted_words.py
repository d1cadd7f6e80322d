"""What a pasted ssh line was understood to say, in one line while it is being typed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cockpit.config.pasted import PastedHost, read_pasted
from cockpit.domain.text import safe_line
from cockpit.errors import UsageError
from cockpit.i18n import _
from cockpit.i18n.messages import explain

_PLATFORMS = ("vast", "runpod", "lambda", "autodl", "seetacloud", "paperspace", "tensordock")


def understood(text: str) -> tuple[str, str, bool]:
    """What is understood, what is not used or not right, and whether the line can be taken."""
    if not text.strip():
        return "", "", False
    pasted, problem = read_pasted(text)
    return _parts(pasted), _second_line(pasted, problem), problem is None


def _parts(pasted: PastedHost) -> str:
    parts = [(_("user"), pasted.user), (_("host"), pasted.host), (_("port"), pasted.port)]
    words = [f"{name} {safe_line(str(value))}" for name, value in parts if value]
    if pasted.identity:
        words.append(_key_words(pasted.identity))
    if pasted.jump:
        words.append(f"{_('through')} {safe_line(pasted.jump)}")
    if pasted.forwards:
        ports = " ".join(str(forward.listen_port) for forward in pasted.forwards)
        words.append(f"{_('forwards')} {ports}")
    return "   ".join(words)


def _key_words(identity: str) -> str:
    shown = safe_line(identity)
    try:
        if Path(identity).expanduser().is_file():
            return f"{_('key')} {shown}"
        there = sorted(one.stem for one in Path("~/.ssh").expanduser().glob("*.pub"))
    except (OSError, RuntimeError):
        there = []
    found = (
        _("not found; ~/.ssh has {names}").format(names=", ".join(there[:3]))
        if there
        else _("not found")
    )
    return f"{_('key')} {shown} ({found})"


def _second_line(pasted: PastedHost, problem: UsageError | None) -> str:
    if problem is not None:
        return safe_line(explain(problem.code, dict(problem.facts)).headline)
    if pasted.dropped:
        return _("not used: {parts}").format(
            parts=", ".join(safe_line(one.text, 40) for one in pasted.dropped)
        )
    return ""


def suggested_name(text: str, taken: Iterable[str]) -> str:
    """A short name for the host of that line, not yet in use."""
    pasted, _problem = read_pasted(text)
    host = pasted.host.lower()
    base = next((name for name in _PLATFORMS if name in host), "")
    if not base:
        first = host.split(".")[0]
        numeric = not host or re.fullmatch(r"[\d.:\[\]a-f]*", host) is not None
        base = "gpu" if numeric else re.sub(r"[^a-z0-9_-]", "", first).strip("-_") or "gpu"
    used = set(taken)
    names = (f"{base}-{number}" for number in range(1, 1000))
    return (
        base
        if base not in used and base not in (*_PLATFORMS, "gpu")
        else next(name for name in names if name not in used)
    )
