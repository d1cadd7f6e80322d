"""What our own instruments said when an incident opened, kept with it: it stays true when the samples are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

CurveKind: TypeAlias = Literal["gpu", "process", "util", "host", "shm", "disk"]

MOST_POINTS = 120
MOST_HOLDERS = 16
MOST_STEPS = 24


@dataclass(frozen=True, slots=True)
class Curve:
    """One quantity before the moment: the highest reading of each stretch, oldest first, the moment at its end."""

    kind: CurveKind
    step_s: float
    until_s: float
    """Wall clock at the moment, which is in the last stretch."""
    values: tuple[float | None, ...]
    """MiB in use, percent for `util`; None where nothing was read."""
    top: float | None = None
    """What there is in all."""
    name: str = ""
    """The mount of a disk, or the process."""
    gpu: int | None = None

    @property
    def span_s(self) -> float:
        return self.step_s * len(self.values)

    @property
    def last(self) -> float | None:
        return next((value for value in reversed(self.values) if value is not None), None)


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on the card at that moment."""

    pid: int
    name: str = ""
    user: str = ""
    used_mib: int | None = None
    run: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """All of it. `company` is None where nobody could see who is on the card."""

    curve: Curve | None = None
    company: tuple[Holder, ...] | None = None
    machine: Mapping[str, str] = field(default_factory=dict)
    """gpu, driver, cuda, os, as the host names them."""


@dataclass(frozen=True, slots=True)
class Step:
    """What became of an incident: a state, `worse`, or `again`; `why` is a code or a person's words."""

    at_s: float
    what: str
    why: str = ""


def with_step(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """The first ones and the newest, as many as are kept."""
    steps += (step,)
    if len(steps) <= MOST_STEPS:
        return steps
    first = MOST_STEPS // 3
    return steps[:first] + steps[len(steps) - (MOST_STEPS - first) :]
