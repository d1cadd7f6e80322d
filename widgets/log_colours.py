"""The colours of a log view: the log's own, made readable on our ground, and those of our marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from rich.color import Color, ColorParseError
from rich.style import Style

from cockpit.widgets.look import Look
from cockpit.widgets.theme import Palette

_FLAGS = frozenset({"bold", "dim", "italic", "underline", "reverse", "strike"})
_MIN_TEXT_CONTRAST = 2.5
_MIN_GROUND_CONTRAST = 1.5
_GREEN = {True: "#8fc98a", False: "#2e6b34"}
_MAGENTA = {True: "#d0a3e0", False: "#7b3a91"}


def luminance(hex_colour: str) -> float:
    """Relative luminance of "#rrggbb" as WCAG 2 defines it."""
    channels = (int(hex_colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def blend(ground: str, colour: str, share: float) -> str:
    """`share` of `colour` laid on `ground`."""
    mixed = (
        round(int(ground[at : at + 2], 16) * (1 - share) + int(colour[at : at + 2], 16) * share)
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _theme_colour(name: str, palette: Palette) -> str | None:
    """The sixteen names mapped to what reads well here; None for our own text colour."""
    plain = name.removeprefix("bright_")
    return {
        "red": palette.fatal,
        "yellow": palette.warn,
        "blue": palette.ok,
        "cyan": palette.ok,
        "green": _GREEN[palette.dark],
        "magenta": _MAGENTA[palette.dark],
        "black": palette.muted,
    }.get(plain)


def _hex(name: str) -> str | None:
    try:
        return str(Color.parse(name).get_truecolor().hex)
    except ColorParseError:
        return None


@lru_cache(1024)
def log_style(spec: str, palette: Palette) -> Style:
    """The style that a log asked for ("bold red on #202020"), without what would hide the text."""
    words, _on, ground = spec.partition(" on ")
    if words.startswith("on "):
        words, ground = "", words[3:]
    parts = words.split()
    flags = {flag: True for flag in parts if flag in _FLAGS}
    names = [part for part in parts if part not in _FLAGS]
    colour = names[0] if names else None
    if palette.ansi:
        return Style(color=colour, **flags)
    shown = _text_colour(colour, palette)
    behind = _hex(ground) if ground else None
    if behind and (
        contrast(behind, shown or palette.fg) < _MIN_TEXT_CONTRAST
        or contrast(behind, palette.bg) < _MIN_GROUND_CONTRAST
    ):
        behind = None
    return Style(color=shown, bgcolor=behind, **flags)


def _text_colour(name: str | None, palette: Palette) -> str | None:
    if name is None:
        return None
    if not name.startswith("#"):
        return _theme_colour(name, palette)
    return name if contrast(name, palette.bg) >= _MIN_TEXT_CONTRAST else None


@dataclass(frozen=True)
class LogLook:
    """Ready-made styles of one look, so that a drawn line builds none of its own."""

    look: Look
    fatal_line: Style = field(init=False)
    warning_line: Style = field(init=False)
    hit: Style = field(init=False)
    hit_now: Style = field(init=False)
    cursor: Style = field(init=False)

    def __post_init__(self) -> None:
        palette = self.look.palette
        styles = {
            "hit": Style(reverse=True),
            "hit_now": Style(reverse=True, bold=True, underline=True),
            "cursor": self.look.cursor,
        }
        for name, colour in (("fatal_line", palette.fatal), ("warning_line", palette.warn)):
            ground = None if palette.ansi else blend(palette.bg, colour, 0.18)
            styles[name] = Style(bgcolor=ground, bold=name == "fatal_line")
        for name, style in styles.items():
            object.__setattr__(self, name, style)


@lru_cache(4)
def log_look(look: Look) -> LogLook:
    return LogLook(look)
