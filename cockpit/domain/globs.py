"""Which files of a run's folder are its results: patterns as regular expressions, and names that may be kept."""

from __future__ import annotations

import re

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 3000
_CHAR = r"(?:[\x00-\x2e\x30-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf])"
"""One character of UTF-8, or a byte that is none; never the slash."""
_WILD = re.compile(r"[*?\[]")


def is_inside(glob: str) -> bool:
    """Whether a pattern stays below the folder that it starts from."""
    parts = glob.removesuffix("/").split("/")
    return not glob.startswith(("/", "~")) and ".." not in parts and "\0" not in glob


def glob_pattern(glob: str) -> str:
    """A regular expression for bytes, as text: host and laptop use the same.

    A folder that matches is meant whole, unless by a bare `*`: that is for the files of one folder.
    """
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    pattern = ""
    for at, part in enumerate(parts):
        is_last = at == len(parts) - 1
        if part == "**":
            pattern += ".*" if is_last else "(?:.*/)?"
        else:
            pattern += _part(part) + ("" if is_last else "/")
    whole = "" if parts[-1:] == ["*"] and not glob.endswith("/") else "(?:/.*)?"
    return f"{pattern or '.*'}{whole}\\Z"


def glob_start(glob: str) -> str:
    """The folder below which all of its matches are: no other need be looked at."""
    start = []
    for part in glob.split("/")[:-1]:
        if _WILD.search(part):
            break
        if part not in ("", "."):
            start.append(part)
    return "/".join(start)


def _part(part: str) -> str:
    pattern, at = "", 0
    while at < len(part):
        char = part[at]
        end = part.find("]", at + 2) if char == "[" else -1
        if char == "*":
            pattern += "[^/]*"
        elif char == "?":
            pattern += _CHAR
        elif end > 0:
            inside = part[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            negated = inside[:1] in "!^"
            pattern += f"(?!/)[{'^' if negated else ''}{inside[1:] if negated else inside}]"
            at = end
        else:
            pattern += re.escape(char)
        at += 1
    return pattern


def compiled(globs: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile("|".join(glob_pattern(glob) for glob in globs).encode(), re.DOTALL)


def may_be_written(path: bytes) -> bool:
    """Whether a name that a host gives may become a file of this computer.

    Nothing that leads up or away, that a terminal obeys, or by which git would run what a host wrote.
    """
    if not path or len(path) > MAX_PATH_BYTES or re.search(rb"[\x00-\x1f\x7f]", path):
        return False
    parts = path.split(b"/")
    return all(
        part not in (b"", b".", b"..") and len(part) <= MAX_NAME_BYTES and part.lower() != b".git"
        for part in parts
    )
