"""Every sentence that a person reads about a failure or an incident is made here, from its code.

Domain, engine and transport return codes and facts; both front ends call `explain` or
`describe_incident`. JSON never passes through here: it is English and made of facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cockpit.i18n import _
from cockpit.i18n.sentences import Entry, Facts, fill_all, first_filled, join


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


@dataclass(frozen=True, slots=True)
class RemedyText:
    """One thing to do, as a sentence, and the profile change that does it."""

    text: str
    patch: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class IncidentText:
    """The sentences of one incident: the card of a screen, or lines on stderr."""

    title: str
    """What it is, in words: "Out of GPU memory"."""
    summary: str
    """The title and the numbers that matter, in one line that works alone."""
    what: str = ""
    cause: str = ""
    remedies: tuple[RemedyText, ...] = ()


class RemedyLike(Protocol):
    @property
    def code(self) -> str: ...
    @property
    def facts(self) -> Mapping[str, int | float | str | bool]: ...
    @property
    def patch(self) -> Mapping[str, object] | None: ...


class FindingLike(Protocol):
    """A `domain.incidents.Finding`; i18n sits below domain and knows only its shape."""

    @property
    def family(self) -> str: ...
    @property
    def signature(self) -> str: ...
    @property
    def facts(self) -> Mapping[str, int | float | str | bool]: ...
    @property
    def cause(self) -> str: ...
    @property
    def remedies(self) -> Sequence[RemedyLike]: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def recovered(self) -> bool: ...
    @property
    def text(self) -> str: ...


class IncidentLike(Protocol):
    @property
    def finding(self) -> FindingLike: ...


_ENTRIES: dict[str, Entry] = {}


def knows(code: str) -> bool:
    """Whether there is a sentence of its own for `code`."""
    return code in _ENTRIES


def explain(code: str, facts: Facts | None = None) -> Message:
    """Sentences for a code of `errors.py`, of a link, of a check or of an empty screen."""
    given = dict(facts or {})
    entry = _ENTRIES.get(code)
    headline = first_filled(entry.headlines, given) if entry else None
    if entry is None or headline is None:
        return _generic(code, given)
    return Message(
        headline, join(fill_all(entry.body, given)), fill_all(entry.actions, given), code
    )


def _generic(code: str, facts: Facts) -> Message:
    words = code.replace("_", " ").strip() or _("unknown")
    shown = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    return Message(f"{words[:1].upper()}{words[1:]}.", shown, (), code)


def describe_incident(incident: IncidentLike | FindingLike) -> IncidentText:
    """Sentences for an incident, or for a finding that no incident was made of yet."""
    finding: FindingLike = getattr(incident, "finding", incident)
    return IncidentText(title=finding.family, summary=f"{finding.family} {finding.text}".strip())
