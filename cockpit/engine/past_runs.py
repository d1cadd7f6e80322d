"""Between the book of runs and their history: what hosts say is remembered, what is remembered is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import end
from cockpit.engine.events import Event, IncidentChanged, OwnTrouble
from cockpit.engine.history import History, as_unreachable
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import Fact, StorageError

if TYPE_CHECKING:
    from cockpit.engine.api import LaunchPlan

FindMasker: TypeAlias = Callable[[HostName, RunId], Awaitable[Masker]]

WRITE_EVERY_S: Final = 10.0
"""A step or a size that changed is written this often at most; a state at once."""
REMARK_CHARS: Final = 200


class PastRuns:
    def __init__(self, parts: EngineParts, book: RunBook) -> None:
        self.history = History(parts.home.db, parts.clock, self._trouble)
        self.is_loaded = asyncio.Event()
        self._parts = parts
        self._book = book
        self._loading: asyncio.Future[None] | None = None
        self._past: dict[RunId, PastRun] = {}
        self._written: dict[RunId, tuple[RunView, float]] = {}
        self._first_started_s: dict[RunId, float] = {}
        self.find_masker: FindMasker = _nothing_known
        """Whose values must not be kept, whatever a host says of its run."""
        self._masking: set[asyncio.Task[None]] = set()
        self._ahead_s: dict[HostName, float] = {}
        """How far a host's clock is before ours."""

    # -- loading ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Show what is remembered as soon as it is read; hosts that speak first are believed."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(self.load())

    async def load(self) -> None:
        for past in await self.history.load():
            self._past.setdefault(past.run, past)
            if past.view.started_s is not None:
                self._started(past.run, past.view.started_s)
        self._book.remember(as_unreachable(past).view for past in self.history.known.values())
        self.is_loaded.set()

    async def recall(self, run: RunId) -> None:
        """Learn of one run what earlier sessions knew: when it began, at what price."""
        past = await self.history.recall(run)
        if past is None:
            return
        if past.view.started_s is not None:
            self._started(run, past.view.started_s)
        known = self._past.get(run, past)
        self._past[run] = replace(
            known,
            price_per_h=past.price_per_h,
            currency=past.currency,
            has_origin=known.has_origin or past.has_origin,
        )

    async def close(self, limit_s: float) -> None:
        if self._loading is not None:
            await end(self._loading)
        if self._masking:
            await asyncio.wait(self._masking, timeout=limit_s)
        await self.history.close(limit_s)

    # -- what is known ---------------------------------------------------------------------

    def get(self, run: RunId) -> PastRun | None:
        """As its host last spoke of it."""
        return self._past.get(run)

    def first_started_s(self, view: RunView) -> float | None:
        """When its first attempt began, by the host's clock."""
        known = self._first_started_s.get(view.run)
        return view.started_s if known is None else known

    def host_wall_s(self, host: HostName) -> float:
        """The time on the host's clock, which counts for when its runs began."""
        return self._parts.clock.wall_s() + self._ahead_s.get(host, 0.0)

    # -- what hosts say --------------------------------------------------------------------

    def told(self, host: HostName, record: RunRecord, view: RunView) -> None:
        """A host spoke of a run, and the book has made `view` of it."""
        wall_s = self._parts.clock.wall_s()
        if view.host != host or view.state == "unreachable":
            return
        self._ahead_s[host] = record.now_s - wall_s
        if view.started_s is not None:
            self._started(view.run, view.started_s)
        past = self._past[view.run] = self._as_past(view, wall_s)
        before = self._written.get(view.run)
        if before is not None:
            is_same = before[0] == view
            is_soon = before[0].state == view.state and wall_s - before[1] < WRITE_EVERY_S
            if is_soon or (is_same and view.ended):
                return
        self._written[view.run] = (view, wall_s)
        task = asyncio.ensure_future(self._take(past))
        self._masking.add(task)
        task.add_done_callback(self._masking.discard)

    async def _take(self, past: PastRun) -> None:
        self.history.take(masked_past(past, await self.find_masker(past.host, past.run)))

    async def settled(self) -> None:
        """Everything that was told is with the history."""
        while self._masking:
            await asyncio.wait(self._masking)
        await self.history.flush()

    def heard(self, event: Event) -> None:
        if isinstance(event, IncidentChanged):
            self.history.take_incident(event.incident)

    def _started(self, run: RunId, started_s: float) -> None:
        self._first_started_s[run] = min(started_s, self._first_started_s.get(run, started_s))

    def _as_past(self, view: RunView, wall_s: float) -> PastRun:
        known = self._past.get(view.run)
        spec = self._parts.hosts.get(view.host)
        price, currency = (None, None) if spec is None else (spec.price_per_h, spec.currency)
        if known is not None and known.price_per_h is not None:
            price, currency = known.price_per_h, known.currency
        has_origin = known is not None and known.has_origin
        return PastRun(view, wall_s, price, currency, has_origin)

    # -- what is done here -----------------------------------------------------------------

    async def launched(self, plan: LaunchPlan, view: RunView, masker: Masker) -> None:
        """Keep what it was started from."""
        origin: Origin | None = plan.origin
        past = replace(
            self._as_past(view, self._parts.clock.wall_s()), has_origin=origin is not None
        )
        self._past[view.run] = past
        if origin is not None:
            from cockpit.engine.origins import masked

            await self.history.keep_origin(masked_past(past, masker), masked(origin, masker))

    async def set_remark(self, view: RunView, remark: str) -> None:
        """Write a person's line to a run. Raises StorageError."""
        words = safe_line(remark).strip()[:REMARK_CHARS]
        past = self._past.get(view.run) or self._as_past(view, self._parts.clock.wall_s())
        masker = await self.find_masker(view.host, view.run)
        words = masker.text(words)
        if not await self.history.set_remark(masked_past(past, masker), words):
            raise StorageError("remark_not_kept", run=view.run)
        self._past[view.run] = replace(past, view=replace(past.view, remark=words))
        self._book.remark(view.run, words)

    def _trouble(self, code: str, facts: Mapping[str, Fact]) -> None:
        if code == "history_set_aside":
            self._written.clear()  # what hosts still have is written again
        self._parts.bus.publish(OwnTrouble(code, dict(facts), self._parts.clock.wall_s()))


def masked_past(past: PastRun, masker: Masker) -> PastRun:
    """The run without any secret's value: a profile may have put one into its command."""
    if not masker:
        return past
    view = past.view
    return replace(
        past,
        view=replace(
            view,
            command=tuple(masker.text(word) for word in view.command),
            notes=tuple((name, masker.text(text)) for name, text in view.notes),
        ),
    )


async def _nothing_known(_host: HostName, _run: RunId) -> Masker:
    return Masker()
