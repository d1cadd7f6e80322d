"""What a profile wants beside its run, done on this computer: budget, hooks, messages.

Of all cockpits that see an end or an incident, one acts: whoever claims it in the history first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from cockpit.domain.budget import Price
from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.models import RunId
from cockpit.domain.mutes import mute_of
from cockpit.domain.runs import RunView
from cockpit.engine.around_words import end_message, facts_of, hook_words, is_news, limits_of
from cockpit.engine.bounds import end
from cockpit.engine.budget import BudgetParts, Budgets
from cockpit.engine.events import Event, IncidentChanged, LaunchStep, RunChanged
from cockpit.engine.hooks import Hooks
from cockpit.engine.notify import Herald, Kind, Message, is_installed
from cockpit.engine.past_runs import PastRuns
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError, RunUnknown
from cockpit.i18n.messages import describe_incident

if TYPE_CHECKING:
    from cockpit.config.profile import Profile

log = logging.getLogger(__name__)

STEPS_KEPT: Final = 20
AGAIN_AFTER_S: Final = 600.0
"""One incident that comes and goes is told so often at most."""
FAREWELL_S: Final = 0.3
_KINDS: Final[dict[str, Kind]] = {"fatal": "failure", "warning": "warning", "notice": "info"}


async def _cannot_stop(run: RunId) -> object:
    raise RunUnknown(run=run)


class AroundRuns:
    """Acts for every run that it is told to act for, if the run was started from this computer."""

    def __init__(self, parts: EngineParts, book: RunBook, past: PastRuns) -> None:
        self.acts_for_all = False
        self.goes_at_once = False
        """This cockpit only starts a run and leaves: whoever comes next acts for it, and is not forestalled."""
        self.stop: Callable[[RunId], Awaitable[object]] = _cannot_stop
        self.herald = Herald(parts.clock.now_s)
        self.hooks = Hooks(parts.clock.now_s)
        self._parts = parts
        self._book = book
        self._past = past
        self._adopted: set[RunId] = set()
        self._profiles: dict[RunId, Profile | None] = {}
        self._steps: dict[RunId, deque[tuple[float, str, str]]] = {}
        self._tasks: dict[asyncio.Task[None], RunId] = {}
        self._budgets = Budgets(
            BudgetParts(book.get, self._seconds, self._report, self._stop, self.step)
        )

    # -- for whom --------------------------------------------------------------------------

    def adopt(self, run: RunId, profile: Profile | None = None) -> None:
        """Act for this run; its profile is read from the history where it is not given."""
        self._adopted.add(run)
        if profile is not None:
            self._profiles[run] = profile
        view = self._book.get(run)
        if view is None or self.goes_at_once:
            return
        # An end that was heard before we acted for it, or while nobody was here, is made up for.
        self.spawn(run, self._ended(view) if view.ended else self._watch_budget(run))

    def known_profile(self, run: RunId) -> Profile | None:
        """Its profile, if it was read already."""
        return self._profiles.get(run)

    async def profile_of(self, run: RunId) -> Profile | None:
        """The profile that it was started from here; None for a run of another computer."""
        if run not in self._profiles:
            origin = await self._past.history.origin(run)
            profile = None
            if origin is not None:
                from cockpit.engine.origins import profile_again

                try:
                    profile = await asyncio.to_thread(profile_again, origin, self._parts.home)
                except CockpitError as error:
                    log.warning("profile of %s: %s", run, error)
            self._profiles[run] = profile
        return self._profiles[run]

    async def settled(self, run: RunId, limit_s: float) -> None:
        """Wait for what is still done for the run."""
        tasks = [task for task, whose in self._tasks.items() if whose == run]
        if tasks:
            await asyncio.wait(tasks, timeout=limit_s)

    def steps(self, run: RunId) -> tuple[tuple[float, str, str], ...]:
        return tuple(self._steps.get(run, ()))

    async def close(self) -> None:
        await self._budgets.close()
        await self.herald.close(FAREWELL_S)
        await end(*self._tasks, limit_s=FAREWELL_S)

    # -- what happens ----------------------------------------------------------------------

    def heard(self, event: Event) -> None:
        if isinstance(event, RunChanged) and self.acts_for(event.view.run):
            view, before = event.view, event.before
            if not view.ended and view.state != "unreachable":
                self.spawn(view.run, self._watch_budget(view.run))
            elif view.ended and not (before is not None and before.ended):
                self._budgets.leave(view.run)
                self.spawn(view.run, self._ended(view))
        elif isinstance(event, IncidentChanged):
            run = event.incident.run
            if run is not None and self.acts_for(run) and is_news(event):
                self.spawn(run, self._opened(run, event.incident))

    def is_adopted(self, run: RunId) -> bool:
        return run in self._adopted

    def acts_for(self, run: RunId) -> bool:
        if self.goes_at_once:
            return False
        past = self._past.get(run)
        is_ours = run in self._profiles or (past is not None and past.has_origin)
        return run in self._adopted or (self.acts_for_all and is_ours)

    async def _ended(self, view: RunView) -> None:
        profile = await self.profile_of(view.run)
        if profile is None or not (profile.hooks.on_end or profile.notify.urls):
            return
        if not await self._past.history.claim(f"end:{view.run}@{view.attempt}"):
            return
        work = []
        if profile.hooks.on_end:
            work.append(self._hook(view, "on_end", profile.hooks.on_end, facts_of(view)))
        if profile.notify.urls:
            work.append(self._tell(view, profile, end_message(view, self._spent_words(view))))
        await asyncio.gather(*work)

    async def _opened(self, run: RunId, incident: Incident) -> None:
        view, profile = self._book.get(run), await self.profile_of(run)
        if view is None or profile is None:
            return
        if not (profile.hooks.on_incident or profile.notify.urls):
            return
        if await self._is_muted(incident) or not await self._may_tell(incident):
            return
        words = describe_incident(incident)
        work = []
        if profile.hooks.on_incident:
            told = {
                "family": incident.family, "severity": incident.severity, "summary": words.summary,
            }  # fmt: skip
            facts = {**facts_of(view), **told}
            work.append(self._hook(view, "on_incident", profile.hooks.on_incident, facts))
        if profile.notify.urls:
            body = "\n".join(
                [words.summary, words.cause, *(one.text for one in words.remedies[:2])]
            )
            title = f"{view.profile} on {view.host}: {words.title}"
            message = Message(title, body, _KINDS[incident.severity])
            work.append(self._tell(view, profile, message))
        await asyncio.gather(*work)

    async def _is_muted(self, incident: Incident) -> bool:
        """By a rule of any cockpit on this computer, one that was made a moment ago included."""
        rules = await self._past.history.mutes()
        return bool(mute_of(incident, rules or (), self._parts.clock.wall_s()))

    async def _may_tell(self, incident: Incident) -> bool:
        """One that comes and goes is told seldom; one that stands in the log is told once, however often the log
        is read again, and so is money.
        """
        claim, offset = self._past.history.claim, incident.finding.offset
        if not await claim(f"incident:{incident.key}", AGAIN_AFTER_S):
            return False
        if offset is None and incident.family != "cost":
            return True
        return await claim(f"incident:{incident.key}@{offset}")

    # -- hooks and messages ----------------------------------------------------------------

    async def _hook(self, view: RunView, name: str, script: str, facts: dict[str, object]) -> None:
        spec = self._parts.hosts.get(view.host)
        is_here = spec is not None and spec.local
        ended = await self.hooks.run(script, {**facts, "event": name}, on_its_host=is_here)
        if ended.is_good:
            self.step(view.run, "hook_ran", name, is_quiet=True)
            return
        words = hook_words(name, ended)
        log.warning("hook of %s: %s", view.run, words)
        self.step(view.run, "hook_failed", words)

    async def _tell(self, view: RunView, profile: Profile, message: Message) -> None:
        if not is_installed():
            self.step(view.run, "notify_missing", "apprise")
            return

        def took(scheme: str, is_taken: bool) -> None:
            if is_taken:
                self.step(view.run, "notified", scheme, is_quiet=True)
            else:
                log.warning("message about %s by %s was not taken", view.run, scheme)
                self.step(view.run, "notify_failed", scheme)

        await self.herald.tell(profile.notify.urls, message, took)

    def _spent_words(self, view: RunView) -> str | None:
        seconds, price = self._seconds(view), self._price(view.run)
        if seconds is None:
            return None
        cost = (
            "" if price.per_h is None else f", {price.per_h * seconds / 3600:.2f} {price.currency}"
        )
        return f"{seconds / 3600:.2f} h{cost}"

    # -- budget ----------------------------------------------------------------------------

    async def _watch_budget(self, run: RunId) -> None:
        profile = await self.profile_of(run)
        if profile is not None and profile.budget is not None:
            await self._past.recall(run)
            self._budgets.watch(run, limits_of(profile), self._price(run))

    def _price(self, run: RunId) -> Price:
        past = self._past.get(run)
        return Price() if past is None else Price(past.price_per_h, past.currency)

    def _seconds(self, view: RunView) -> float | None:
        started_s = self._past.first_started_s(view)
        if started_s is None:
            return None
        until_s = view.ended_s if view.ended_s is not None else self._past.host_wall_s(view.host)
        return max(0.0, until_s - started_s)

    def _report(self, view: RunView, finding: Finding) -> None:
        self._parts.incidents.report(finding, host=view.host, run=view.run, profile=view.profile)

    async def _stop(self, run: RunId) -> object:
        return await self.stop(run)

    # -- its own work ----------------------------------------------------------------------

    def step(self, run: RunId, code: str, text: str, *, is_quiet: bool = False) -> None:
        """Something was done for the run; what is quiet stands on its page and is not told."""
        at_s = self._parts.clock.wall_s()
        self._steps.setdefault(run, deque(maxlen=STEPS_KEPT)).append((at_s, code, text))
        view = self._book.get(run)
        if view is not None and not is_quiet:
            self._parts.bus.publish(LaunchStep(run, view.host, code, at_s, text or "-"))

    def spawn(self, run: RunId, work: Coroutine[Any, Any, None]) -> None:
        """Do something for a run; whatever comes of it touches no other."""
        task = asyncio.ensure_future(self._guarded(run, work))
        self._tasks[task] = run
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _guarded(self, run: RunId, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:  # a run's edge: what goes along with it must not touch the others
            log.exception("around %s", run)
