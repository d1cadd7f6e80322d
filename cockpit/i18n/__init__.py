"""The one door to translated text: `_()` marks every sentence; a catalogue is a file, not a rewrite."""

from __future__ import annotations

import gettext
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCALES = Path(__file__).parent / "locales"
_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def use_language(language: str) -> None:
    """Load the catalogue of `language` ("en", "zh_CN"); English where there is none."""
    global _catalogue
    _catalogue = gettext.translation("cockpit", _LOCALES, [language], fallback=True)


def _(text: str) -> str:
    return _catalogue.gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    return _catalogue.ngettext(one, many, count)


@contextmanager
def english() -> Iterator[None]:
    """English whatever the language in use: for JSON, which programs read."""
    global _catalogue
    before, _catalogue = _catalogue, gettext.NullTranslations()
    try:
        yield
    finally:
        _catalogue = before
