"""What a run's code consists of, as it is found here: files, links, and what is not sent with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cockpit.domain.text import safe_line

LARGEST_SHOWN = 10
CWD_NOTE = "code_cwd"
SENT_NOTE = "code_sent"
"""Notes of a run: where its code went, and what sending it came to."""
SHOWN_AT_MOST = 20
"""Names of what is left out, of each reason."""

LeftOut: TypeAlias = Literal["link_outside", "special", "empty_submodule", "secret", "ignored"]


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One file or link, by its path below the folder that is sent."""

    path: bytes
    """Relative, with `/`; a name need not be text."""
    size: int
    mode: int
    """Permission bits."""
    link: bytes | None = None
    """Where a link leads; None for a file."""


@dataclass(frozen=True, slots=True)
class GitState:
    """Where a repository stands; its names are what git says."""

    commit: str | None = None
    """None in a repository without one."""
    branch: str | None = None
    is_dirty: bool = False


@dataclass(frozen=True, slots=True)
class CodePlan:
    """What a launch would send, and where to. Nothing of it was read but names and sizes."""

    root: str
    """The folder on this computer."""
    cwd: str
    """The folder on the host."""
    source: str
    """Whose code it is: one source may replace on a host what it sent before, and nothing else."""
    files: tuple[CodeFile, ...]
    by_git: bool
    git: GitState | None = None
    left_out: Mapping[LeftOut, tuple[str, ...]] = field(default_factory=dict)
    """The first names of each reason; `left_out_count` has all."""
    left_out_count: Mapping[LeftOut, int] = field(default_factory=dict)
    max_bytes: int = 0
    max_files: int = 0
    replaces: bool = False
    """Whether a file of the host that is not as we sent it gives way, and is kept aside."""

    @property
    def count(self) -> int:
        return len(self.files)

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def largest(self) -> tuple[tuple[str, int], ...]:
        """The ten largest, harmless to show, with their sizes."""
        found = sorted(self.files, key=lambda file: -file.size)[:LARGEST_SHOWN]
        return tuple((shown(file.path), file.size) for file in found)

    @property
    def is_too_large(self) -> bool:
        """Larger than a person would send without being asked."""
        return self.total_bytes > self.max_bytes or self.count > self.max_files


def shown(path: bytes) -> str:
    """A path as it may be shown: one harmless line."""
    return safe_line(os.fsdecode(path), 200)
