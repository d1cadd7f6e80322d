"""Hosts that already stand somewhere: the aliases of an ssh_config, or pasted lines one after another."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.address import is_host, is_own_name
from cockpit.config.pasted import read_pasted
from cockpit.config.paths import expanded
from cockpit.config.platforms import platform_of
from cockpit.errors import UsageError

MAX_FILES = 64
MAX_BYTES = 1 << 20
_HOST_LINE = re.compile(r"^[ \t]*Host[ \t=]", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host that could be recorded: its name and the line that reaches it."""

    name: str
    line: str
    problem: UsageError | None = None
    """Why it cannot be recorded."""


def looks_like_ssh_config(text: str) -> bool:
    return _HOST_LINE.search(text) is not None


def from_ssh_config(path: Path) -> list[Candidate]:
    """One candidate for each plain alias of the file and of what it includes; patterns are no hosts."""
    names: dict[str, None] = {}
    for name in _aliases(expanded(path), [MAX_FILES]):
        names.setdefault(name)
    return [Candidate(name, f"ssh {name}") for name in names]


def from_lines(text: str) -> list[Candidate]:
    """One candidate for each line with an address: `ssh …`, `NAME ssh …` or `NAME = ssh …`.

    Other lines of a console page (prices, states) are passed over; those that are ssh and cannot be
    taken are returned with their problem.
    """
    found: list[Candidate] = []
    taken: set[str] = set()
    for line in text.splitlines():
        name, pasted = _named(line.strip())
        if not pasted or pasted.startswith("#"):
            continue
        host, problem = read_pasted(pasted)
        if problem is not None and not _is_ssh(pasted):
            continue
        chosen = name or _free_name(host.host, host.port, taken)
        taken.add(chosen)
        found.append(Candidate(chosen, pasted, problem))
    return found


def _is_ssh(line: str) -> bool:
    return line.removeprefix("$").lstrip().startswith(("ssh ", "ssh://"))


def _named(line: str) -> tuple[str, str]:
    """A name before the command, if there is one, and the command."""
    match = re.fullmatch(r"(\S+?)(?:\s*[=:]\s*|\s+)(\$?\s*ssh[\s:].*)", line)
    if match is not None and is_own_name(match[1]) and match[1] != "ssh":
        return match[1], match[2].strip("\"'") if match[2][:1] in "\"'" else match[2]
    return "", line


def _free_name(host: str, port: int | None, taken: set[str]) -> str:
    """A name made of the platform, else of the address: its first label, or the whole of an IP address."""
    label = host if re.fullmatch(r"[0-9.:]+", host) else host.split(".")[0]
    plain = platform_of(host) or label
    base = re.sub(r"[^A-Za-z0-9-]+", "-", plain).strip("-") or "host"
    choices = [base] if port is None else [base, f"{base}-{port}"]
    choices += [f"{base}-{number}" for number in range(2, len(taken) + 3)]
    return next(name for name in choices if name not in taken)


def _aliases(path: Path, budget: list[int]) -> Iterator[str]:
    """Aliases in the order of the file; includes as ssh finds them, relative to ~/.ssh."""
    budget[0] -= 1
    if budget[0] < 0:
        return
    for key, values in _directives(path):
        if key == "host":
            yield from (word for word in values if is_own_name(word) and is_host(word))
        elif key == "include":
            for included in _included(values):
                yield from _aliases(included, budget)


def _included(patterns: Iterable[str]) -> Iterator[Path]:
    base = expanded("~/.ssh")
    for pattern in patterns:
        full = expanded(pattern)
        full = full if full.is_absolute() else base / full
        try:
            yield from sorted(Path(full.anchor).glob(str(full.relative_to(full.anchor))))
        except (OSError, ValueError):
            continue


def _directives(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        key, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if key and not key.startswith("#"):
            try:
                yield key.lower(), shlex.split(rest, comments=True)
            except ValueError:
                continue
