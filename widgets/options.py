"""What a person may set about the looks and keys, as the screens want it: no parser behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class UiOptions:
    """The part of settings.toml that the screens read."""

    theme: str = "auto"
    """auto, or a name of `widgets.theme.PALETTES`."""
    glyphs: str = "auto"
    charts: Literal["blocks", "braille"] = "blocks"
    density: Literal["auto", "pane", "row"] = "auto"
    colour: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)
    """Binding id to keys, comma-separated."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Saved filters by name."""
    interval_s: float = 1.0
    hosts_file: Path | None = None
    """What `e` opens."""
    note: str = ""
    """What the header says on every screen: that nothing here is real, for one."""
