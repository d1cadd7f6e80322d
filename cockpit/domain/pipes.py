"""Commands whose exit code is another's: `python train.py | tee log` ends well however the training ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_SHELL: Final = re.compile(r"(?:.*/)?(?:ba|da|z|k|a)?sh")
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|(?:^|(?<=\s))#[^\n]*", re.DOTALL)
_STATEMENTS: Final = re.compile(r"[;\n]+")
_TEE: Final = re.compile(r"\|&?\s*(?:\S*/)?tee\b")


def hides_the_exit_code(argv: Sequence[str]) -> bool:
    """Whether a shell ends such a command with a pipe into tee, and no pipefail."""
    if len(argv) < 3 or _SHELL.fullmatch(argv[0]) is None:
        return False
    flag = next((place for place, word in enumerate(argv[1:], 1) if _takes_script(word)), None)
    if flag is None or flag + 1 >= len(argv):
        return False
    script = argv[flag + 1]
    if "pipefail" in script or any("pipefail" in word for word in argv[1:flag]):
        return False
    plain = _QUOTED.sub(" ", script.replace("\\\n", " "))
    statements = [part for part in _STATEMENTS.split(plain) if part.strip()]
    return bool(statements) and _TEE.search(statements[-1]) is not None


def _takes_script(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and word.endswith("c")
