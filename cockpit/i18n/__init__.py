"""The one door to translated text: `_()` marks every sentence; a catalogue is a file, not a rewrite."""

from __future__ import annotations

import gettext
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LANGUAGES = ("zh_CN",)
"""Those that have a catalogue; English needs none."""
_LOCALES = Path(__file__).parent / "locales"
_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def use_language(language: str) -> None:
    """Load the catalogue of `language` ("en", "zh_CN"); English where there is none."""
    global _catalogue
    _catalogue = gettext.NullTranslations()
    if language in LANGUAGES:
        from cockpit.i18n.po import Catalogue, read_po

        _catalogue = Catalogue(read_po(_LOCALES / language / "LC_MESSAGES" / "cockpit.po"))


def language_of(environ: Mapping[str, str]) -> str:
    """The language that the environment asks for, as POSIX orders its variables."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    wanted = next((value for name in names if (value := environ.get(name))), "")
    return "zh_CN" if wanted.lower().startswith("zh") else "en"


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
