from __future__ import annotations

import random

import pytest
import tomli

from cockpit.config.toml_lines import KeyPath, Place, scan

TEXT = '''\
# a comment = [not, a, key]
name = "x # not a comment"   # a comment
"quoted.key" = 1
'single' = 2
a.b . "c" = 3

[table] # comment
key = """
[not.a.table]
also = "no key" \\
""" # after
lit = \'\'\'
x = 1
\'\'\'
list = [ # comment ]
  "a", # one
  [1, 2],
  { x = 1, y = [3] },
]
date = 1979-05-27 07:32:00Z
inline = { p.q = 1, r = "}" }

  [ table . sub ]
  deep = true
[[items]]
n = 1
[[items]]
n = 2
[items.child]
m = 3
[[items.more]]
k = 4
"\\u00e9" = 5
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), Place(2, 1)),
        (("quoted.key",), Place(3, 1)),
        (("single",), Place(4, 1)),
        (("a", "b", "c"), Place(5, 1)),
        (("table",), Place(7, 1)),
        (("table", "key"), Place(8, 1)),
        (("table", "lit"), Place(12, 1)),
        (("table", "list"), Place(15, 1)),
        (("table", "list", 0), Place(16, 3)),
        (("table", "list", 1, 1), Place(17, 7)),
        (("table", "list", 2, "y", 0), Place(18, 17)),
        (("table", "date"), Place(20, 1)),
        (("table", "inline", "p", "q"), Place(21, 12)),
        (("table", "inline", "r"), Place(21, 21)),
        (("table", "sub"), Place(23, 3)),
        (("table", "sub", "deep"), Place(24, 3)),
        (("items", 0, "n"), Place(26, 1)),
        (("items", 1, "n"), Place(28, 1)),
        (("items", 1, "child", "m"), Place(30, 1)),
        (("items", 1, "more", 0, "k"), Place(32, 1)),
        (("items", 1, "more", 0, "é"), Place(33, 1)),
    ],
)
def test_every_key_has_its_place(path: KeyPath, place: Place) -> None:
    assert scan(TEXT).find(path) == place


def test_what_has_no_place_has_that_of_what_is_around_it() -> None:
    found = scan("[a]\nb = 1\n")
    assert found.find(("a", "missing", "deeper")) == Place(1, 1)
    assert found.find(("nothing",)) is None


def test_windows_line_ends_count_once() -> None:
    assert scan("a = 1\r\n\r\n[t]\r\nb = 2\r\n").find(("t", "b")) == Place(4, 1)


def test_a_last_line_without_an_end() -> None:
    assert scan("a = 1\nb = 'x'").find(("b",)) == Place(2, 1)


def paths_of(node: object, path: KeyPath = ()) -> list[KeyPath]:
    if isinstance(node, dict):
        inner = [found for key, value in node.items() for found in paths_of(value, (*path, key))]
    elif isinstance(node, list):
        inner = [found for i, value in enumerate(node) for found in paths_of(value, (*path, i))]
    else:
        inner = []
    return [path, *inner] if path else inner


def test_every_path_of_what_tomli_reads_is_found() -> None:
    places = scan(TEXT).places
    assert [path for path in paths_of(tomli.loads(TEXT)) if path not in places] == []


def test_damaged_text_that_still_parses_is_still_followed() -> None:
    """Lines are dropped and swapped at random; whatever tomli accepts, the scanner must follow."""
    chance = random.Random(7)
    lines = TEXT.splitlines()
    followed = 0
    for _round in range(3000):
        kept = [line for line in lines if chance.random() > 0.3]
        chance.shuffle(kept)
        text = "\n".join(kept)
        try:
            data = tomli.loads(text)
        except tomli.TOMLDecodeError:
            continue
        followed += 1
        places = scan(text).places
        assert [path for path in paths_of(data) if path not in places] == [], text
    assert followed > 20
