"""One run: its log, the memory of its cards, what became of it, and what to do about its incident."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from cockpit.domain.incidents import Incident
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.domain.server_sample import ServerSample
from cockpit.domain.text import safe_line
from cockpit.engine.api import RunLog
from cockpit.engine.events import Event, IncidentChanged, LinkChanged, RunChanged
from cockpit.engine.fleet import history_key
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.screens.applying import apply_remedy
from cockpit.screens.base import CockpitScreen
from cockpit.screens.host_around import open_port
from cockpit.screens.navigation import open_incident
from cockpit.screens.run_actions import save_log, show_error, stop_run
from cockpit.screens.run_explained import explain_run
from cockpit.screens.run_facts import (
    earlier_incidents,
    empty_words,
    ending_words,
    facts_of,
    link_words,
    step_paras,
)
from cockpit.screens.run_fetch import fetch_results
from cockpit.screens.run_lines import lines_of, trouble_lines
from cockpit.screens.run_remark import write_remark
from cockpit.screens.terminal import lend_terminal
from cockpit.screens.whole_log import WholeLogScreen, search_whole_log
from cockpit.widgets.log_pane import LogPane
from cockpit.widgets.log_places import ByteAt
from cockpit.widgets.log_view import LogView
from cockpit.widgets.memory_chart import Band, MemoryChart, binned
from cockpit.widgets.run_header import RunHeader
from cockpit.widgets.run_incident import RunIncident
from cockpit.widgets.serving_words import serving_paras
from cockpit.widgets.text_pane import Para, TextPane

LOSSES_KEPT = 64
SIDE_NEEDS_CELLS = 100
TWO_ROWS_NEED = 28


class RunScreen(CockpitScreen):
    """Opens the run's log when it is shown first and lets go of it when it leaves."""

    MODE = "runs"
    CSS_PATH = "run.tcss"
    HINTS = (
        "log.follow", "log.search", "run.apply", "run.stop", "log.wrap", "log.save", "run.zoom",
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", _("apply"), id="run.apply", tooltip=_("The first remedy, after its diff")),
        Binding("x", "stop", _("stop"), id="run.stop", tooltip=_("Asks first, and says what follows")),
        Binding("R", "relaunch", _("relaunch"), id="run.relaunch", tooltip=_("As it was, on the Launch screen")),
        Binding("M", "remark", _("remark"), show=False, id="run.remark", tooltip=_("A line of yours about this run")),
        Binding("F", "fetch", _("fetch results"), show=False, id="run.fetch", tooltip=_("Results, as [fetch] says")),
        Binding("O", "whole_log", _("whole log"), show=False, id="run.whole", tooltip=_("Search all of it")),
        Binding("v", "visit", _("shell"), id="run.visit", tooltip=_("ssh to its host in this terminal")),
        Binding("b", "browse", _("open port"), id="run.browse", tooltip=_("Its forwarded port in the browser")),
        Binding("z", "zoom", _("zoom"), id="run.zoom", tooltip=_("The log alone, or all of it")),
        Binding("plus,equals_sign", "span(-1)", _("less time"), show=False, id="run.less_time"),
        Binding("minus", "span(1)", _("more time"), show=False, id="run.more_time"),
        Binding("left_square_bracket,comma", "sibling(-1)", _("run before"), show=False, id="run.before"),
        Binding("right_square_bracket,full_stop", "sibling(1)", _("next run"), show=False, id="run.next"),
    ]  # fmt: skip

    def __init__(self, run: RunId) -> None:
        super().__init__()
        self._run_id = run
        self._log: RunLog | None = None
        self._losses: deque[float] = deque(maxlen=LOSSES_KEPT)
        self._speeds: deque[float] = deque(maxlen=LOSSES_KEPT)
        self._speed_s: float | None = None
        self._drawn: tuple[object, ...] = ()
        self._earlier: list[Incident] = []

    @property
    def run_id(self) -> RunId:
        return self._run_id

    @property
    def view(self) -> RunView | None:
        return self.engine.runs.get(self._run_id)

    def compose_body(self) -> ComposeResult:
        yield RunHeader()
        with Horizontal(id="run-columns"):
            yield LogPane(_("log"), id="run-log", now_s=self.engine.wall_s)
            with Vertical(id="run-side"):
                yield MemoryChart()
                yield TextPane(_("server"), id="run-server")
                yield TextPane(_("state"), id="run-state")
        yield RunIncident()

    def on_mount(self) -> None:
        log_view = self.query_one(LogView)
        log_view.focus()
        try:
            self._log = self.engine.log(self._run_id)
        except CockpitError as error:
            show_error(self.app, safe_line(self._run_id), error)
            return
        view = self.view
        began_s = None if view is None else view.started_s
        log_view.show(self._log, None if view is None or began_s is None else view.here_s(began_s))
        self.run_worker(self._recall(), group="recall")

    async def _recall(self) -> None:
        self._earlier = await earlier_incidents(self.engine, self._run_id)
        self._drawn = ()
        self.pull()

    def on_unmount(self) -> None:
        if self._log is not None:
            self._log.close()

    def on_screen_resume(self) -> None:
        self.engine.focus(None if self.view is None else self.view.host)

    def on_screen_suspend(self) -> None:
        self.engine.focus(None)

    # What is shown.

    def pull(self) -> None:
        view = self.view
        if view is None or not self.size.width:
            return
        host = self.engine.fleet.hosts.get(view.host)
        loss = view.progress.loss
        if loss is not None and (not self._losses or self._losses[-1] != loss):
            self._losses.append(loss)
        if view.served is not None:
            self._note_speed(view.served)
        chart = self.query_one(MemoryChart)
        state = (
            view, int(self.engine.wall_s()), self.engine.incidents.version,
            None if host is None else host.version, chart.size, chart.span_s,
        )  # fmt: skip
        if state == self._drawn:
            return
        self._drawn = state
        self._show_run(view)
        self._show_chart(view)
        self._show_incident()

    def _note_speed(self, served: ServerSample) -> None:
        speed = served.gen_tokens_per_s
        if speed is not None and served.at_s != self._speed_s:
            self._speed_s = served.at_s
            self._speeds.append(speed)

    def hear(self, event: Event) -> None:
        if isinstance(event, RunChanged | IncidentChanged | LinkChanged):
            self.pull()
            if isinstance(event, IncidentChanged):
                self.query_one(LogView).frame()
                self.show_hints()

    def _show_run(self, view: RunView) -> None:
        self.query_one(RunHeader).show(facts_of(self.engine, view, tuple(self._losses)))
        paras = step_paras(self.engine, view, self.look, self._earlier)
        self.query_one("#run-state", TextPane).show(paras)
        self.set_class(view.served is not None, "-serving")
        if view.served is not None:
            words = serving_paras(view.served, self.look, tuple(self._speeds))
            self.query_one("#run-server", TextPane).show(words)
        self.query_one(LogView).set_words(
            ending=ending_words(view),
            link=link_words(self.engine, view),
            empty=empty_words(self.engine, view),
        )

    def _show_chart(self, view: RunView) -> None:
        chart = self.query_one(MemoryChart)
        host = self.engine.fleet.hosts.get(view.host)
        sample = None if host is None else host.latest
        if host is None or sample is None:
            chart.show((), note=_("no reading of {host} yet").format(host=view.host))
            return
        bands = [
            Band(
                gpu.index,
                gpu.mem_used_mib,
                gpu.mem_total_mib,
                binned(host.history.get(history_key(gpu)), chart.bins, chart.span_s),
            )
            for gpu in sample.gpus
            if gpu.index in view.gpus
        ]
        skew_s = sample.at_s - self.engine.wall_s()
        ago = [sample.at_s - (one.opened_s + skew_s) for one in self.incidents_of_run()]
        note = "" if bands else _("it reserves no card")
        chart.show(bands, [seconds for seconds in ago if 0 <= seconds < chart.span_s], note)

    def incidents_of_run(self) -> list[Incident]:
        return [one for one in self.engine.incidents.all() if one.run == self._run_id]

    @property
    def incident(self) -> Incident | None:
        """The one that matters most and is not settled."""
        live = self._live_incidents(self.incidents_of_run())
        return live[0] if live else None

    def _live_incidents(self, incidents: Sequence[Incident]) -> list[Incident]:
        """Neither settled nor muted."""
        states = ("open", "seen", "applied")
        return [one for one in incidents if one.state in states and not one.mute]

    def _show_incident(self) -> None:
        incidents = self.incidents_of_run()
        live = self._live_incidents(incidents)
        rows = 2 if self.size.height >= TWO_ROWS_NEED else 1
        self.query_one(RunIncident).show(
            live[0] if live else None, max(0, len(live) - 1), rows=rows
        )
        self.query_one(LogView).set_trouble(trouble_lines(incidents))

    def strip_incidents(self, incidents: Sequence[Incident]) -> Sequence[Incident]:
        """Ours have a line of their own here."""
        return [one for one in incidents if one.run != self._run_id]

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < SIDE_NEEDS_CELLS, "-narrow")
        self.call_after_refresh(self.pull)

    def explain(self) -> list[Para]:
        return [] if self.view is None else explain_run(self.engine, self.view)

    # Keys.

    def action_pause(self) -> None:
        super().action_pause()
        self.query_one(LogView).held = self._paused_s is not None

    def action_apply(self) -> None:
        if (incident := self.incident) is not None:
            self.run_worker(apply_remedy(self, incident), group="apply", exclusive=True)

    def action_stop(self) -> None:
        if (view := self.view) is not None:
            self.run_worker(stop_run(self, view), group="stop", exclusive=True)

    def action_relaunch(self) -> None:
        if (view := self.view) is not None:
            from cockpit.screens.launch import open_relaunch

            open_relaunch(self.app, view)

    def action_remark(self) -> None:
        if (view := self.view) is not None:
            self.run_worker(write_remark(self, view), group="remark", exclusive=True)

    def action_whole_log(self) -> None:
        if (view := self.view) is not None:
            work = search_whole_log(self, view.run, self.query_one(LogView).searched)
            self.run_worker(work, group="whole-log", exclusive=True)

    def action_fetch(self) -> None:
        if (view := self.view) is not None:
            fetch_results(self, view)

    def action_visit(self) -> None:
        if (view := self.view) is not None:
            try:
                why = lend_terminal(self.app, self.engine.shell_argv(view.host))
            except CockpitError as error:
                show_error(self.app, safe_line(view.host), error)
                return
            if why is not None:
                self.notify(safe_line(why), severity="warning", markup=False)

    def action_browse(self) -> None:
        view = self.view
        if view is None:
            return
        open_port(self, self.engine.around(view.run).forwards, view.profile)

    def action_zoom(self) -> None:
        self.toggle_class("-zoomed")

    def action_span(self, step: int) -> None:
        self.query_one(MemoryChart).more_time(step)
        self.pull()

    def action_sibling(self, step: int) -> None:
        runs = [view.run for view in self.engine.runs.all()]
        if self._run_id in runs and len(runs) > 1:
            place = (runs.index(self._run_id) + step) % len(runs)
            self.app.switch_screen(RunScreen(runs[place]))

    def undo_layer(self) -> bool:
        if self.query_one(LogPane).leave_prompt() or self.query_one(LogView).undo():
            return True
        zoomed = self.has_class("-zoomed")
        self.remove_class("-zoomed")
        return zoomed

    @on(LogView.EdgeReached)
    def _show_older(self, event: LogView.EdgeReached) -> None:
        if self.app.screen is self:  # a wheel turns on and on
            self.app.push_screen(WholeLogScreen(self._run_id, place=ByteAt(event.offset)))

    @on(LogView.PlaceAsked)
    def _show_place(self, event: LogView.PlaceAsked) -> None:
        self.app.push_screen(WholeLogScreen(self._run_id, place=event.place))

    @on(LogView.SaveAsked)
    def _save(self) -> None:
        if (view := self.view) is not None:
            self.run_worker(save_log(self, view), group="save", exclusive=True)

    @on(LogView.LineOpened)
    def _open_line(self, event: LogView.LineOpened) -> None:
        found = [one for one in self.incidents_of_run() if event.number in lines_of(one)]
        if found:
            open_incident(self.app, found[0].key)

    @on(RunIncident.Opened)
    def _open_incident_line(self, event: RunIncident.Opened) -> None:
        open_incident(self.app, event.key)

    def show_line(self, number: int) -> None:
        """Put this line of the log in view."""
        self.query_one(LogView).go_to_line(number)
