"""From lines to incidents within one log: causes win over fallout, copies fold, recoveries count.

An episode is a stretch of the log in which things went wrong. Each group in it becomes one finding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cockpit.domain.incidents import FactValue, Family, Severity
from cockpit.domain.signatures.match import Hit
from cockpit.domain.signatures.model import Role

WINDOW_LINES: Final = 400
"""A failure explains what follows within so many lines (tracebacks of eight ranks are that long)."""
WINDOW_S: Final = 120.0
"""The same in time, where lines come live."""
WRAPPER_PATIENCE_LINES: Final = 60
"""How long a mere "it failed" waits for the line that says why."""
STOP_LINES: Final = 120
"""After somebody asked for the end, noise of so many lines is no failure."""
TAIL_LINES: Final = 60
DIVERGED_COPIES: Final = 3
"""So many NaN losses in one episode are a run that diverged, and not one bad batch."""

LEVELS: Final[dict[Role, int]] = {
    "cause": 3, "symptom": 2, "count": 2, "wrapper": 1, "tail": 1, "fallout": 0,
}  # fmt: skip

INHIBITS: Final[frozenset[tuple[Family, Family]]] = frozenset({
    ("host_oom", "shm"), ("host_oom", "hang"), ("shm", "disk"), ("shm", "nccl"), ("gpu_oom", "kv_cache"),
    ("gpu_oom", "nccl"), ("gpu_oom", "hang"), ("hardware", "driver"), ("hardware", "nccl"), ("hardware", "hang"),
    ("driver", "env"), ("kv_cache", "env"), ("disk", "nan"),
    *((family, "crash") for family in (
        "gpu_oom", "host_oom", "kv_cache", "shm", "hardware", "driver", "disk", "env", "port", "nan", "nccl",
        "hang",
    )),
})  # fmt: skip
"""(cause, effect): of two that say why, the first explains the second."""

RECOVERY_MARK: Final = re.compile(
    r"trying batch size|batch size \d+ (?:failed|succeeded)|(?:reduc|halv|decreas|lower)\w* (?:the )?(?:batch|micro)"
    r"|retrying (?:with|without|once)|skipp\w+ (?:this |the )?batch|falling back to|tiled (?:vae )?(?:de|en)cod"
    r"|reducing automatic context|OOM (?:caught|handled|recovered)|recovered from (?:an? )?(?:OOM|out.of.memory)"
    r"|batch_size\s*[=:]\s*\d+ (?:failed|too)",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"\b(?P<done>\d{1,9})/(?P<total>\d{1,9})\s*\[\d|\b(?:global_)?(?:step|iter|iteration)s?[ =:]+(?P<step>\d{1,9})\b",
    re.IGNORECASE,
)
RECOVERY_STEPS: Final = 2
"""Steps that must be seen done after an OOM before the run counts as going on."""


@dataclass(slots=True)
class Sighting:
    """A hit and where it stands."""

    hit: Hit
    line: int
    offset: int
    at_s: float | None = None


@dataclass(slots=True)
class Group:
    """Hits of one cause. `lead` is what is shown; the others are its copies and its fallout."""

    lead: Sighting
    facts: dict[str, FactValue] = field(default_factory=dict)
    copies: int = 1
    ranks: set[int] = field(default_factory=set)
    cause: str = ""
    remedies: tuple[str, ...] = ()
    confirmed: bool = False
    """A launcher or an engine said that the process ended."""
    recovered: bool = False
    told: bool = False
    changed: bool = True
    steps_after: set[int] = field(default_factory=set)
    wrapped: tuple[str, ...] = ()
    """The lead's message and the lines after it, while it may be one message cut at some width."""

    @property
    def family(self) -> Family:
        return self.lead.hit.family

    @property
    def level(self) -> int:
        return LEVELS[self.lead.hit.role]

    @property
    def severity(self) -> Severity:
        if self.recovered:
            return "notice"
        if self.family == "nan" and self.copies >= DIVERGED_COPIES:
            return "fatal"
        return self.lead.hit.severity

    def gives_way_to(self, hit: Hit) -> bool:
        """Whether a copy explains more than what leads."""
        level = LEVELS[hit.role]
        return level > self.level or (level == self.level and _says_more(hit, self.lead.hit))

    def join(self, sighting: Sighting) -> None:
        """Take a copy in; the one that explains more leads."""
        before = self.severity
        self.copies += 1
        if sighting.hit.rank is not None:
            self.ranks.add(sighting.hit.rank)
        if self.gives_way_to(sighting.hit):
            self.lead = sighting
            self.cause, self.remedies = sighting.hit.cause, sighting.hit.remedies
            self.facts = {**self.facts, **sighting.hit.facts}
            self.changed = True
        self.changed = self.changed or self.severity != before

    def amend(self, hit: Hit) -> None:
        """The same line, read whole: its place stays, its numbers come."""
        self.lead = Sighting(hit, self.lead.line, self.lead.offset, self.lead.at_s)
        self.facts.update(hit.facts)
        self.cause, self.remedies, self.changed = hit.cause, hit.remedies, True


