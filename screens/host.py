"""One host in full: its cards over time, who uses them, its disks, its driver and our link to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from cockpit.domain.models import GpuSample, HostName, HostSample, ProcessSample
from cockpit.domain.text import safe_line
from cockpit.engine.fleet import HostState, history_key
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.screens.base import CockpitScreen, services
from cockpit.screens.dialogs import Choice, ChoiceMenu
from cockpit.screens.fleet_data import FleetData
from cockpit.screens.host_actions import HostActions
from cockpit.screens.host_around import around_paras, open_port
from cockpit.screens.host_facts import fact_paras
from cockpit.screens.navigation import open_run
from cockpit.screens.process_rows import ProcessRow, process_columns, process_rows
from cockpit.widgets.chart_grid import CardSeries, ChartData, ChartGrid, Mark, Span
from cockpit.widgets.facts_pane import FactsPane
from cockpit.widgets.host_pane import HostFace, host_title
from cockpit.widgets.one_line import OneLine
from cockpit.widgets.row_list import RowList

if TYPE_CHECKING:
    from cockpit.engine.events import Event

SIGNALS = (("i", "INT"), ("t", "TERM"), ("k", "KILL"))


class HostScreen(HostActions, CockpitScreen):
    """Samples come at 2 Hz while it is looked at."""

    MODE = "fleet"
    CSS_PATH = "host.tcss"
    HINTS = (
        "host.open_run", "host.visit", "host.launch", "host.stop", "host.pane", "host.larger",
        "host.sibling", "host.trust", "back",
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket,comma", "sibling(-1)", _("previous host"), id="host.previous", show=False),
        Binding("right_square_bracket,full_stop", "sibling(1)", _("next host"), id="host.sibling"),
        Binding("plus,equals_sign", "zoom(1)", _("shorter span"), id="host.larger", tooltip=_("1, 5 or 15 minutes")),
        Binding("minus", "zoom(-1)", _("longer span"), id="host.smaller", show=False),
        Binding("z", "zoom_pane", _("zoom"), id="zoom", show=False, tooltip=_("This pane alone")),
        Binding("x", "signal", _("signal"), id="host.stop", tooltip=_("INT, TERM or KILL, after a dialog")),
        Binding("tab", "next_pane(1)", _("next pane"), id="host.pane", tooltip=_("Charts, processes, facts")),
        Binding("shift+tab", "next_pane(-1)", _("previous pane"), id="host.pane_back", show=False),
        Binding("enter", "open_run", _("open run"), id="host.open_run", show=False),
        Binding("b", "browse", _("open port"), id="host.browse", show=False, tooltip=_("Its port in the browser")),
    ]  # fmt: skip

    def __init__(self, host: HostName) -> None:
        super().__init__()
        self._host_name = host
        self._seen: object = None

    def compose_body(self) -> ComposeResult:
        yield OneLine(id="host-title")
        yield ChartGrid()
        with Horizontal(id="lower"):
            yield RowList(
                _("processes on the cards"), empty=_("No process on any card."), id="processes"
            )
            yield FactsPane(_("host and link"), id="facts")

    def on_mount(self) -> None:
        self.query_one("#processes").focus()

    def on_screen_resume(self) -> None:
        self.engine.focus(self._host_name)

    def on_screen_suspend(self) -> None:
        self.engine.focus(None)

    @property
    def state(self) -> HostState | None:
        return self.engine.fleet.hosts.get(self._host_name)

    def cursor_place(self) -> tuple[HostName, int | None] | None:
        row = self._process()
        return self._host_name, None if row is None else row.gpu

    # -- data to widgets -------------------------------------------------------------------------

    def pull(self) -> None:
        state = self.state
        if state is None:
            self.action_gone()
            return
        now_s = self.engine.now_s()
        stores = (self.engine.runs.version, self.engine.incidents.version)
        table_width = self.query_one("#processes", RowList).inner_width
        age = 0 if state.link == "live" else int(now_s)
        seen = (state.version, stores, self.size, table_width, age, id(self.look))
        if seen == self._seen:
            return
        self._seen = seen
        face = self._face(state)
        self.query_one("#host-title", OneLine).show(host_title(face, self.size.width, self.look))
        self._show_charts(state, face)
        self._show_processes(state)
        paras = fact_paras(state, self.engine.hosts.get(self._host_name), now_s)
        paras += around_paras(self.engine, self._host_name)
        self.query_one("#facts", FactsPane).show(paras)

    def action_browse(self) -> None:
        open_port(self, self.engine.host_forwards(self._host_name), self._host_name)

    def action_gone(self) -> None:
        """The host was removed while it was looked at."""
        if self.is_top and len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def hear(self, event: Event) -> None:
        self.pull()

    def _face(self, state: HostState) -> HostFace:
        data = FleetData(self.engine)
        return data.face(state.host)

    def _show_charts(self, state: HostState, face: HostFace) -> None:
        latest = state.latest
        charts = self.query_one(ChartGrid)
        charts.name_it(_("utilisation, 0 to 100 %, and memory, 0 to the card's own"))
        if latest is None:
            charts.show(ChartData())
            return
        charts.show(
            ChartData(
                tuple(self._series(gpu, state) for gpu in latest.gpus),
                latest.at_s,
                self._marks(latest),
                self._spans(latest),
                old=face.old,
                braille=services(self).options.charts == "braille",
            )
        )

    def _series(self, gpu: GpuSample, state: HostState) -> CardSeries:
        return CardSeries(gpu, state.history.get(history_key(gpu)), state.version)

    def _skew_s(self, latest: HostSample) -> float:
        """What to add to our clock to get the host's: charts are on the host's."""
        return latest.at_s - self.engine.wall_s()

    def _marks(self, latest: HostSample) -> tuple[Mark, ...]:
        skew_s = self._skew_s(latest)
        return tuple(
            Mark(one.opened_s + skew_s, one.severity)
            for one in self.engine.incidents.all()
            if one.host == self._host_name and one.state != "closed"
        )

    def _spans(self, latest: HostSample) -> tuple[Span, ...]:
        skew_s = self._skew_s(latest)
        return tuple(
            Span(run.started_s + skew_s, run.ended_s + skew_s if run.ended_s else None, run.profile)
            for run in self.engine.runs.all()
            if run.host == self._host_name and run.started_s is not None
        )

    def _show_processes(self, state: HostState) -> None:
        table = self.query_one("#processes", RowList)
        gpus = state.latest.gpus if state.latest is not None else ()
        names = {run.run: run.profile for run in self.engine.runs.all()}
        table.show_columns(process_columns(table.inner_width))
        table.show(process_rows(gpus, names))
        ages = [gpu.processes_age_s for gpu in gpus if gpu.processes_age_s is not None]
        foot = _("read {age:.0f} s ago").format(age=max(ages)) if ages and max(ages) >= 1 else ""
        table.name_it(_("processes on the cards"), foot)

    # -- what one can do -------------------------------------------------------------------------

    def _process(self) -> ProcessRow | None:
        table = self.query_one("#processes", RowList)
        state = self.state
        gpus = state.latest.gpus if state is not None and state.latest is not None else ()
        rows = process_rows(gpus, {})
        return next((row for row in rows if row.key == table.cursor_key), None)

    def action_zoom(self, step: int) -> None:
        self.query_one(ChartGrid).zoom(step)

    def action_zoom_pane(self) -> None:
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            self.maximize(self.focused)

    def action_next_pane(self, step: int) -> None:
        """In a narrow window processes and facts take turns in one place."""
        panes = [self.query_one(name) for name in ("#charts", "#processes", "#facts")]
        here = next((n for n, pane in enumerate(panes) if pane.has_focus), 1)
        chosen = panes[(here + step) % len(panes)]
        self.set_class(chosen.id == "facts", "-facts")
        self.call_after_refresh(chosen.focus)

    def on_resize(self) -> None:
        self.set_class(self.size.width < 100, "-narrow")
        self.call_after_refresh(self.pull)

    def action_sibling(self, step: int) -> None:
        names = list(self.engine.fleet.hosts)
        place = names.index(self._host_name) + step
        self._host_name = names[place % len(names)]
        self._seen = None
        self.engine.focus(self._host_name)
        self.pull()

    @on(RowList.Opened)
    def _opened(self) -> None:
        self.action_open_run()

    def action_open_run(self) -> None:
        row = self._process()
        if row is not None and row.process.run is not None:
            open_run(self.app, row.process.run)

    @work(exclusive=True, group="menu")
    async def action_signal(self) -> None:
        """The signal is chosen in the dialog, Cancel first; a pid of another namespace is never signalled."""
        row = self._process()
        if row is None:
            return
        process = row.process
        if not process.visible or process.started_ticks is None:
            words = _("pid {pid} is not in this container: it cannot be signalled from here")
            self.app.notify(words.format(pid=process.pid), severity="warning", markup=False)
            return
        answer = await self.app.push_screen_wait(
            ChoiceMenu(
                _("Signal {name}, pid {pid}?").format(name=_named(process), pid=process.pid),
                _signal_choices(),
                current="c",
                body=_on_what(row, self._host_name),
            )
        )
        name = dict(SIGNALS).get(answer or "")
        if name is None:
            return
        try:
            await self.engine.signal_process(
                self._host_name, process.pid, process.started_ticks, name
            )
        except CockpitError as error:
            self._explain(error.code, dict(error.facts), title=_named(process))


def _named(process: ProcessSample) -> str:
    return safe_line(process.name or "?", 40)


def _on_what(row: ProcessRow, host: HostName) -> str:
    words = _("{user} on {host}, GPU {gpu}: {command}")
    return words.format(
        user=safe_line(row.process.user or "?", 30),
        host=safe_line(host, 60),
        gpu=row.gpu,
        command=safe_line(row.process.command or row.process.name or "", 120),
    )


def _signal_choices() -> list[Choice]:
    return [
        Choice("c", _("Cancel: send nothing")),
        Choice("i", "INT", _("as ctrl+c would; it may save and end")),
        Choice("t", "TERM", _("asked to end; it may clean up")),
        Choice("k", "KILL", _("ends at once; nothing is saved")),
    ]
