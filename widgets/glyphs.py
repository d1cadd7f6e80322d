"""Three glyph sets, one chosen at start: half of the usual signs are two cells wide in some terminals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.domain.incidents import IncidentState, Severity
    from cockpit.domain.models import LinkState


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Every sign the screens draw. Each is exactly one cell in the terminals that its set is for."""

    name: str
    live: str
    connecting: str
    stale: str
    lost: str
    warning: str
    notice: str
    recovered: str
    done: str
    gutter: str
    mark: str
    bars: tuple[str, ...]
    """Partial fills of one cell, from almost none to full."""
    bar_empty: str
    sparks: tuple[str, ...]
    """Heights of one cell, from lowest to full."""
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    horizontal: str
    vertical: str
    tee_left: str
    tee_right: str
    axis: str
    axis_corner: str
    dashed: str
    cut: str
    enter: str
    degree: str
    dot: str
    css_border: str
    """Textual's name for a border of the same kind."""

    def link(self, state: LinkState) -> str:
        return {
            "live": self.live,
            "degraded": self.warning,
            "host_key": self.warning,
            "connecting": self.connecting,
            "stale": self.stale,
        }.get(state, self.lost)

    def severity(self, severity: Severity) -> str:
        return {"fatal": self.lost, "warning": self.warning}.get(severity, self.notice)

    def incident(self, state: IncidentState, severity: Severity) -> str:
        return self.recovered if state in ("recovered", "withdrawn") else self.severity(severity)


UNICODE = Glyphs(
    name="unicode",
    live="●",
    connecting="◐",
    stale="○",
    lost="✗",
    warning="!",
    notice="·",
    recovered="↻",
    done="✓",
    gutter="▌",
    mark="▸",
    bars=("▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"),
    bar_empty="░",
    sparks=("▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"),
    top_left="╭",
    top_right="╮",
    bottom_left="╰",
    bottom_right="╯",
    horizontal="─",
    vertical="│",
    tee_left="├",
    tee_right="┤",
    axis="┤",
    axis_corner="┼",
    dashed="┄",
    cut="…",
    enter="↵",
    degree="°",
    dot="·",
    css_border="round",
)

NARROW = Glyphs(
    name="narrow",
    live="◉",
    connecting="◔",
    stale="◌",
    lost="✗",
    warning="!",
    notice="∙",
    recovered="↻",
    done="✓",
    gutter="▐",
    mark="▸",
    bars=("⡇", "⣿"),
    bar_empty="░",
    sparks=("⣀", "⣤", "⣶", "⣿"),
    top_left="+",
    top_right="+",
    bottom_left="+",
    bottom_right="+",
    horizontal="-",
    vertical="|",
    tee_left="+",
    tee_right="+",
    axis="|",
    axis_corner="+",
    dashed="-",
    cut="~",
    enter="↵",
    degree="",
    dot="∙",
    css_border="ascii",
)

ASCII = Glyphs(
    name="ascii",
    live="*",
    connecting="~",
    stale="o",
    lost="X",
    warning="!",
    notice=".",
    recovered="r",
    done="v",
    gutter="|",
    mark=">",
    bars=("=", "#"),
    bar_empty=".",
    sparks=("_", ".", "-", "=", "#"),
    top_left="+",
    top_right="+",
    bottom_left="+",
    bottom_right="+",
    horizontal="-",
    vertical="|",
    tee_left="+",
    tee_right="+",
    axis="|",
    axis_corner="+",
    dashed="-",
    cut="~",
    enter="enter",
    degree="",
    dot="-",
    css_border="ascii",
)

GLYPH_SETS: Mapping[str, Glyphs] = {glyphs.name: glyphs for glyphs in (UNICODE, NARROW, ASCII)}
_ASCII_TERMINALS = frozenset({"linux", "dumb", "vt100", "vt220", "ansi"})


def choose_glyphs(setting: str, environ: Mapping[str, str]) -> Glyphs:
    """The set asked for by COCKPIT_GLYPHS or the settings, else the one that the terminal bears."""
    for asked in (environ.get("COCKPIT_GLYPHS", ""), setting):
        if asked in GLYPH_SETS:
            return GLYPH_SETS[asked]
    if environ.get("TERM", "") in _ASCII_TERMINALS or not _locale_is_utf8(environ):
        return ASCII
    return UNICODE


def _locale_is_utf8(environ: Mapping[str, str]) -> bool:
    """Only an explicit C or POSIX locale is taken as "no": many rented boxes set none and show UTF-8."""
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or "UTF-8"
    return locale not in ("C", "POSIX")