def start_group(sighting: Sighting) -> Group:
    hit = sighting.hit
    group = Group(sighting, dict(hit.facts), cause=hit.cause, remedies=hit.remedies)
    if hit.rank is not None:
        group.ranks.add(hit.rank)
    group.recovered = hit.handled and hit.family == "gpu_oom"
    return group


def _says_more(newer: Hit, older: Hit) -> bool:
    """A process that is not the first to fail can still be the one that prints the numbers."""
    wanted = "tried_mib" if newer.family == "gpu_oom" else "anon_rss_mib"
    return wanted in newer.facts and not _sizes(older.facts)


def _sizes(facts: Mapping[str, FactValue]) -> bool:
    return any(name.endswith("_mib") for name in facts)


def same_thing(group: Group, hit: Hit) -> bool:
    """Whether a hit is a copy of the group's failure and not a second one."""
    if group.family != hit.family or group.recovered != (hit.handled and hit.family == "gpu_oom"):
        return False
    if hit.family != "hardware":
        return True
    ours, theirs = group.facts.get("bus_id"), hit.facts.get("bus_id")
    return ours is None or theirs is None or _bus(ours) == _bus(theirs)


def _bus(bus_id: FactValue) -> str:
    """65:00 of 0000:65:00, 00000000:65:00.0 and the like."""
    return str(bus_id).partition(".")[0][-5:].lower()


def explains(group: Group, hit: Hit) -> bool:
    """Whether the group's failure is why the hit was printed."""
    level = LEVELS[hit.role]
    if group.recovered or (group.family == hit.family and not same_thing(group, hit)):
        return False
    if group.level > level:
        return group.lead.hit.severity != "notice" or level == 0
    return group.level == level and (group.family, hit.family) in INHIBITS


class Episode:
    """What is open in one log."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.last_line = 0
        self.last_at_s: float | None = None

    def expired(self, line: int, at_s: float | None) -> bool:
        """Whether so much has passed that what comes next has another cause."""
        if at_s is not None and self.last_at_s is not None and at_s - self.last_at_s > WINDOW_S:
            return True
        return line - self.last_line > WINDOW_LINES

    def goes_on(self, line: int) -> None:
        """One more of many like it was printed."""
        if self.groups:
            self.last_line = line

    def is_copy(self, hit: Hit) -> bool:
        """Whether a hit will be counted and nothing else, so that what stands around it tells nothing."""
        group = next((group for group in self.groups if same_thing(group, hit)), None)
        return group is not None and not group.gives_way_to(hit)

    def take(self, sighting: Sighting) -> None:
        """Fold a hit into what explains it, or begin a group with it."""
        hit = sighting.hit
        self.last_line, self.last_at_s = sighting.line, sighting.at_s
        for group in self.groups:
            if same_thing(group, hit):
                group.join(sighting)
                return
        explained = False
        for group in self.groups:
            if explains(group, hit):
                group.confirmed = group.confirmed or hit.role in ("wrapper", "fallout")
                explained = True
        if not explained:
            self._begin(sighting)

    def _begin(self, sighting: Sighting) -> None:
        group = start_group(sighting)
        kept = [other for other in self.groups if not explains(group, other.lead.hit)]
        group.confirmed = len(kept) < len(self.groups)
        self.groups = [*kept, group]

    def look(self, line: int, text: str) -> None:
        """A line that is no hit: a step done, a recovery, a detail of what was hit."""
        for group in self.groups:
            if group.family == "gpu_oom" and not group.confirmed and not group.recovered:
                self._judge_recovery(group, text)
        counted = _COUNTED.search(text)
        if counted:
            self._drop_tails(line)

    def merge_recovered(self) -> None:
        """Failures of one kind that all were recovered from are one thing to know."""
        first: dict[str, Group] = {}
        kept = []
        for group in self.groups:
            known = (
                first.setdefault(group.lead.hit.signature.id, group) if group.recovered else group
            )
            if known is group:
                kept.append(group)
            else:
                known.copies += group.copies
        self.groups = kept

    def _judge_recovery(self, group: Group, text: str) -> None:
        counted = _COUNTED.search(text)
        if counted:
            group.steps_after.add(int(counted["done"] or counted["step"]))
        if RECOVERY_MARK.search(text) or len(group.steps_after) > RECOVERY_STEPS:
            group.recovered = group.changed = True

    def _drop_tails(self, line: int) -> None:
        self.groups = [
            group
            for group in self.groups
            if group.lead.hit.role != "tail"
            or group.confirmed
            or line - group.lead.line < TAIL_LINES
        ]
