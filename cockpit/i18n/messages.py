"""Every sentence that a person reads about a failure or an incident is made here, from its code.

Domain, engine and transport return codes and facts; both front ends call `explain` or
`describe_incident`. JSON is English whatever the language (`cockpit.i18n.english`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cockpit.i18n import _
from cockpit.i18n.around_entries import AROUND_ENTRIES
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.code_entries import CODE_ENTRIES
from cockpit.i18n.common_entries import COMMON_ENTRIES
from cockpit.i18n.config_entries import ENTRIES as CONFIG_ENTRIES
from cockpit.i18n.config_entries import PROBLEMS
from cockpit.i18n.describe import IncidentText, RemedyText, describe_incident
from cockpit.i18n.host_entries import HOST_ENTRIES
from cockpit.i18n.incident_texts import TITLES
from cockpit.i18n.probe_entries import PROBE_ENTRIES
from cockpit.i18n.replay_entries import REPLAY_ENTRIES
from cockpit.i18n.run_entries import RUN_ENTRIES
from cockpit.i18n.run_note_entries import RUN_NOTE_ENTRIES
from cockpit.i18n.run_talk import RUN_TALK
from cockpit.i18n.sentences import Entry, Facts, fill_all, first_filled, join

__all__ = [
    "IncidentText", "Message", "RemedyText", "codes", "describe_incident", "entry_of", "explain",
    "knows", "reason_text",
]  # fmt: skip

_ENTRIES: Final[dict[str, Entry]] = {
    **{code: Entry(templates) for code, templates in PROBLEMS.items()},
    **COMMON_ENTRIES,
    **PROBE_ENTRIES,
    **RUN_ENTRIES,
    **RUN_NOTE_ENTRIES,
    **RUN_TALK,
    **AROUND_ENTRIES,
    **REPLAY_ENTRIES,
    **CODE_ENTRIES,
    **HOST_ENTRIES,
    **CONFIG_ENTRIES,
}


@dataclass(frozen=True, slots=True)
class Message:
    """What happened, why, what to do."""

    headline: str
    body: str = ""
    actions: tuple[str, ...] = ()
    code: str = ""

    @property
    def text(self) -> str:
        """All of it as plain lines, for a terminal without a screen."""
        lines = (self.headline, self.body, *self.actions)
        return "\n".join(line for line in lines if line)


def codes() -> tuple[str, ...]:
    """Every code that has sentences, cases of a `why` left out."""
    return tuple(sorted(code for code in _ENTRIES if ":" not in code))


def entry_of(code: str) -> Entry | None:
    return _ENTRIES.get(code)


def knows(code: str) -> bool:
    """Whether there is a sentence of its own for `code`."""
    return code in _ENTRIES or code in CAUSES or code in TITLES


def explain(code: str, facts: Facts | None = None) -> Message:
    """Sentences for a code of `errors.py`, of a link, of a check or of an empty screen."""
    given = dict(facts or {})
    for name in (f"{code}:{given.get('why')}", code):
        entry = _ENTRIES.get(name)
        headline = first_filled(entry.headlines, given) if entry else None
        if entry is not None and headline is not None:
            body = join(fill_all(entry.body, given))
            return Message(headline, body, fill_all(entry.actions, given), code)
    return _plain(code, given)


def reason_text(state_why: str) -> str:
    """Why an incident is in its state: a code of ours in words, or what a person wrote."""
    code, _colon, key = state_why.partition(":")
    if code == "explained_by":
        family = key.rsplit("/", 2)[-2] if key.count("/") >= 2 else ""
        title = _(TITLES[family]) if family in TITLES else key
        return explain(code, {"title": title}).headline
    if code == "relaunched_as":
        return explain(code, {"run": key}).headline
    return explain(code).headline if not key and code in _ENTRIES else state_why


def _plain(code: str, facts: Facts) -> Message:
    """A code without numbers to fill in, or one that nobody wrote a sentence for."""
    if code in CAUSES:
        title = TITLES.get(code)
        return Message(_(title) if title else _(CAUSES[code]), "", (), code)
    if code in TITLES:
        return Message(_(TITLES[code]), "", (), code)
    words = code.replace("_", " ").strip() or _("unknown")
    shown = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    return Message(f"{words[:1].upper()}{words[1:]}.", shown, (), code)
