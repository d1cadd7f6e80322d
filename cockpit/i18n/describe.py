"""An incident in words: title, one line that works alone, what happened, why, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cockpit.i18n import _
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.incident_texts import (
    GPU,
    HELD_BY,
    RANKS,
    RECOVERED_TITLES,
    SUMMARIES,
    TITLES,
    TITLES_BY_CAUSE,
    WHAT,
    WHAT_APP_XID,
    WHAT_BY_CAUSE,
)
from cockpit.i18n.pulse_texts import SURENESS
from cockpit.i18n.remedy_texts import REMEDIES
from cockpit.i18n.sentences import Facts, fill, first_filled, join, listed
from cockpit.i18n.xid_texts import XID_NAMES

_APP_XIDS: Final = frozenset({8, 11, 13, 31, 39, 60, 68, 69})
_MIB_IN_GIB: Final = 1024


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


def describe_incident(incident: IncidentLike | FindingLike) -> IncidentText:
    """Sentences for an incident, or for a finding that no incident was made of yet."""
    inner: FindingLike | None = getattr(incident, "finding", None)
    return _describe(inner if inner is not None else incident)  # type: ignore[arg-type]


def _describe(finding: FindingLike) -> IncidentText:
    facts = shown_facts(finding.facts)
    title = title_of(finding)
    return IncidentText(
        title=title,
        summary=_summary(finding, title, facts),
        what=_what(finding, facts),
        cause=fill(CAUSES.get(finding.cause, ""), facts) or "",
        remedies=tuple(_remedy(remedy) for remedy in finding.remedies),
    )


def title_of(finding: FindingLike) -> str:
    """What it is called, by its cause where that has a name of its own."""
    if finding.recovered and finding.family in RECOVERED_TITLES:
        return _(RECOVERED_TITLES[finding.family])
    named = TITLES_BY_CAUSE.get(finding.cause) or TITLES.get(finding.family)
    return _(named) if named else finding.family.replace("_", " ")


def shown_facts(facts: Mapping[str, int | float | str | bool]) -> dict[str, object]:
    """The facts as they are written: `tried_mib` 1792 is `tried` "1.75 GiB"."""
    shown: dict[str, object] = dict(facts)
    for name, value in facts.items():
        if name.endswith("_mib") and isinstance(value, int | float):
            shown[name.removesuffix("_mib")] = size_text(value)
    slope, eta_s = facts.get("slope_mib_per_h"), facts.get("eta_s")
    if isinstance(slope, int | float):
        shown["slope"] = size_text(slope)
    if isinstance(eta_s, int | float):
        shown["eta"] = _eta_text(eta_s, facts.get("eta_low_s"), facts.get("eta_high_s"))
    still_s, sure = facts.get("still_s"), facts.get("confidence")
    if isinstance(still_s, int | float):
        shown["still"] = span_text(still_s)
    if sure in SURENESS:
        shown["confidence"] = _(SURENESS[str(sure)])
    xid = facts.get("xid")
    if isinstance(xid, int):
        shown["xid_name"] = _(XID_NAMES[xid]) if xid in XID_NAMES else _("not in NVIDIA's list")
    return shown


def _eta_text(at_s: float, low_s: object, high_s: object) -> str:
    """ "5 h (4 h to 7 h)": what one may count on, not what the division gave."""
    text = span_text(at_s)
    if isinstance(low_s, int | float) and isinstance(high_s, int | float):
        return _("{eta} ({low} to {high})").format(
            eta=text, low=span_text(low_s), high=span_text(high_s)
        )
    return text


def span_text(seconds: float) -> str:
    for size_s, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size_s or (unit == "min" and seconds >= 60):
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def size_text(mib: float) -> str:
    """MiB below one GiB, else GiB with as many digits as a person reads."""
    if mib < _MIB_IN_GIB:
        return f"{mib:.0f} MiB" if mib >= 10 else f"{mib:.3g} MiB"
    gib = mib / _MIB_IN_GIB
    return f"{gib:.2f} GiB" if gib < 10 else f"{gib:.1f} GiB"


def _summary(finding: FindingLike, title: str, facts: Facts) -> str:
    numbers = first_filled(SUMMARIES.get(finding.family, ()), facts) or ""
    where = [text for text in (_gpu(finding, facts), _rank(finding)) if text]
    sure = str(facts.get("confidence") or "")
    parts = [part for part in (sure, numbers, *where) if part]
    return title + _(": ") + listed(parts) if parts else title


def _gpu(finding: FindingLike, facts: Facts) -> str:
    return "" if finding.family == "hardware" else fill(GPU, facts) or ""


def _rank(finding: FindingLike) -> str:
    return "" if finding.rank is None else fill(RANKS, {"rank": finding.rank}) or ""


def _what(finding: FindingLike, facts: Facts) -> str:
    templates = WHAT_BY_CAUSE.get(finding.cause) or WHAT.get(finding.family, ())
    if finding.facts.get("xid") in _APP_XIDS:
        templates = (WHAT_APP_XID,)
    sentences = [first_filled(templates, facts), fill(HELD_BY, facts)]
    return join(tuple(sentence for sentence in sentences if sentence))


def _remedy(remedy: RemedyLike) -> RemedyText:
    templates = REMEDIES.get(remedy.code, ())
    text = first_filled(templates, shown_facts(remedy.facts))
    return RemedyText(text or remedy.code.replace("_", " "), remedy.patch)
