"""The filter language's mistakes, in words: where, what was expected, what would do instead."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.domain.filter import Filter, FilterError, parse_filter
from cockpit.domain.filter_nodes import shown
from cockpit.i18n import _
from cockpit.widgets.filter_bar import FilterBar

_EXAMPLES = {
    "memory": "20GiB",
    "percent": "80",
    "celsius": "75",
    "watt": "300",
    "mhz": "1800",
    "count": "2",
    "money": "1.20",
    "time": "5m",
    "version": "550.54",
}


def filter_problem(error: FilterError) -> str:
    """One line. It never says only that something is wrong."""
    facts = error.facts
    example = _EXAMPLES.get(facts.get("kind", ""), _("a word"))
    if error.code == "no_field":
        words = _("no field {given}").format(given=facts["given"])
        return words + (": " + _("{fix}?  tab takes it").format(fix=error.fix) if error.fix else "")
    if error.code == "not_for_numbers":
        return _("{field} is a number: use = or > instead").format(field=facts["field"])
    if error.code in ("not_a_number", "no_value", "not_a_version", "no_such_unit"):
        kinds = {"memory": _("memory"), "time": _("a time"), "version": _("a version")}
        kind = kinds.get(facts.get("kind", ""), _("a number"))
        if facts.get("kind") == "text":
            return _("{field} needs a word after it").format(field=facts["field"])
        words = _("{field} is {kind}: such as {example}")
        return words.format(field=facts["field"], kind=kind, example=example)
    if error.code == "not_a_pattern":
        return _("not a regular expression; {field}: searches for the sign itself").format(
            field=facts["field"]
        )
    return {
        "pattern_too_hard": _("this pattern could take for ever; use : and a word"),
        "unclosed": _('one ")" is missing at the end'),
        "unfinished": _("something is missing at the end"),
        "too_long": _("longer than 512 characters"),
        "too_deep": _("nested more than 20 deep"),
    }.get(error.code, _("not expected here: {sign}").format(sign=facts.get("sign", "")))


def caret_line(error: FilterError, indent: int) -> str:
    """Carets under the place of the mistake, the words after them."""
    carets = "^" * min(24, error.end - error.start)
    return " " * (indent + error.start) + carets + "  " + filter_problem(error)


def read_typed(bar: FilterBar, text: str, saved: Mapping[str, str]) -> Filter | None:
    """What was typed into a bar, or a filter that was saved under that name; None while it cannot be read.

    The bar says what it means, or what is wrong with it.
    """
    try:
        found = parse_filter(saved.get(text.strip().removeprefix("/"), text))
    except FilterError as error:
        bar.say(caret_line(error, 0), wrong=True)
        return None
    bar.say("   ".join(shown(term) for term in found.terms), wrong=False)
    return found
