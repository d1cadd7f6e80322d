"""Every run that is known, newest first, under one version counter; the agents' answers write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cockpit.domain.gang import gang_of
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import Progress, RunState, RunView
from cockpit.domain.server_sample import ServerSample
from cockpit.errors import RunUnknown

OnChange = Callable[[RunView, RunView | None], None]

_UNREACHABLE: frozenset[RunState] = frozenset(
    {"queued", "starting", "running", "ready", "stopping"}
)


class RunBook:
    """What `RunStore` promises, plus the writing side. `on_change` hears of new runs and state changes."""

    def __init__(self, on_change: OnChange) -> None:
        self._runs: dict[RunId, RunView] = {}
        self._sorted: tuple[RunView, ...] | None = ()
        self._on_change = on_change
        self._version = 0

    @property
    def version(self) -> int:
        return self._version

    def all(self) -> Sequence[RunView]:
        if self._sorted is None:
            newest_first = sorted(self._runs.values(), key=_age)
            self._sorted = tuple(newest_first)
        return self._sorted

    def get(self, run: RunId) -> RunView | None:
        return self._runs.get(run)

    def of_host(self, host: HostName) -> list[RunView]:
        return [view for view in self._runs.values() if view.host == host]

    def find(self, wanted: str) -> RunView:
        """By id, by a unique prefix of it, or the newest run of a profile of that name. Raises RunUnknown.

        A run on several hosts is one here, meant by its first rank; another rank is meant by its whole id.
        """
        exact = self._runs.get(RunId(wanted))
        if exact is not None:
            return exact
        named = _of_first_ranks([view for view in self.all() if view.profile == wanted])
        if named:
            return named[0]
        begun = [view for view in self.all() if view.run.startswith(wanted)] if wanted else []
        begun = _of_first_ranks(begun)
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise RunUnknown("run_ambiguous", run=wanted, matches=tuple(v.run for v in begun[:8]))
        raise RunUnknown(run=wanted, known=tuple(view.run for view in self.all()[:8]))

    def record(self, view: RunView) -> RunView:
        """Take what a host says of a run. What its log told before (progress, readiness) is kept."""
        before = self._runs.get(view.run)
        if before is not None and _is_another_host_s(before, view):
            return before
        if before is not None:
            view = _kept(before, view)
            if view == before:
                return view
        self._put(view)
        if before is None or _is_news(before, view):
            self._on_change(view, before)
        return view

    def remember(self, views: Iterable[RunView]) -> None:
        """Runs of the past; what a host has said already is newer. Nothing of it is news."""
        for view in views:
            if view.run not in self._runs:
                self._put(view)
            elif view.remark and not self._runs[view.run].remark:
                self.remark(view.run, view.remark)

    def remark(self, run: RunId, words: str) -> None:
        before = self._runs.get(run)
        if before is not None and before.remark != words:
            self._put(replace(before, remark=words))

    def progress(self, run: RunId, progress: Progress) -> None:
        before = self._runs.get(run)
        if before is not None and before.progress != progress:
            self._put(replace(before, progress=progress))

    def served(self, run: RunId, sample: ServerSample | None) -> None:
        """What its metrics say; None when they say nothing any more."""
        before = self._runs.get(run)
        if before is not None and before.served != sample:
            self._put(replace(before, served=sample))

    def ready(self, run: RunId) -> None:
        """A running run answered as its profile says it must."""
        before = self._runs.get(run)
        if before is not None and before.state in ("starting", "running"):
            after = replace(before, state="ready")
            self._put(after)
            self._on_change(after, before)

    def host_lost(self, host: HostName) -> None:
        """Our link is gone: what lived there is unreachable to us, which says nothing about the run."""
        for view in self.of_host(host):
            if view.state in _UNREACHABLE:
                after = replace(view, state="unreachable", reason="unreachable")
                self._put(after)
                self._on_change(after, view)

    def out_of_reach(self, run: RunId, reason: str) -> None:
        """Nobody who answers us knows of it, which says nothing about the run."""
        before = self._runs.get(run)
        if before is not None and not before.ended and before.reason != reason:
            after = replace(before, state="unreachable", reason=reason)
            self._put(after)
            self._on_change(after, before)

    def lost(self, run: RunId, reason: str) -> None:
        """It is known to have ended, and not how."""
        before = self._runs.get(run)
        if before is not None and not before.ended:
            after = replace(before, state="lost", reason=reason)
            self._put(after)
            self._on_change(after, before)

    def _put(self, view: RunView) -> None:
        self._runs[view.run] = view
        self._sorted = None
        self._version += 1


def _of_first_ranks(views: Sequence[RunView]) -> list[RunView]:
    runs = {view.run for view in views}
    return [view for view in views if (gang := gang_of(view.run)) is None or gang not in runs]


def _is_news(before: RunView, view: RunView) -> bool:
    """A hook after the job is `stopping` too: that somebody asks for a stop meanwhile is another matter."""
    is_asked = view.state == "stopping" and (before.by, view.by) == (None, "cockpit")
    return is_asked or (before.state, before.attempt) != (view.state, view.attempt)


def _age(view: RunView) -> float:
    """One that waits in a queue is as new as its claim."""
    return -(view.claimed_s or view.started_s or 0.0)


def _is_another_host_s(before: RunView, view: RunView) -> bool:
    """Whether a host speaks of a run that is known to be elsewhere: hosts may share a folder, or lie.

    One that merely sees its folder says "unreachable"; such a claim gives way to whoever has the run.
    """
    if before.host == view.host:
        return False
    return before.state != "unreachable" or view.state == "unreachable"


def _kept(before: RunView, view: RunView) -> RunView:
    if before.state == "exited" and view.state != "exited":
        return before  # an answer that was under way when the end came
    if view.ahead_s is None:
        view = replace(view, ahead_s=before.ahead_s)
    if view.progress == Progress():
        view = replace(view, progress=before.progress)
    if before.state == "ready" and view.state == "running" and before.attempt == view.attempt:
        view = replace(view, state="ready")
    if before.attempt == view.attempt and not view.ended:
        view = replace(view, served=before.served)
    return replace(view, remark=before.remark) if before.remark else view
