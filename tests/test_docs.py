"""What is written is what there is: keys, profile keys, commands, links."""

from __future__ import annotations

import argparse
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from cockpit.cli_args import build_parser
from cockpit.screens.keys import all_binding_ids

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh-CN.md")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_of_keys_and_profiles_are_in_step_with_the_code() -> None:
    made = generator()
    for name, text in (("keys.md", made.keys_text()), ("profiles.md", made.profiles_text())):
        written = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert written == text, "python docs/generate.py writes them anew"


def test_every_binding_has_its_line() -> None:
    page = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    assert {name for name in all_binding_ids() if f"| {name} |" not in page} == set()


@pytest.mark.parametrize("readme", READMES)
def test_commands_that_a_readme_shows_exist(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    actions = [a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    known = set(actions[0].choices)
    code = re.findall(r"^ {4}.*$|`[^`\n]*`", text, re.M)
    shown = {word for each in code for word in re.findall(r"\bcockpit ([a-z]+)\b", each)}
    assert shown - known == set()
    assert shown, "the README shows how to use it"


@pytest.mark.parametrize("readme", READMES)
def test_files_that_a_readme_links_to_exist(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_both_readmes_have_the_same_sections() -> None:
    counts = [
        len(re.findall(r"^#+ ", (ROOT / name).read_text(encoding="utf-8"), re.M))
        for name in READMES
    ]
    assert counts[0] == counts[1]
