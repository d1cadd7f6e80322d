"""A code explained without an occasion: every sentence, with its facts left as names."""

from __future__ import annotations

from cockpit.i18n import _
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.messages import entry_of


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"<{name}>"


def explain_plainly(code: str) -> list[str]:
    """The sentences of a code; a number that an occasion would give is shown by its name."""
    entry = entry_of(code)
    if entry is None:
        return [_(CAUSES[code])] if code in CAUSES else []
    templates = (entry.headlines[-1], *entry.body, *entry.actions)
    return [_(template).format_map(_Names()) for template in templates]
