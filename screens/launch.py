"""Launch: choose a profile, see where, with what and at what price it would run, then start it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Button

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.domain.text import cell_len, safe_line
from cockpit.engine.api import LaunchPlan, ProfileEntry
from cockpit.engine.events import Event, LaunchStep
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.screens.base import services
from cockpit.screens.launch_cards import known_cards
from cockpit.screens.launch_files import past_text, read_text
from cockpit.screens.launch_profile import ProfileActions
from cockpit.screens.launch_words import Draft, draft_paras, foot_words, go_dialog, go_words
from cockpit.screens.navigation import open_run
from cockpit.screens.run_actions import show_error
from cockpit.widgets.launch_rows import CardRow, ProfileRow
from cockpit.widgets.row_list import RowList
from cockpit.widgets.text_pane import TextPane

PLAN_AFTER_S = 0.2
"""Rest of the cursor before a profile is planned, so that scrolling through the list asks nothing."""


def open_relaunch(app: App[object], view: RunView) -> None:
    """The Launch screen with the run as it was started then, where that is known; else with its profile."""
    past = services(app).engine.past(view.run)
    app.switch_mode("launch")
    screen = app.screen
    if isinstance(screen, LaunchScreen):
        if past is not None and past.has_origin:
            screen.again(view)
        else:
            screen.choose(view.profile, view.host, view.gpus)


class LaunchScreen(ProfileActions):
    """Left the profiles, right the plan. Nothing is sent before the dialog is answered."""

    MODE = "launch"
    CSS_PATH = ["lists.tcss", "launch.tcss"]
    HINTS = ("launch.go", "launch.pick", "launch.script", "launch.copy", "launch.edit")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "go", _("go"), id="launch.go", tooltip=_("Start it, after a dialog with where and price")),
        Binding("space", "pick", _("pick card"), id="launch.pick", tooltip=_("Take this card, or leave it")),
        Binding("V", "script", _("script"), id="launch.script", tooltip=_("Exactly what the host would run")),
        Binding("C", "copy_profile", _("copy"), id="launch.copy", tooltip=_("A profile of your own from this one")),
        Binding("e", "edit", _("edit"), id="launch.edit", tooltip=_("The profile in your editor")),
        Binding("y", "copy_command", _("copy command"), show=False, id="launch.copy_command"),
        Binding("f5", "plan_again", _("look again"), show=False, id="launch.again"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._error: CockpitError | None = None
        self._host: HostName | None = None
        self._gpus: tuple[int, ...] | None = None
        self._busy = ""
        self._wait: Timer | None = None
        self._wanted: str | None = None
        self._entries: dict[str, ProfileEntry] = {}
        self._again_over: str | None = None
        """The profile that the cursor stood on when a run of the past was asked for."""

    def compose_body(self) -> ComposeResult:
        with Horizontal(classes="columns"):
            with Vertical(classes="left"):
                yield RowList(_("profiles"), id="profiles", empty=_("No profiles yet."))
            with Vertical(classes="right"):
                yield RowList(_("cards"), id="cards", empty=_("no card is reserved"))
                yield TextPane(_("what would run"), id="plan")
                with Horizontal(id="go-row"):
                    yield Button(Content(_("Go")), id="go", disabled=True)

    def on_mount(self) -> None:
        self.query_one("#profiles", RowList).focus()

    def on_screen_resume(self) -> None:
        self.list_profiles()

    # Asked from elsewhere.

    def prefill(self, host: HostName, gpu: int | None) -> None:
        """A host and a card chosen on another screen."""
        self._host, self._gpus = host, None if gpu is None else (gpu,)
        if self.is_mounted:
            self.plan_soon()

    def choose(self, profile: str, host: HostName, gpus: Sequence[int]) -> None:
        """A profile as well; both may be asked before the screen is there."""
        self._wanted = profile
        self._host, self._gpus = host, tuple(gpus) or None
        if self.is_mounted:
            self.list_profiles()
            self.plan_soon()

    def again(self, view: RunView) -> None:
        """A run of the past, from the profile text and the changes of then."""
        self._again = ProfileEntry(
            view.profile,
            Path(view.run),
            "file",
            view.kind,
            _("as {run} was started").format(run=view.run),
        )
        self._again_over = self._cursor if self.is_mounted else None
        self._wanted = None
        known = view.host in self.engine.hosts
        self._host, self._gpus = (view.host, view.gpus or None) if known else (None, None)
        if self.is_mounted:
            self.plan_soon()

    # Profiles.

    @property
    def _cursor(self) -> str | None:
        return self.query_one("#profiles", RowList).cursor_key

    @property
    def entry(self) -> ProfileEntry | None:
        """What is looked at: a run of the past, else the profile under the cursor."""
        if self._again is not None:
            return self._again
        key = self._cursor
        return None if key is None else self._entries.get(key)

    def list_profiles(self) -> None:
        entries = sorted(
            self.engine.profiles(), key=lambda one: (one.origin == "shipped", one.name)
        )
        self._entries = {str(entry.path): entry for entry in entries}
        rows = self.query_one("#profiles", RowList)
        rows.show([ProfileRow(entry) for entry in entries])
        for entry in entries:
            if entry.name == self._wanted:
                rows.select(str(entry.path))
        self._wanted = None
        own = sum(entry.origin != "shipped" for entry in entries)
        words = _("profiles   {own} yours, {shipped} ready ones")
        if rows.inner_width < 34:
            words = _("{own} yours, {shipped} ready")
        rows.name_it(words.format(own=own, shipped=len(entries) - own))

    @on(RowList.Moved, "#profiles")
    def _other_profile(self) -> None:
        if self._again is not None and self._again_over == self._cursor:
            return
        if self._again_over is None:  # the list was just filled: nobody moved
            self._again_over = self._cursor
        else:
            self._again = None
        self.plan_soon()

    def plan_soon(self) -> None:
        self._plan, self._error, self._show_script = None, None, False
        self._busy = _("looking for room ...")
        if self._wait is not None:
            self._wait.stop()
        self._wait = self.set_timer(PLAN_AFTER_S, self.action_plan_again)
        self.show_plan()

    def action_plan_again(self) -> None:
        if self._wait is not None:
            self._wait.stop()
        if (entry := self.entry) is not None:
            self.run_worker(self._make_plan(entry), group="plan", exclusive=True)

    async def _make_plan(self, entry: ProfileEntry) -> None:
        again = entry is self._again
        self._toml = "" if again else await asyncio.to_thread(read_text, entry.path)
        hosts = () if self._host is None else (self._host,)
        try:
            if again:
                run = RunId(str(entry.path))
                plan = await self.engine.plan_again(run, hosts=hosts, gpus=self._gpus)
                self._toml = past_text(plan)
            else:
                plan = await self.engine.plan(str(entry.path), hosts=hosts, gpus=self._gpus)
        except CockpitError as error:
            self._plan, self._error = None, error
        else:
            self._plan, self._error = plan, None
        self._busy = ""
        self.show_plan()

    # What is shown.

    def show_plan(self) -> None:
        plan, entry = self._plan, self.entry
        pane = self.query_one("#plan", TextPane)
        draft = Draft(entry, self._plan, self._error, self._busy, self._toml, self._show_script)
        pane.show(draft_paras(draft))
        pane.name_it("" if entry is None else safe_line(entry.name), foot_words(draft, self._host))
        if plan is not None or self._error is not None:
            self._show_cards(plan)
        go = self.query_one("#go", Button)
        go.disabled = plan is None or plan.blocked
        words = go_words(plan)
        go.label = Content(words)
        go.styles.width = cell_len(words) + 4

    def _show_cards(self, plan: LaunchPlan | None) -> None:
        """The plan's cards; without one all that can be seen, so that one may pick another."""
        cards = self.query_one("#cards", RowList)
        chosen = (
            set() if plan is None else {(card.host, card.index, card.slice) for card in plan.cards}
        )
        shown = known_cards(self.engine) if plan is None else plan.candidates
        cells = min(28, max((len(f"{one.host}:{one.index}") for one in shown), default=8))
        rows = [
            CardRow(card, key in chosen, cells, *self._price(card.host))
            for card in shown
            for key in [(card.host, card.index, card.slice)]
        ]
        cards.show(rows, empty=_("this profile reserves no card"))
        cards.styles.height = max(3, min(len(rows) + 2, self.size.height // 3))

    def _price(self, host: HostName) -> tuple[float | None, str | None]:
        spec = self.engine.hosts.get(host)
        return (None, None) if spec is None else (spec.price_per_h, spec.currency)

    def undo_layer(self) -> bool:
        if self._show_script:
            self._show_script = False
            self.show_plan()
            return True
        if self._host is None and self._gpus is None and self._again is None:
            return False
        if self._host is None and self._gpus is None:
            self._again = None
        self._host = self._gpus = None
        self.plan_soon()
        return True

    # Moving on: profile, cards, plan, Go.

    @on(RowList.Opened, "#profiles")
    def _to_cards(self) -> None:
        cards = self.query_one("#cards", RowList)
        (cards if cards.row_count else self.query_one("#go", Button)).focus()

    @on(RowList.Opened, "#cards")
    def _to_go(self) -> None:
        go = self.query_one("#go", Button)
        (self.query_one("#plan", TextPane) if go.disabled else go).focus()

    def action_pick(self) -> None:
        """Take or leave the card under the cursor; cards of one host go together."""
        key, plan = self.query_one("#cards", RowList).cursor_key, self._plan
        if key is None:
            return
        host, _colon, index = key.rpartition(":")
        taken = () if plan is None else plan.cards
        chosen = {card.index for card in taken if card.host == host}
        chosen ^= {int(index)}
        self._host, self._gpus = HostName(host), tuple(sorted(chosen)) or None
        self.action_plan_again()

    @on(Button.Pressed, "#go")
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.action_go()

    def action_go(self) -> None:
        if self._plan is None or self._plan.blocked:
            self.notify(_("Not yet: see what speaks against it"), markup=False)
            return
        self.run_worker(self._launch(self._plan), group="launch", exclusive=True)

    async def _launch(self, plan: LaunchPlan) -> None:
        name = safe_line(plan.profile.name)
        if not await self.app.push_screen_wait(go_dialog(plan, name)):
            return
        self._busy = _("starting {name} on {host} ...").format(name=name, host=plan.host)
        self.query_one("#plan", TextPane).name_it(self._busy)
        try:
            run = await self.engine.launch(plan)
        except CockpitError as error:
            show_error(self.app, _("{name} was not started").format(name=name), error)
            return
        finally:
            self._busy = ""
            self.show_plan()
        open_run(self.app, run)

    def hear(self, event: Event) -> None:
        if isinstance(event, LaunchStep) and self._busy:
            words = f"{event.host}  {event.code.replace('_', ' ')}  {safe_line(event.text, 80)}"
            self.query_one("#plan", TextPane).name_it(words)
