"""How a code and its facts become sentences: variants, left-out sentences, and nothing invented."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from cockpit.i18n import _

Facts: TypeAlias = Mapping[str, object]
_FORMATTER: Final = string.Formatter()


def N_(text: str) -> str:
    """Mark a sentence for the catalogue where it is written; it is translated where it is used."""
    return text


@dataclass(frozen=True, slots=True)
class Entry:
    """What there is to say about one code.

    A sentence that needs a fact which is not there is left out; of the headlines, the first whose
    facts are all there is taken.
    """

    headlines: tuple[str, ...]
    body: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


def fill(template: str, facts: Facts) -> str | None:
    """The sentence in the language in use, or None when a fact that it names is missing."""
    translated = _(template)
    for _text, name, _spec, _conversion in _FORMATTER.parse(translated):
        if name and facts.get(name) in (None, "", ()):
            return None
    shown = {name: _shown(value) for name, value in facts.items()}
    return translated.format_map(shown)


def fill_all(templates: tuple[str, ...], facts: Facts) -> tuple[str, ...]:
    filled = (fill(template, facts) for template in templates)
    return tuple(sentence for sentence in filled if sentence)


def first_filled(templates: tuple[str, ...], facts: Facts) -> str | None:
    return next((text for template in templates if (text := fill(template, facts))), None)


def join(sentences: tuple[str, ...]) -> str:
    """Sentences side by side: a blank between Latin ones, none after a full-width full stop."""
    text = ""
    for sentence in sentences:
        text += sentence if not text or text[-1] in "。：！？" else f" {sentence}"
    return text


def listed(parts: Iterable[str]) -> str:
    """Parts of a line, with the comma of the language."""
    return _(", ").join(part for part in parts if part)


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple | list):
        return ", ".join(str(item) for item in value)
    return value
