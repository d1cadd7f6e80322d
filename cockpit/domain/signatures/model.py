"""What a signature is: a failure's literal words, its pattern, and what it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from cockpit.domain.incidents import Family, Severity

Role: TypeAlias = Literal[
    "cause", "symptom", "wrapper", "fallout", "tail", "count", "metric", "stop"
]
"""How much a line explains.

cause: why it failed. symptom: a failure that a cause may explain. wrapper: says only that something
failed. fallout: follows from another's failure. tail: counts only where the log ends with it.
count: normal alone, telling when repeated. metric: a number, never an incident. stop: somebody
asked for the end, so what follows is no failure.
"""

SIZE: Final = r"[\d.]+ (?:bytes|[KMGT]iB)"
"""What `<SIZE>` in a pattern stands for: a size as PyTorch prints it."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One row of the table. Named groups are facts (see `values`); those with a leading _ are not."""

    id: str
    family: Family
    literals: tuple[str, ...]
    """One of these must be in the line before the pattern is tried."""
    pattern: str
    cause: str
    source: str
    """Where the text was read: a file of a project, or the tool that prints it."""
    examples: tuple[str, ...]
    severity: Severity = "fatal"
    role: Role = "cause"
    remedies: tuple[str, ...] = ()
    kernel: bool = False
    """Only in lines of the kernel log; an application that quotes one does not count."""
    any_level: bool = False
    """Counts although it is printed at a level below error."""
    at_least: int = 1
    """How many times within a window before it is worth a word."""
    bare_unit: str = "B"
    """Unit of sizes that the pattern takes without one."""

    @property
    def regex(self) -> re.Pattern[str]:
        return _compiled(self.pattern)

    @property
    def squeezed(self) -> re.Pattern[str]:
        """The pattern for a message from which all blanks were taken: cut lines put together."""
        return _compiled(self.pattern.replace("<SIZE>", SIZE).replace(" ", ""))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("<SIZE>", SIZE))
