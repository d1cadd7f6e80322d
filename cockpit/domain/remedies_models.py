"""Remedies of a server that loads models by itself: how long it keeps them, and how many at once."""

from __future__ import annotations

from typing import Final

from cockpit.domain.remedy_case import Case, Fit, Fitted, told

KEEP_MODEL: Final = "24h"
MOST_LOADED: Final = 8


def keep_model(code: str, case: Case) -> Fitted:
    options = case.options()
    if options.kind != "ollama":
        return told(code)
    options.put("ollama.keep_alive", KEEP_MODEL)
    return told(code, options, keep=KEEP_MODEL)


def more_models(code: str, case: Case) -> Fitted:
    """As many as took turns."""
    options, models = case.options(), case.number("models")
    if options.kind != "ollama" or models is None or not 2 <= models <= MOST_LOADED:
        return told(code)
    options.put("ollama.max_loaded_models", int(models))
    return told(code, options, value=int(models))


FITS: Final[dict[str, Fit]] = {"keep_model": keep_model, "more_loaded_models": more_models}
