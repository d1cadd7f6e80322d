"""The keys of the log view, each with an id, so that a person can give it another key."""

from __future__ import annotations

from textual.binding import Binding

from cockpit.i18n import _
from cockpit.widgets.log_places import EXAMPLES


def _key(keys: str, action: str, words: str, name: str, tip: str = "") -> Binding:
    shown = name in ("follow", "search")
    return Binding(keys, action, words, id=f"log.{name}", show=shown, tooltip=tip or words)


LOG_BINDINGS: list[Binding] = [
    _key("up,k", "cursor(-1)", _("up"), "up"),
    _key("down,j", "cursor(1)", _("down"), "down"),
    _key("pageup,ctrl+u", "page(-1)", _("page up"), "page_up"),
    _key("pagedown,ctrl+d", "page(1)", _("page down"), "page_down"),
    _key("g,home", "start", _("start"), "start"),
    _key("G,end", "follow", _("follow"), "follow", _("go to the end and stay there")),
    _key("left", "sideways(-1)", _("scroll left"), "left"),
    _key("right", "sideways(1)", _("scroll right"), "right"),
    _key(
        "slash",
        "ask('search')",
        _("search"),
        "search",
        _("Plain text; a leading ~ makes it a regular expression"),
    ),
    _key(
        "n", "next(1)", _("next"), "next", _("Next hit, or next incident when nothing is searched")
    ),
    _key("N", "next(-1)", _("previous"), "previous", _("previous hit or incident")),
    _key("W", "wrap", _("wrap"), "wrap", _("long lines in several rows")),
    _key(
        "t",
        "stamps",
        _("Stamps"),
        "stamps",
        _("Time of arrival: clock, since start, since the line before"),
    ),
    _key("V", "floor", _("level"), "level", _("All lines, warnings and errors, errors")),
    _key("ampersand", "ask('filter')", _("only"), "only", _("Only matching lines, whole messages")),
    _key("less_than_sign", "context(-1)", _("less context"), "less"),
    _key("greater_than_sign", "context(1)", _("more context"), "more"),
    _key("at", "ask('time')", _("go to"), "time", f"12:04  -10m  +41:12  step 812  {EXAMPLES}"),
    _key("space", "mark", _("mark"), "mark", _("Mark this line, or take the mark off")),
    _key("apostrophe", "next_mark(1)", _("next mark"), "next_mark"),
    _key("quotation_mark", "next_mark(-1)", _("previous mark"), "previous_mark"),
    _key(
        "y,c", "copy", _("copy"), "copy", _("The selection, else the marked lines, else this line")
    ),
    _key("w", "save", _("save"), "save", _("write the whole log to a file")),
    _key("enter", "open_line", _("incident"), "open", _("the incident that this line opened")),
    _key("escape", "undo", _("undo"), "undo", _("Take back the search, then the filter")),
]
