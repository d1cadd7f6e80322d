"""`cockpit help CODE`: what a code means, whatever part of cockpit says it."""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Final

from cockpit.domain.incidents import SEVERITIES
from cockpit.domain.signatures import BY_ID
from cockpit.domain.signatures.model import Signature
from cockpit.errors import UsageError
from cockpit.i18n import _
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.help_texts import explain_exit, explain_plainly
from cockpit.i18n.incident_texts import TITLES
from cockpit.i18n.messages import codes
from cockpit.i18n.remedy_texts import REMEDIES

_SUGGESTIONS: Final = 3
_USUAL_REMEDIES: Final = 5


def main(args: argparse.Namespace) -> int:
    told = lines(args.code) if args.code else _known() if args.json else _index()
    print(json.dumps({"code": args.code, "text": told}) if args.json else "\n".join(told))
    return 0


def _known() -> list[str]:
    return sorted({*codes(), *TITLES, *BY_ID})


def _index() -> list[str]:
    """Every code by what it is about, wrapped: something to skim."""
    kinds = (
        (_("What can befall a run"), TITLES),
        (_("What a log can say"), BY_ID),
        (_("What cockpit itself says"), codes()),
    )
    told: list[str] = []
    for title, known in kinds:
        words = textwrap.wrap("  ".join(sorted(known)), 96, break_on_hyphens=False)
        told += [title, *(f"  {line}" for line in words), ""]
    return [*told, _("`cockpit help CODE` explains one; an exit code such as 69 is one too.")]


def lines(code: str) -> list[str]:
    """The explanation of one code. Raises UsageError with what was probably meant."""
    if code in BY_ID:
        return _signature_lines(BY_ID[code])
    if code in TITLES:
        return _family_lines(code)
    if code in codes() or code in CAUSES:
        return [code, *explain_plainly(code)]
    if code.isascii() and code.isdigit() and len(code) <= 3:
        return [f"{code}: {explain_exit(int(code))}"]
    known = (*codes(), *TITLES, *BY_ID, *CAUSES)
    near = difflib.get_close_matches(code, known, _SUGGESTIONS)
    raise UsageError("code_unknown", given=code, suggestion=", ".join(near) or None)


def _signature_lines(signature: Signature) -> list[str]:
    told = [
        f"{signature.id}  {signature.severity} {signature.family}: {_(TITLES[signature.family])}"
    ]
    told += _cause_lines(signature.cause)
    told += [
        _("For example:"),
        f"  {signature.examples[0]}",
        _("Read in: {source}").format(source=signature.source),
    ]
    return [*told, *_remedy_lines(signature.remedies)]


def _cause_lines(cause: str) -> list[str]:
    return explain_plainly(cause) if cause in CAUSES else []


def _remedy_lines(remedies: tuple[str, ...]) -> list[str]:
    texts = (_(REMEDIES[code][-1]) for code in remedies if code in REMEDIES)
    return [f"  {number}. {text}" for number, text in enumerate(texts, 1)]


def _family_lines(family: str) -> list[str]:
    rows = [row for row in BY_ID.values() if row.family == family and row.role != "metric"]
    rows.sort(key=lambda row: SEVERITIES.index(row.severity))
    return [
        f"{family}: {_(TITLES[family])}",
        *_cause_lines(family),
        *(f"  {row.id:<20} {row.severity:<8} {_(CAUSES.get(row.cause, ''))}" for row in rows),
        *_remedy_lines(_usual_remedies(rows)),
    ]


def _usual_remedies(rows: Sequence[Signature]) -> tuple[str, ...]:
    """What helps in most of the cases, first."""
    counted = Counter(code for row in rows for code in row.remedies)
    return tuple(code for code, _count in counted.most_common(_USUAL_REMEDIES))
