"""Between the book of runs and their history: what hosts say is remembered, what is remembered is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import end
from cockpit.engine.events import Event, IncidentChanged, OwnTrouble
from cockpit.engine.history import History, as_unreachable
from cockpit.engine.host_clocks import HostClocks
from cockpit.engine.masks import NAMES_NOTE, environ_masker, has_secrets
from cockpit.engine.mirror import mirror_path
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import Fact, StorageError

if TYPE_CHECKING:
    from cockpit.engine.api import LaunchPlan

WRITE_EVERY_S: Final = 10.0
"""A step or a size that changed is written this often at most; a state at once."""
REMARK_CHARS: Final = 200
REMEMBERED_INCIDENTS: Final = 500


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
        self.maskers: Mapping[RunId, Masker] = {}
        """What covers the secrets of runs that this session has to do with."""
        self.troubles: list[OwnTrouble] = []
        """Each code once: for whoever listens later than it was told."""
        self._intended: set[RunId] = set()
        """Starts from here of which no host had spoken."""
        self._clocks = HostClocks(parts.clock)
        self._set_s: dict[RunId, float] = {}
        """By how much its host's clock was set while it ran."""

    # -- loading ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Show what is remembered as soon as it is read; hosts that speak first are believed."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(self.load())

    async def load(self) -> None:
        self._intended |= await self.history.intents()
        for past in await self.history.load():
            self._learn(past)
        self._book.remember(as_unreachable(past).view for past in self.history.known.values())
        self._parts.incidents.remember(await self.history.newest_incidents(REMEMBERED_INCIDENTS))
        self.is_loaded.set()

    async def recall(self, run: RunId) -> None:
        """Learn of one run what earlier sessions knew: when it began, at what price."""
        past = await self.history.recall(run)
        if past is not None:
            self._learn(past)
        elif run in await self.history.intents():
            self._intended.add(run)
            if run in self._past:
                self._past[run] = replace(self._past[run], has_origin=True)

    def _learn(self, past: PastRun) -> None:
        """Its host may have spoken of it before it was read."""
        run = past.run
        if past.view.started_s is not None:
            self._started(run, past.view.started_s)
        known = self._past.get(run, past)
        has_price = past.price_per_h is not None
        self._past[run] = replace(
            known,
            price_per_h=past.price_per_h if has_price else known.price_per_h,
            currency=past.currency if has_price else known.currency,
            has_origin=known.has_origin or past.has_origin,
        )

    async def close(self, limit_s: float) -> None:
        if self._loading is not None:
            await end(self._loading)
        await self.history.close(limit_s)

    # -- what is known ---------------------------------------------------------------------

    def get(self, run: RunId) -> PastRun | None:
        """As its host last spoke of it."""
        return self._past.get(run)

    def first_started_s(self, view: RunView) -> float | None:
        """When its first attempt began, by the host's clock."""
        known = self._first_started_s.get(view.run, view.started_s)
        return None if known is None else known + self._set_s.get(view.run, 0.0)

    def host_wall_s(self, host: HostName) -> float:
        """The time on the host's clock, which counts for when its runs began."""
        return self._clocks.wall_s(host)

    # -- what hosts say --------------------------------------------------------------------

    def told(self, host: HostName, record: RunRecord, view: RunView) -> None:
        """A host spoke of a run, and the book has made `view` of it."""
        wall_s = self._parts.clock.wall_s()
        if view.host != host or view.state == "unreachable":
            return
        if moved_s := self._clocks.heard(host, record.now_s):
            self._clock_was_set(host, moved_s)
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
        self.history.take(self._without_secrets(past))

    def _clock_was_set(self, host: HostName, moved_s: float) -> None:
        """What runs there began by another clock: how long they have taken is not changed by it."""
        for run, past in self._past.items():
            if past.view.host == host and not past.view.ended:
                self._set_s[run] = self._set_s.get(run, 0.0) + moved_s

    def _without_secrets(self, past: PastRun) -> PastRun:
        """A profile may have put a secret into its command. Nobody is asked for one here: where values were
        given from here and are not known, the command is what the history has of it already.
        """
        masker = self.maskers.get(past.run)
        if masker is None and has_secrets(
            mirror_path(self._parts.home, past.host, past.run).parent
        ):
            return replace(past, view=replace(past.view, command=(), notes=()))
        noted = dict(past.view.notes).get(NAMES_NOTE, "")
        return masked_past(past, masker or environ_masker(noted))

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
        has_origin = view.run in self._intended or (known is not None and known.has_origin)
        return PastRun(view, wall_s, price, currency, has_origin)

    # -- what is done here -----------------------------------------------------------------

    async def about_to_launch(self, plan: LaunchPlan, run: RunId, masker: Masker) -> None:
        """Keep what it is started from before its host hears of it: we may be killed in between."""
        origin: Origin | None = plan.origin
        if origin is not None:
            from cockpit.engine.origins import masked

            await self.history.intend(run, masked(origin, masker))
            self._intended.add(run)

    async def not_launched(self, run: RunId) -> None:
        """Its host has not started it, for certain."""
        if run in self._intended:
            self._intended.discard(run)
            await self.history.not_started(run)

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
        words = self.maskers.get(view.run, Masker()).text(words)
        if not await self.history.set_remark(self._without_secrets(past), words):
            raise StorageError("remark_not_kept", run=view.run)
        self._past[view.run] = replace(past, view=replace(past.view, remark=words))
        self._book.remark(view.run, words)

    def _trouble(self, code: str, facts: Mapping[str, Fact]) -> None:
        if code == "history_set_aside":
            self._written.clear()  # what hosts still have is written again
        trouble = OwnTrouble(code, dict(facts), self._parts.clock.wall_s())
        self.troubles.append(trouble)
        self._parts.bus.publish(trouble)


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
