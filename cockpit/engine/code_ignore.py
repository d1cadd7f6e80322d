"""`.cockpitignore`: what is not sent, by the rules of .gitignore, in every folder where there is one."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

IGNORE_FILE = ".cockpitignore"
MAX_IGNORE_BYTES = 1 << 20
HOST_FOLDER = ".cockpit-code"
"""Ours, in the folder on the host: what was sent, and what is under way."""

ALWAYS = (f"/{HOST_FOLDER}/", ".git")
DEFAULTS = (
    ".hg/", ".svn/", ".jj/", "__pycache__/", "*.pyc", ".venv/", "venv/", "node_modules/", ".tox/",
    ".nox/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", ".ipynb_checkpoints/", ".DS_Store",
)  # fmt: skip
"""Left out where git does not say what belongs to a project; a line with `!` brings one back."""


class IgnoreRules:
    """Verdicts on paths below a folder, `/`-separated. A folder that is left out cannot have parts brought back."""

    def __init__(self, root: Path, *, top: Path | None = None, defaults: bool = False) -> None:
        """`top`: the repository that `root` is in, whose own rules hold in it too."""
        self._top = top or root
        self._prefix = () if top is None else root.relative_to(top).parts
        self._defaults = DEFAULTS if defaults else ()
        self._always = GitIgnoreSpec.from_lines(ALWAYS)
        self._specs: dict[tuple[str, ...], GitIgnoreSpec | None] = {}
        self._folders: dict[tuple[str, ...], bool] = {}

    def leaves_out(self, path: str) -> bool:
        """Whether that file, or a folder that it is in, is not sent."""
        *folders, name = path.split("/")
        for count in range(1, len(folders) + 1):
            if self.leaves_out_folder(tuple(folders[:count])):
                return True
        return self._verdict((*folders, name), "")

    def leaves_out_folder(self, parts: tuple[str, ...]) -> bool:
        known = self._folders.get(parts)
        if known is None:
            known = self._folders[parts] = self._verdict(parts, "/")
        return known

    def _verdict(self, parts: tuple[str, ...], end: str) -> bool:
        """The rules of the nearest folder that says anything."""
        if self._always.match_file("/".join(parts) + end):
            return True
        whole = (*self._prefix, *parts)
        for count in range(len(whole) - 1, -1, -1):
            spec = self._spec(whole[:count])
            if spec is None:
                continue
            said = spec.check_file("/".join(whole[count:]) + end).include
            if said is not None:
                return said
        return False

    def _spec(self, folder: tuple[str, ...]) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            lines = _lines(self._top.joinpath(*folder, IGNORE_FILE))
            if folder == self._prefix:
                lines = [*self._defaults, *lines]
            self._specs[folder] = GitIgnoreSpec.from_lines(lines) if lines else None
        return self._specs[folder]


def _lines(path: Path) -> Sequence[str]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_IGNORE_BYTES).removeprefix(codecs.BOM_UTF8)
            return os.fsdecode(data).splitlines()
    except OSError:
        return []
