"""What a session begins with and what is said after it."""

from __future__ import annotations

from pathlib import Path

from cockpit.config.paths import Home
from cockpit.screens.session import farewell, read_options
from tests.screens.fake_engine import FakeEngine, run_view


def test_settings_become_options(tmp_path: Path) -> None:
    text = 'theme = "light-hc"\nglyphs = "narrow"\ndensity = "row"\n[keys]\nhelp = "f2"\n[filters]\nmine = "busy"\n'
    (tmp_path / "settings.toml").write_text(text)

    options = read_options(Home(tmp_path))

    assert (options.theme, options.glyphs, options.density) == ("light-hc", "narrow", "row")
    assert (options.keys, options.filters) == ({"help": "f2"}, {"mine": "busy"})
    assert options.hosts_file == tmp_path / "hosts.toml"


def test_runs_that_go_on_are_named_after_the_end() -> None:
    engine = FakeEngine()
    assert farewell(None) == farewell(engine) == ""

    engine.put_run(run_view())
    engine.put_run(run_view("r-2", state="exited", code=0))
    assert farewell(engine) == "1 run goes on: qwen-lora on vast-a.  cockpit ps"

    for number in range(4):
        engine.put_run(run_view(f"more-{number}", profile="x\x1b[31m"))
    assert farewell(engine).startswith("5 runs go on: ")
    assert "2 more" in farewell(engine) and "\x1b" not in farewell(engine)


def test_a_remembered_run_of_a_host_that_is_gone_is_not_said_to_go_on() -> None:
    engine = FakeEngine()
    engine.put_run(run_view(state="unreachable"))
    assert farewell(engine) == ""
    engine.with_host("vast-a")
    assert farewell(engine).startswith("1 run goes on")
