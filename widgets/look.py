"""The look of this session: glyphs and ready-made styles, so that a drawn line builds none of its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.style import Style

from cockpit.widgets.glyphs import UNICODE, Glyphs, choose_glyphs
from cockpit.widgets.options import UiOptions
from cockpit.widgets.theme import DEFAULT_PALETTE, Palette, choose_palette

if TYPE_CHECKING:
    from textual.widget import Widget

    from cockpit.domain.incidents import Severity


@dataclass(frozen=True, slots=True)
class Tone:
    """The styles of a piece of the fleet: in full colour, or all grey when its numbers are old."""

    text: Style
    strong: Style
    muted: Style
    faint: Style
    ok: Style
    fill: Style
    fill_warn: Style
    fill_fatal: Style
    graph: Style
    warn: Style
    fatal: Style


@dataclass(frozen=True)
class Look:
    """What a widget needs to draw: signs, and one Rich style for each role, the ground included."""

    palette: Palette = DEFAULT_PALETTE
    glyphs: Glyphs = UNICODE

    def __post_init__(self) -> None:
        p = self.palette
        roles = {
            "text": Style(color=p.fg, bgcolor=p.bg),
            "strong": Style(color=p.fg, bgcolor=p.bg, bold=True),
            "muted": Style(color=p.muted, bgcolor=p.bg),
            "faint": Style(color=p.faint, bgcolor=p.bg, dim=p.ansi),
            "ok": Style(color=p.ok, bgcolor=p.bg),
            "fill": Style(color=p.fill, bgcolor=p.bg),
            "fill_warn": Style(color=p.warn, bgcolor=p.bg),
            "fill_fatal": Style(color=p.fatal, bgcolor=p.bg),
            "graph": Style(color=p.graph, bgcolor=p.bg, dim=p.ansi),
            "warn": Style(color=p.warn, bgcolor=p.bg, bold=p.ansi),
            "fatal": Style(color=p.fatal, bgcolor=p.bg, bold=True, reverse=p.ansi and p.dark),
            "fatal_badge": Style(color=p.bg, bgcolor=p.fatal, bold=True)
            if not p.ansi
            else Style(color=p.fatal, bold=True, reverse=True),
            "warn_badge": Style(color=p.bg, bgcolor=p.warn, bold=True)
            if not p.ansi
            else Style(color=p.warn, bold=True, reverse=True),
            "bar_text": Style(color=p.fg, bgcolor=p.panel),
            "bar_muted": Style(color=p.muted, bgcolor=p.panel),
            "bar_key": Style(color=p.ok, bgcolor=p.panel, bold=True),
            "bar_on": Style(color=p.bg, bgcolor=p.ok, bold=True)
            if not p.ansi
            else Style(color=p.ok, bold=True, reverse=True),
            "cursor": Style(reverse=True, bold=True)
            if p.ansi
            else Style(bgcolor=_cursor_ground(p)),
        }
        for role, style in roles.items():
            object.__setattr__(self, role, style)
        names = tuple(field.name for field in fields(Tone))
        grey = {name: "muted" for name in ("text", "strong", "ok")}
        grey |= {name: "graph" for name in ("fill", "fill_warn", "fill_fatal")}
        fresh, old = (
            Tone(*(roles[names_of.get(name, name)] for name in names)) for names_of in ({}, grey)
        )
        object.__setattr__(self, "fresh", fresh)
        object.__setattr__(self, "old", old)

    text: Style = Style.null()
    strong: Style = Style.null()
    muted: Style = Style.null()
    faint: Style = Style.null()
    ok: Style = Style.null()
    fill: Style = Style.null()
    fill_warn: Style = Style.null()
    fill_fatal: Style = Style.null()
    graph: Style = Style.null()
    warn: Style = Style.null()
    fatal: Style = Style.null()
    fatal_badge: Style = Style.null()
    warn_badge: Style = Style.null()
    bar_text: Style = Style.null()
    bar_muted: Style = Style.null()
    bar_key: Style = Style.null()
    bar_on: Style = Style.null()
    cursor: Style = Style.null()
    """Laid over a line that the cursor is on."""
    fresh: Tone = field(init=False, repr=False, compare=False)
    old: Tone = field(init=False, repr=False, compare=False)

    def severity(self, severity: Severity) -> Style:
        return {"fatal": self.fatal, "warning": self.warn}.get(severity, self.muted)


def choose_look(options: UiOptions, environ: MutableMapping[str, str]) -> Look:
    """The look that settings and terminal ask for. Without colour Textual is told so too.

    NO_COLOR that is set and empty means nothing by its own convention; Textual would obey it.
    """
    if not environ.get("NO_COLOR", "unset"):
        del environ["NO_COLOR"]
    colour = options.colour and "NO_COLOR" not in environ
    if not colour:
        environ["NO_COLOR"] = "1"
    palette = choose_palette(options.theme, environ, colour=colour)
    return Look(palette, choose_glyphs(options.glyphs, environ))


def _cursor_ground(palette: Palette) -> str:
    return "#26313b" if palette.dark else "#d9e6f0"


@lru_cache(1)
def _default_look() -> Look:
    return Look()


def look_of(widget: Widget) -> Look:
    """The look of the app that `widget` lives in; the default one in any other app."""
    look = getattr(widget.app, "look", None)
    return look if isinstance(look, Look) else _default_look()
