from __future__ import annotations

import pytest

from cockpit.config.paths import Home
from cockpit.config.settings import THEMES, Settings, load_settings
from cockpit.errors import ConfigError
from cockpit.widgets.glyphs import GLYPH_SETS
from cockpit.widgets.theme import PALETTES


def load(home: Home, text: str) -> Settings:
    home.root.mkdir(exist_ok=True)
    home.settings_toml.write_text(text)
    return load_settings(home)


def test_without_a_file_there_are_defaults(home: Home) -> None:
    assert load_settings(home) == Settings()


def test_every_setting_is_read(home: Home) -> None:
    settings = load(
        home,
        """
        theme = "dark-hc"
        glyphs = "ascii"
        density = "row"
        charts = "braille"
        color = false
        language = "zh_CN"
        interval = "500ms"
        [keys]
        stop-run = "X,ctrl+x"
        [filters]
        free = "free>20G"
        """,
    )
    assert settings == Settings(
        theme="dark-hc",
        glyphs="ascii",
        density="row",
        charts="braille",
        colour=False,
        language="zh_CN",
        interval_s=0.5,
        keys={"stop-run": "X,ctrl+x"},
        filters={"free": "free>20G"},
    )


def test_every_mistake_is_told(home: Home) -> None:
    text = 'them = "dark"\nglyphs = "asci"\ninterval = "0.1s"\n[keys]\na = 1\nb = 2\n'
    with pytest.raises(ConfigError) as caught:
        load(home, text)
    found = [(p.code, p.line, p.key, p.facts.get("suggestion")) for p in caught.value.problems]
    assert found == [
        ("unknown_key", 1, "them", "theme"),
        ("not_one_of", 2, "glyphs", "ascii"),
        ("out_of_range", 3, "interval", None),
        ("wrong_type", 5, "keys.a", None),
        ("wrong_type", 6, "keys.b", None),
    ]


def test_the_names_are_those_that_the_screens_know() -> None:
    assert set(THEMES) == {"auto", *PALETTES}
    assert set(GLYPH_SETS) == {"unicode", "narrow", "ascii"}
