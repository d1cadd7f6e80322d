"""Processes on cards with their children, summed up: whether a loader's workers compute, wait or sleep.

Runs on hosts: Python >= 3.6, stdlib only. Looked at every few seconds, and only below processes that
hold a card: reading all of /proc would cost more than everything else together.
"""

from probe_processes import HERTZ, number, read  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVERY_S, SECOND_AFTER_S = 5.0, 1.0
MANY, MANY_EVERY_S = 32, 10.0
ROOTS_MAX, WORKERS_MAX, LOOKS_MAX = 64, 128, 512
BUSY_PCT = 85.0


class TreeReader:
    """`take` hears which processes are on cards; `poll` says how they and their children do."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.cards = {}  # type: dict[int, dict[int, str | None]]
        self.before = {}  # type: dict[int, tuple[int, int]]
        self.read_at = None  # type: float | None
        self.told_none = True
        self.period_s = SECOND_AFTER_S
        self.looks = 0

    def take(self, news: "dict[str, Any]") -> None:
        """What the driver's thread had to tell."""
        cards = news.get("cards")
        if cards is not None:
            self.cards = {index: held for index, held in self.cards.items() if index in cards}
        for card in news.get("gpus", ()):
            if "processes" in card:
                listed = card["processes"] or ()
                self.cards[card["index"]] = {
                    process["pid"]: process.get("run")
                    for process in listed
                    if process.get("visible", True)
                }

    def poll(self, now: float) -> "list[dict[str, Any]] | None":
        """Every few seconds the trees, an empty list when there are none any more; else None."""
        if self.read_at is not None and now < self.read_at + self.period_s - 0.05:
            return None
        roots = {}  # type: dict[int, str | None]
        for held in self.cards.values():
            roots.update(held)
        if not roots and self.told_none:
            return None
        span = now - self.read_at if self.read_at is not None else 0.0
        many = MANY_EVERY_S if len(self.before) > MANY else EVERY_S
        self.period_s = many if self.before else SECOND_AFTER_S
        self.read_at, self.told_none = now, not roots
        old, self.before = self.before, {}
        self.looks = 0
        return [self._tree(pid, roots, old, span) for pid in sorted(roots)[:ROOTS_MAX]]

    def _tree(
        self,
        pid: int,
        roots: "dict[int, str | None]",
        old: "dict[int, tuple[int, int]]",
        span: float,
    ) -> "dict[str, Any]":
        state, share = self._look(pid, old, span)
        told = {"pid": pid, "run": roots[pid], "state": state, "cpu_pct": share}  # type: dict[str, Any]
        workers = self._below(pid, roots)
        if workers is None:
            return told
        looks = [self._look(one, old, span) for one in workers]
        shares = [look[1] for look in looks if look[1] is not None]
        told["workers"] = len(workers)
        told["workers_blocked"] = sum(1 for look in looks if look[0] == "D")
        if span and len(shares) == len(workers):
            told["workers_cpu_pct"] = round(sum(shares), 1)
            told["workers_busy"] = sum(1 for one in shares if one >= BUSY_PCT)
        return told

    def _below(self, pid: int, roots: "dict[int, str | None]") -> "list[int] | None":
        """Children and their children that hold no card themselves; None when this kernel does not say."""
        near = self._children(pid)
        if near is None:
            return None
        found = []  # type: list[int]
        for one in near[:WORKERS_MAX]:
            if one not in roots:
                found.append(one)
                found += [child for child in self._children(one) or () if child not in roots]
        return found[:WORKERS_MAX]

    def _children(self, pid: int) -> "list[int] | None":
        raw = read("%s/proc/%d/task/%d/children" % (self.root, pid, pid), 8192)
        if raw is None:
            return None
        return [int(word) for word in raw.split() if word.isdigit()]

    def _look(
        self, pid: int, old: "dict[int, tuple[int, int]]", span: float
    ) -> "tuple[str | None, float | None]":
        """(state, share of a core since the last look) of one process."""
        self.looks += 1
        if self.looks > LOOKS_MAX:
            return None, None
        stat = read("%s/proc/%d/stat" % (self.root, pid), 512)
        fields = stat[stat.rfind(b")") + 1 :].split(None, 20) if stat else []
        if len(fields) < 20:
            return None, None
        started = number(fields[19]) or 0
        busy = (number(fields[11]) or 0) + (number(fields[12]) or 0)
        before, self.before[pid] = old.get(pid), (started, busy)
        share = None
        if before is not None and before[0] == started and span > 0:
            share = round(max(0.0, 100.0 * (busy - before[1]) / HERTZ / span), 1)
        return fields[0].decode("ascii", "replace")[:1], share
