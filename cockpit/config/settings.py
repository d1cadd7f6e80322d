"""settings.toml: how the person likes their cockpit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cockpit.config.paths import Home

GlyphSet = Literal["auto", "full", "plain", "ascii"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default."""

    theme: str | None = None
    """None: chosen at start."""
    glyphs: GlyphSet = "auto"
    language: str | None = None
    interval_s: float = 1.0
    keys: Mapping[str, str] = field(default_factory=dict)
    """Binding id to keys."""


def load_settings(home: Home) -> Settings:
    """The person's settings; defaults where there is no file. Raises ConfigError with every problem."""
    raise NotImplementedError
