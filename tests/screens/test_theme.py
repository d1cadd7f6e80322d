"""Every palette can be read, and its states told apart by every kind of sight."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from cockpit.widgets.theme import PALETTES, Palette, choose_palette, textual_theme

COLOURED = [palette for palette in PALETTES.values() if not palette.ansi]
LEAST_DIFFERENCE = 13.0
SIGHTS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}  # fmt: skip
"""Machado, Oliveira and Fernandes 2009, full severity, on linear RGB."""

Triple = tuple[float, float, float]


def linear(colour: str) -> Triple:
    values = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def contrast(one: str, other: str) -> float:
    """WCAG 2."""
    lights = []
    for colour in (one, other):
        red, green, blue = linear(colour)
        lights.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def lab(colour: str, sight: str) -> Triple:
    rgb = linear(colour)
    seen = [
        min(1.0, max(0.0, sum(m * c for m, c in zip(line, rgb, strict=True))))
        for line in SIGHTS[sight]
    ]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(m * c for m, c in zip(line, seen, strict=True)) for line in to_xyz]
    fx, fy, fz = (
        (v / w) ** (1 / 3) if v / w > 0.008856 else 7.787 * v / w + 16 / 116
        for v, w in zip(xyz, (0.95047, 1.0, 1.08883), strict=True)
    )
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def difference(one: Triple, other: Triple) -> float:
    """CIEDE2000."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean_c**7 / (mean_c**7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1)) % 360, math.degrees(math.atan2(b2, a2)) % 360
    dh = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    mean_h = h1 + h2 if c1 * c2 == 0 else (h1 + dh / 2) % 360
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1 - 0.17 * math.cos(math.radians(mean_h - 30)) + 0.24 * math.cos(math.radians(2 * mean_h))
        + 0.32 * math.cos(math.radians(3 * mean_h + 6)) - 0.2 * math.cos(math.radians(4 * mean_h - 63))
    )  # fmt: skip
    sl = 1 + 0.015 * (mean_l - 50) ** 2 / math.sqrt(20 + (mean_l - 50) ** 2)
    sc, sh = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    turn = 60 * math.exp(-(((mean_h - 275) / 25) ** 2))
    rt = -2 * math.sqrt(mean_c**7 / (mean_c**7 + 25**7)) * math.sin(math.radians(turn))
    lightness, chroma = (l2 - l1) / sl, (c2 - c1) / sc
    hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(dh) / 2) / sh
    return math.sqrt(lightness**2 + chroma**2 + hue**2 + rt * chroma * hue)


@pytest.mark.parametrize("palette", COLOURED, ids=lambda one: one.name)
def test_text_can_be_read(palette: Palette) -> None:
    least = 7.0 if palette.name.endswith("-hc") else 4.5
    for colour in (palette.fg, palette.muted, palette.ok, palette.warn, palette.fatal):
        assert contrast(colour, palette.bg) >= least, colour
        assert contrast(colour, palette.panel) >= least, colour


@pytest.mark.parametrize("palette", COLOURED, ids=lambda one: one.name)
def test_what_is_drawn_can_be_seen(palette: Palette) -> None:
    assert contrast(palette.fill, palette.bg) >= 3.0
    assert contrast(palette.graph, palette.bg) >= 3.0


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("palette", COLOURED, ids=lambda one: one.name)
def test_states_can_be_told_apart(palette: Palette, sight: str) -> None:
    states = (palette.muted, palette.ok, palette.warn, palette.fatal)
    pairs = combinations([lab(colour, sight) for colour in states], 2)

    assert min(difference(one, other) for one, other in pairs) >= LEAST_DIFFERENCE


@pytest.mark.parametrize(
    ("setting", "environ", "colour", "name"),
    [
        ("auto", {"TERM": "xterm-256color"}, True, "dark"),
        ("auto", {"TERM": "xterm", "COLORFGBG": "0;15"}, True, "light"),
        ("light", {"TERM": "xterm"}, True, "light"),
        ("dark-hc", {"TERM": "linux"}, True, "dark-hc"),
        ("auto", {"TERM": "linux"}, True, "ansi-dark-ground"),
        ("auto", {"TERM": "xterm"}, False, "ansi-dark-ground"),
        ("auto", {"TERM": "xterm", "COLORFGBG": "0;15"}, False, "ansi-light-ground"),
    ],
)
def test_the_terminal_has_a_say(
    setting: str, environ: dict[str, str], colour: bool, name: str
) -> None:
    assert choose_palette(setting, environ, colour=colour).name == name


@pytest.mark.parametrize("palette", PALETTES.values(), ids=lambda one: one.name)
def test_textual_takes_every_palette(palette: Palette) -> None:
    assert textual_theme(palette).to_color_system().generate()
