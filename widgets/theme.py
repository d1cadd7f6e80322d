"""The palettes, measured for contrast and for colour-blind sight, and the Textual themes made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from textual.theme import Theme


@dataclass(frozen=True, slots=True)
class Palette:
    """Seven colours. `ok` is the accent as well; colour is kept for state, the rest is grey."""

    name: str
    title: str
    dark: bool
    bg: str
    panel: str
    fg: str
    muted: str
    ok: str
    warn: str
    fatal: str
    faint: str
    """Borders, empty bars and other lines that carry no text."""
    fill: str
    """Bars: the accent, quieter, since many of them stand side by side."""
    graph: str
    """Sparklines and the past."""
    ansi: bool = False


PALETTES: Mapping[str, Palette] = {
    palette.name: palette
    for palette in (
        Palette("dark", "dark", True, "#111417", "#1a1f24", "#d7dce1", "#87919b",
                "#5cb8e6", "#ffb84d", "#f0524f", "#3a434c", "#37799e", "#5f6c76"),
        Palette("light", "light", False, "#fbfbfa", "#eff1f2", "#1f2428", "#5c656d",
                "#005e9c", "#a05a00", "#8a0a24", "#c5cbd0", "#4a8fc0", "#868f97"),
        Palette("dark-cb", "dark, colour-blind safe", True, "#111417", "#1a1f24", "#d7dce1",
                "#87919b", "#73d5ff", "#ffde4d", "#eb5146", "#3a434c", "#37799e", "#5f6c76"),
        Palette("light-cb", "light, colour-blind safe", False, "#fbfbfa", "#eff1f2", "#1f2428",
                "#5c656d", "#136fbf", "#8c680e", "#7a000a", "#c5cbd0", "#4a8fc0", "#868f97"),
        Palette("dark-hc", "dark, high contrast", True, "#000000", "#000000", "#ffffff",
                "#b4bcc4", "#4d9aff", "#ffd519", "#f26d6d", "#7d868f", "#4d9aff",
                "#b4bcc4"),
        Palette("light-hc", "light, high contrast", False, "#ffffff", "#ffffff", "#000000",
                "#454d54", "#1f5899", "#755200", "#5c0000", "#7d868f", "#1f5899",
                "#454d54"),
        Palette("ansi-dark-ground", "the terminal's own colours, dark ground", True, "default",
                "default", "default", "default", "cyan", "yellow", "red", "default", "cyan",
                "default", ansi=True),
        Palette("ansi-light-ground", "the terminal's own colours, light ground", False, "default",
                "default", "default", "default", "blue", "default", "red", "default", "blue",
                "default", ansi=True),
    )
}  # fmt: skip

DEFAULT_PALETTE = PALETTES["dark"]


def choose_palette(setting: str, environ: Mapping[str, str], *, colour: bool) -> Palette:
    """The palette of the settings; the terminal's own where there is no colour or only sixteen."""
    if setting in PALETTES:
        return PALETTES[setting]
    dark = setting != "light" and not _light_ground(environ)
    ansi = not colour or environ.get("TERM", "") in ("linux", "dumb", "vt100", "vt220", "ansi")
    if ansi:
        return PALETTES["ansi-dark-ground" if dark else "ansi-light-ground"]
    return PALETTES["dark" if dark else "light"]


def _light_ground(environ: Mapping[str, str]) -> bool:
    """COLORFGBG, where a terminal sets it, ends with the ground's number: 7 and 15 are white."""
    return environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def textual_theme(palette: Palette) -> Theme:
    """The same seven colours under the names that Textual's own widgets read."""

    def css(colour: str) -> str:
        return f"ansi_{colour}" if palette.ansi else colour

    ground = "black" if palette.dark else "bright_white"
    on_accent = css(ground) if palette.ansi else palette.bg
    return Theme(
        name=palette.name,
        primary=css(palette.ok),
        secondary=css(palette.muted),
        accent=css(palette.ok),
        warning=css(palette.warn),
        error=css(palette.fatal),
        success=css(palette.ok),
        foreground=css(palette.fg),
        background=css(palette.bg),
        surface=css(palette.bg),
        panel=css(palette.panel),
        boost=css(palette.panel),
        dark=palette.dark,
        ansi=palette.ansi,
        text_alpha=1.0,
        variables={
            "ansi-background": "ansi_black" if palette.dark else "ansi_white",
            "ansi-foreground": "ansi_white" if palette.dark else "ansi_black",
            "foreground-muted": css(palette.muted),
            "text-muted": css(palette.muted),
            "text-disabled": css(palette.muted),
            "border": css(palette.muted if palette.ansi else palette.faint),
            "border-blurred": css(palette.muted if palette.ansi else palette.faint),
            "faint": css(palette.faint),
            "block-cursor-foreground": on_accent,
            "block-cursor-background": css(palette.ok),
            "block-cursor-text-style": "none",
            "block-cursor-blurred-foreground": css(palette.fg),
            "block-cursor-blurred-background": css(palette.panel),
            "input-cursor-foreground": on_accent,
            "input-cursor-background": css(palette.fg) if not palette.ansi else css(palette.ok),
            "input-selection-background": css(palette.ok) if palette.ansi else f"{palette.ok} 35%",
            "scrollbar": css("bright_blue") if palette.ansi else palette.faint,
            "scrollbar-hover": css(palette.ok),
            "scrollbar-active": css(palette.ok),
            "scrollbar-background": css(palette.bg),
            "scrollbar-background-hover": css(palette.bg),
            "scrollbar-background-active": css(palette.bg),
            "scrollbar-corner-color": css(palette.bg),
            "footer-background": css(palette.panel),
            "footer-key-foreground": css(palette.ok),
        },
    )
