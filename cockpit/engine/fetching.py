"""Results of runs that were started here, fetched once when they have ended: now, or when their host is seen again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.domain.units import bytes_text
from cockpit.engine.bounds import end
from cockpit.engine.courier import OpenCourier, open_shipped_courier
from cockpit.engine.events import Event, RunChanged
from cockpit.engine.fetch_store import FetchStore, FetchWish
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError, HostUnreachable, LinkLost, RunError
from cockpit.transport.base import HostTransport

if TYPE_CHECKING:
    from cockpit.engine.api import LaunchPlan
    from cockpit.engine.fetch_files import Fetched

log = logging.getLogger(__name__)

TRIES_IN_VAIN = 4
MOST_TRIES = 50
RECONNECT_LIMIT_S = 60.0
TELL_EVERY_S = 0.5
LISTED_LIMIT_S = 300.0
NAMED = 3

OnStep = Callable[[RunId, HostName, str, str], None]


class Fetcher:
    """One task a run at most; several cockpits of this computer take turns by a lock."""

    def __init__(
        self,
        parts: EngineParts,
        book: RunBook,
        of_host: Callable[[HostName], HostRuns],
        transport_of: Callable[[HostName], HostTransport | None],
        on_step: OnStep,
        open_courier: OpenCourier = open_shipped_courier,
    ) -> None:
        self.acts_for_all = False
        """Whether results are fetched without being asked for."""
        self.store = FetchStore(parts.home)
        self._parts = parts
        self._book = book
        self._of_host = of_host
        self._transport_of = transport_of
        self._on_step = on_step
        self._open_courier = open_courier
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._looking: set[asyncio.Task[None]] = set()

    def remember(self, plan: LaunchPlan, run: RunId) -> None:
        """Before the start: whatever happens to us, the next cockpit knows. Raises StorageError."""
        table = plan.profile.fetch
        if table is None:
            return
        from cockpit.engine.code_planning import local_path

        target = local_path(plan.profile, table.into) / run
        wish = FetchWish(
            plan.cwd, table.globs, table.when, str(target.absolute()), table.max_size_mib << 20
        )
        self.store.keep(plan.host, run, wish)

    def forget(self, host: HostName, run: RunId) -> None:
        """It was not started."""
        self.store.path(host, run).unlink(missing_ok=True)

    def heard(self, event: Event) -> None:
        if self.acts_for_all and isinstance(event, RunChanged) and event.view.ended:
            self.begin(event.view)

    def host_up(self, host: HostName) -> None:
        """Runs may have ended while nobody looked."""
        if self.acts_for_all and self.store.waiting(host):
            task = asyncio.ensure_future(self._look(host))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def _look(self, host: HostName) -> None:
        try:
            await asyncio.wait_for(self._of_host(host).listed.wait(), LISTED_LIMIT_S)
        except (asyncio.TimeoutError, CockpitError):
            return
        for run in self.store.waiting(host):
            view = self._book.get(run)
            if view is not None and view.ended:
                self.begin(view)

    def begin(self, view: RunView, *, by_hand: bool = False) -> bool:
        """Fetch what is due, in a task of ours; False when there is nothing to fetch for this run."""
        wish = self.store.read(view.host, view.run)
        running = self._tasks.get(view.run)
        if wish is None or (wish.state != "waiting" and not by_hand):
            return False
        if running is None or running.done():
            work = self._fetch_once(view, wish, by_hand)
            self._tasks[view.run] = asyncio.ensure_future(work)
        return True

    async def settled(self, run: RunId) -> None:
        """Wait for what was begun."""
        if (task := self._tasks.get(run)) is not None:
            await asyncio.wait({task})

    async def close(self) -> None:
        """What is under way is gone on from next time."""
        await end(*self._tasks.values(), *self._looking, limit_s=1.0)

    # -- one run ----------------------------------------------------------------------------

    async def _fetch_once(self, view: RunView, wish: FetchWish, by_hand: bool) -> None:
        host, run = view.host, view.run
        try:
            with self.store.claimed(host, run) as is_ours:
                if not is_ours:
                    return
                wish = self.store.read(host, run) or wish
                if not by_hand and (wish.state != "waiting" or not wish.is_due(view)):
                    self.store.settle(host, run, wish, "not_due", "")
                    return
                fetched = await self._fetched(view, wish)
                words = told(fetched, wish)
                if view.ended:  # else its end brings the rest
                    self.store.settle(host, run, wish, "done", words)
                self._on_step(
                    run, host, "fetched" if is_news(fetched) else "fetched_nothing", words
                )
        except RunError as error:
            if view.ended:
                self.store.settle(host, run, wish, "refused", error.code)
            self._failed(view, error)
        except CockpitError as error:  # tried again when the host is seen again
            self._failed(view, error)
        except Exception as error:  # a run's edge: its results stay where they are
            log.exception("results of %s", run)
            self._failed(view, CockpitError(why=type(error).__name__))

    def _failed(self, view: RunView, error: CockpitError) -> None:
        from cockpit.i18n.messages import explain

        words = explain(error.code, error.facts)
        log.warning("results of %s: %s", view.run, error)
        text = " ".join((words.headline, *words.actions)).strip()
        self._on_step(view.run, view.host, "fetch_failed", text)

    async def _fetched(self, view: RunView, wish: FetchWish) -> Fetched:
        """Over any number of lost links, as long as something comes over."""
        from cockpit.engine.fetch_files import Fetching

        tell = _Tell(self, view)
        vain = 0
        for _try in range(MOST_TRIES):
            before = tell.progress
            try:
                await self._of_host(view.host).agent(RECONNECT_LIMIT_S)
                transport = self._transport_of(view.host)
                if transport is not None:
                    python = self._parts.hosts[view.host].python
                    fetching = Fetching(transport, python, self._open_courier)
                    return await fetching.fetch(wish, tell.progressed)
            except LinkLost:
                pass
            vain = 0 if tell.progress != before else vain + 1
            if vain >= TRIES_IN_VAIN:
                break
        raise HostUnreachable(host=view.host, why="timeout")

    def step(self, view: RunView, code: str, text: str) -> None:
        self._on_step(view.run, view.host, code, text)

    def now_s(self) -> float:
        return self._parts.clock.now_s()


class _Tell:
    """Progress, at most twice a second."""

    def __init__(self, fetcher: Fetcher, view: RunView) -> None:
        self._fetcher = fetcher
        self._view = view
        self._told_s: float | None = None
        self.progress = (0, 0)

    def progressed(self, done_bytes: int, total_bytes: int) -> None:
        self.progress = (done_bytes, total_bytes)
        now_s = self._fetcher.now_s()
        if total_bytes and (self._told_s is None or now_s - self._told_s >= TELL_EVERY_S):
            self._told_s = now_s
            words = f"{bytes_text(done_bytes)} of {bytes_text(total_bytes)}"
            self._fetcher.step(self._view, "fetching", words)


def is_news(fetched: Fetched) -> bool:
    """Whether anything there matched, brought or not."""
    left = fetched.odd_names + fetched.links + len(fetched.changed) + len(fetched.failed)
    return fetched.files + left > 0


def told(fetched: Fetched, wish: FetchWish) -> str:
    """ "3 files, 1.2 GiB, in /home/me/fetched/run-1"."""
    if not is_news(fetched):
        return ", ".join(wish.globs)
    parts = [f"{fetched.files} files", bytes_text(fetched.total_bytes)]
    if fetched.beside:
        parts.append(f"{fetched.beside} beside others of the same name")
    if fetched.changed:
        parts.append(f"not whole, since they change: {', '.join(fetched.changed[:NAMED])}")
    if fetched.failed:
        parts.append(f"not readable: {', '.join(fetched.failed[:NAMED])}")
    if fetched.odd_names:
        parts.append(f"{fetched.odd_names} left there for their names")
    if fetched.links:
        parts.append(f"{fetched.links} links left there")
    return f"{', '.join(parts)}, in {wish.target}"
