"""Apply a remedy: its change of the profile shown, agreed to, and a new run started with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

from cockpit.domain.incidents import Incident
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import price_text
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.i18n.messages import reason_text
from cockpit.screens.base import services
from cockpit.screens.dialogs import ConfirmDialog, MessageDialog
from cockpit.screens.run_actions import (
    as_content,
    price_line,
    show_blocked,
    show_error,
    tell_stopped,
)
from cockpit.widgets.diff import patch_paras

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi, LaunchPlan
    from cockpit.engine.incidents_api import Mend

ANSWERS = frozenset({"live", "degraded", "stale"})
"""States of a link through which a run can be stopped and started."""


async def apply_remedy(screen: Screen[None], incident: Incident) -> None:
    """The first remedy that is a profile change: its diff, then a new run. To be run in a worker."""
    app, engine = screen.app, services(screen).engine
    name = safe_line(incident.profile or "")
    if incident.state == "applied":
        app.notify(
            _("{name}: {how}").format(name=name, how=reason_text(incident.state_why)), markup=False
        )
        return
    try:
        mend = await engine.mend(incident)
    except CockpitError as error:
        show_error(app, _("{name} was not relaunched").format(name=name), error)
        return
    if mend.remedy is None:
        app.notify(_nothing_words(mend, name), markup=False)
        return
    old = None if incident.run is None else engine.runs.get(incident.run)
    living = old if old is not None and not old.ended else None
    if living is not None and not _answers(engine, living):
        app.push_screen(_out_of_reach(name, living))
        return
    await _Relaunch(screen, incident, mend, living).go(name)


class _Relaunch:
    """One change that is offered, and the run that it would be made to."""

    def __init__(
        self, screen: Screen[None], incident: Incident, mend: Mend, living: RunView | None
    ) -> None:
        self._app, self._engine = screen.app, services(screen).engine
        self._incident, self._mend, self._living = incident, mend, living

    async def go(self, name: str) -> None:
        failed = _("{name} was not relaunched").format(name=name)
        try:
            plan = None if self._living is not None else await self._plan()
        except CockpitError as error:
            show_error(self._app, failed, error)
            return
        if plan is not None and plan.blocked:
            show_blocked(self._app, plan)
        elif not await self._app.push_screen_wait(self._dialog(name, plan)):
            self._app.notify(_("Nothing was changed."), markup=False)
        else:
            try:
                await self._relaunch(name, plan)
            except CockpitError as error:
                show_error(self._app, failed, error)

    async def _relaunch(self, name: str, plan: LaunchPlan | None) -> None:
        """Raises CockpitError."""
        now = None if self._living is None else self._engine.runs.get(self._living.run)
        if now is not None and not now.ended:
            report = await self._engine.stop(now.run)
            if report.left:
                tell_stopped(self._app, name, report)
                return
        plan = plan or await self._plan()
        if plan.blocked:
            show_blocked(self._app, plan)
            return
        run = await self._engine.launch(plan)
        self._engine.incidents.set_state(self._incident.key, "applied", f"relaunched_as:{run}")
        from cockpit.screens.navigation import open_run

        open_run(self._app, run)

    async def _plan(self) -> LaunchPlan:
        """With the changes that the run had already."""
        mend, profile = self._mend, self._incident.profile or ""
        if mend.again is not None:
            return await self._engine.plan_again(
                mend.again, hosts=mend.hosts, gpus=mend.gpus, overrides=mend.overrides
            )
        return await self._engine.plan(
            profile, hosts=mend.hosts, gpus=mend.gpus, overrides=mend.overrides
        )

    def _dialog(self, name: str, plan: LaunchPlan | None) -> ConfirmDialog:
        assert self._mend.remedy is not None
        diff = as_content(patch_paras(dict(self._mend.remedy.patch or {}), self._mend.before))
        return ConfirmDialog(
            _("Relaunch {name} with this change?").format(name=name), diff,
            confirm=_("Relaunch"), follows=self._follows(plan),
        )  # fmt: skip

    def _follows(self, plan: LaunchPlan | None) -> list[str]:
        follows = []
        living = self._living
        if living is not None:
            words = _("Run {run} still runs: it is stopped first (SIGINT, SIGTERM, SIGKILL).")
            follows.append(words.format(run=living.run))
        if plan is not None:
            cards = ", ".join(f"{card.host}:{card.index}" for card in plan.cards)
            follows.append(_("A new run starts on {where}.").format(where=cards or str(plan.host)))
            if plan.price_per_h is not None:
                price = price_text(plan.price_per_h, plan.currency)
                follows.append(_("{host} costs {price}.").format(host=plan.host, price=price))
        elif living is not None and (price := price_line(self._engine, living.host)):
            follows.append(price + ".")
        if self._mend.note == "edited":
            words = _("The profile's file was edited since: this starts from its text of then.")
            follows.append(words)
        return [*follows, _("The profile's file stays as it is; the change holds for this run.")]


def _nothing_words(mend: Mend, name: str) -> str:
    if mend.note == "gone":
        words = _("The profile {name} has changed since: this change no longer fits it")
        return words.format(name=name)
    return _("No remedy of this incident is a change of the profile")


def _answers(engine: EngineApi, view: RunView) -> bool:
    state = engine.fleet.hosts.get(view.host)
    return state is not None and state.link in ANSWERS


def _out_of_reach(name: str, view: RunView) -> MessageDialog:
    return MessageDialog(
        _("{name} was not relaunched").format(name=name),
        _("{host} does not answer.").format(host=view.host),
        _(
            "Run {run} may still run there, and would have to be stopped first. Try again when the host is back."
        ).format(run=view.run),
        code="host_away",
    )
