"""settings.toml: how the person likes their cockpit. Reading needs no pydantic: the first paint waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cockpit.config import values
from cockpit.config.document import Document, read_document
from cockpit.config.paths import Home
from cockpit.config.values import BadValue, Reader, shown
from cockpit.errors import ConfigError

GlyphSet: TypeAlias = Literal["auto", "unicode", "narrow", "ascii"]
Density: TypeAlias = Literal["auto", "pane", "row"]
Charts: TypeAlias = Literal["blocks", "braille"]
Record: TypeAlias = Literal["off", "fatal", "warning", "notice"]

THEMES = (
    "auto", "dark", "light", "dark-cb", "light-cb", "dark-hc", "light-hc", "ansi-dark-ground",
    "ansi-light-ground",
)  # fmt: skip
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.2, 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default."""

    theme: str = "auto"
    glyphs: GlyphSet = "auto"
    density: Density = "auto"
    charts: Charts = "blocks"
    colour: bool = True
    language: str | None = None
    """A catalogue such as "zh_CN"; None: what the locale says."""
    interval_s: float = 1.0
    """Time between samples."""
    logs_mib: int = 4096
    """Room for the copies of runs' logs on this computer."""
    record: Record = "warning"
    """How bad an incident must be for the flight recorder to write a file of its time."""
    recordings_mib: int = 512
    """Room for those files; the oldest go first."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Binding id to keys, comma-separated."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Saved filters by name."""


def load_settings(home: Home) -> Settings:
    """The person's settings; defaults where there is no file. Raises ConfigError with every problem."""
    try:
        document = read_document(home.settings_toml)
    except FileNotFoundError:
        return Settings()
    settings = read_settings(document)
    if document.problems:
        raise ConfigError(file=document.file, problems=document.sorted_problems())
    return settings


def read_settings(document: Document) -> Settings:
    """The settings of a document; what is wrong is reported to it."""
    found = document.table((), document.data, _READERS)
    renamed = {_FIELDS.get(key, key): value for key, value in found.items()}
    return Settings(**renamed)  # type: ignore[arg-type]


def _interval(value: object) -> float:
    seconds = values.duration_s(value)
    if not MIN_INTERVAL_S <= seconds <= MAX_INTERVAL_S:
        raise BadValue("out_of_range", given=shown(value), low="0.2s", high="60s")
    return seconds


_FIELDS = {
    "interval": "interval_s",
    "color": "colour",
    "logs": "logs_mib",
    "recordings": "recordings_mib",
}
_READERS: dict[str, Reader[object]] = {
    "theme": values.one_of(*THEMES),
    "glyphs": values.one_of("auto", "unicode", "narrow", "ascii"),
    "density": values.one_of("auto", "pane", "row"),
    "charts": values.one_of("blocks", "braille"),
    "color": values.flag,
    "language": values.own_name,
    "interval": _interval,
    "logs": values.size_mib,
    "record": values.one_of("off", "fatal", "warning", "notice"),
    "recordings": values.size_mib,
    "keys": values.mapping_of(values.filled, values.text),
    "filters": values.mapping_of(values.filled, values.filled),
}
