"""Keys as people's keyboards send them: bindings with ids, input methods, and the user's own map."""

from __future__ import annotations

import importlib
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from textual import events
from textual.binding import Binding
from textual.keys import _character_to_key as key_of_character

from cockpit.i18n import _

ESSENTIAL_IDS = ("back", "quit", "palette", "help")
_SCREEN_MODULES = (
    "fleet", "host", "runs", "run", "incidents", "launch", "desk", "first_start", "host_key", "help",
    "replay",
)  # fmt: skip
_FROM_IME = {
    "、": "/",
    "。": ".",
    "【": "[",
    "】": "]",
    "《": "<",
    "》": ">",
    "·": "`",
    "￥": "$",
    "？": "?",
}


def _bind(keys: str, action: str, name: str, label: str, tip: str, **how: bool) -> Binding:
    return Binding(keys, action, label, id=name, tooltip=tip, **how)


APP_BINDINGS: list[Binding] = [
    _bind("1,f", "mode('fleet')", "mode.fleet", _("Fleet"), _("Every host and card")),
    _bind("2,r", "mode('runs')", "mode.runs", _("Runs"), _("What was started from here")),
    _bind("3,i", "mode('incidents')", "mode.incidents", _("Incidents"), _("What is wrong")),
    _bind("4,l", "mode('launch')", "mode.launch", _("Launch"), _("Start a run from a profile")),
    _bind("5", "mode('desk')", "mode.desk", _("Desk"), _("Links, files, looks")),
    _bind("escape", "back", "back", _("back"), _("Undo one layer; never quits")),
    _bind("q", "leave", "leave", _("leave"), _("One level back; at a mode's root it quits")),
    _bind("ctrl+q", "quit", "quit", _("quit"), _("Quit; runs go on"), priority=True),
    _bind("ctrl+c", "help_quit", "interrupt", _("copy"), _("Copy a selection, else how to quit")),
    _bind("question_mark,f1", "help", "help", _("help"), _("The keys that are live here")),
    _bind("colon,ctrl+p", "command_palette", "palette", _("palette"), _("Everything by name")),
    _bind("T", "next_theme", "theme.next", _("theme"), _("Dark, light, high contrast, …")),
    _bind("f5", "probe_now", "probe", _("probe now"), _("Try every host again at once")),
]


def normalised(event: events.Key) -> events.Key:
    """The key that was meant when an input method sent its full-width twin."""
    char = event.character
    if char is None or len(char) != 1 or char.isascii():
        return event
    plain = _FROM_IME.get(char) or unicodedata.normalize("NFKC", char)
    if len(plain) != 1 or not plain.isascii() or not plain.isprintable():
        return event
    return events.Key(key_of_character(plain), plain)


def is_foreign_letter(event: events.Key) -> bool:
    """A letter of another script arrived: the input method is on and no binding can fire."""
    char = event.character
    return char is not None and len(char) == 1 and not char.isascii() and char.isalpha()


def checked_keymap(
    keys: Mapping[str, str], known: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """The user's `[keys]` as far as they can be taken, and in words what cannot be."""
    names = set(known)
    taken: dict[str, str] = {}
    problems: list[str] = []
    for name, chosen in keys.items():
        if name not in names:
            problems.append(_("[keys] {name}: there is no such action").format(name=name))
        elif name in ESSENTIAL_IDS and not chosen.strip(" ,"):
            problems.append(_("[keys] {name} cannot be without a key").format(name=name))
        else:
            taken[name] = chosen
    return taken, problems + _clashes(taken)


def _clashes(keys: Mapping[str, str]) -> list[str]:
    owners: dict[str, str] = {}
    problems = []
    for name, chosen in keys.items():
        for key in (key.strip() for key in chosen.split(",")):
            if key and owners.setdefault(key, name) != name:
                words = _("[keys] {key} is given to {first} and to {second}")
                problems.append(words.format(key=key, first=owners[key], second=name))
    return problems


def all_binding_ids() -> set[str]:
    """The ids of every binding of every screen and widget of ours: what `[keys]` may name."""
    for name in _SCREEN_MODULES:
        importlib.import_module(f"cockpit.screens.{name}")
    modules = [module for name, module in sys.modules.items() if name.startswith("cockpit.")]
    lists = [APP_BINDINGS]
    for module in modules:
        for found in vars(module).values():
            if isinstance(found, type) and found.__module__ == module.__name__:
                lists.append(vars(found).get("BINDINGS", []))
    return {name for bindings in lists for name in binding_ids(bindings)}


def binding_ids(bindings: Sequence[object]) -> list[str]:
    """The ids of a class's BINDINGS."""
    return [one.id for one in bindings if isinstance(one, Binding) and one.id]
