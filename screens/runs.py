"""The list of runs: what goes, what ended and how, one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from cockpit.domain.filter_fields import FilterRow
from cockpit.domain.filter_nodes import Filter
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.engine.events import Event, RunChanged
from cockpit.i18n import _, ngettext
from cockpit.screens.base import CockpitScreen, services
from cockpit.screens.dialogs import Choice, ChoiceMenu
from cockpit.screens.filter_words import read_typed
from cockpit.screens.navigation import open_run
from cockpit.screens.run_actions import stop_run
from cockpit.screens.run_remark import write_remark
from cockpit.widgets.filter_bar import FilterBar, FilterInput
from cockpit.widgets.row_list import RowList
from cockpit.widgets.run_row import Columns, RunRow
from cockpit.widgets.run_words import STATE_ORDER, elapsed_s, failed, place_text, state_word

SortKey = Callable[[RunView, float], object]
_SORTS: dict[str, tuple[str, SortKey]] = {
    "t": (_("newest first"), lambda view, now_s: -(view.started_s or now_s)),
    "s": (_("by state, trouble first"), lambda view, now_s: (not failed(view), STATE_ORDER.index(view.state))),
    "n": (_("by profile"), lambda view, now_s: view.profile),
    "h": (_("by host"), lambda view, now_s: (view.host, view.gpus)),
    "d": (_("longest first"), lambda view, now_s: -(elapsed_s(view, now_s) or 0)),
}  # fmt: skip


def matches(view: RunView, wanted: Filter, wall_s: float = 0.0) -> bool:
    """Plain words are looked for in the run's names, host, state, tags and remark."""
    words = (view.profile, place_text(view), view.kind, view.state, state_word(view), view.remark)
    row = FilterRow(
        view.host,
        "unreachable" if view.state in ("lost", "unreachable") else "live",
        tags=view.tags,
        run=view.run,
        view=view,
        words=words,
        took_s=elapsed_s(view, wall_s),
    )
    return wanted.truth(row) is True


class RunsScreen(CockpitScreen):
    """Enter opens a run's log; finished ones stay in the list until the engine forgets them."""

    MODE = "runs"
    CSS_PATH = "lists.tcss"
    HINTS = ("list.open", "run.launch", "run.stop", "runs.filter", "runs.sort")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", _("filter"), id="runs.filter", tooltip=_("Words, tag:sft, took>2h, -done")),
        Binding("s", "sort", _("sort"), id="runs.sort"),
        Binding("x", "stop", _("stop"), id="run.stop", tooltip=_("Asks first, and says what follows")),
        Binding("R", "relaunch", _("relaunch"), id="run.relaunch", tooltip=_("As it was, on the Launch screen")),
        Binding("M", "remark", _("remark"), id="run.remark", tooltip=_("A line of yours about this run")),
        Binding("y", "copy", _("copy id"), show=False, id="run.copy"),
        Binding("l", "app.mode('launch')", _("launch"), show=False, id="run.launch"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._sort = "t"
        self._reversed = False
        self._filter = ""
        self._wanted = Filter()
        self._drawn: tuple[object, ...] = ()

    def compose_body(self) -> ComposeResult:
        yield RowList(_("runs"), id="runs")
        yield FilterBar()

    def on_mount(self) -> None:
        self.query_one(FilterInput).placeholder = _(
            "qwen running tag:sft took>2h; -done leaves out"
        )
        self.query_one(RowList).focus()

    def pull(self) -> None:
        rows = self.query_one(RowList)
        wall_s = int(self.engine.wall_s())
        state = (
            self.engine.runs.version,
            wall_s,
            self._sort,
            self._reversed,
            self._filter,
            self._wanted,
            rows.size,
        )
        if state == self._drawn:
            return
        self._drawn = state
        views = self.engine.runs.all()
        shown = [view for view in views if matches(view, self._wanted, wall_s)]
        shown.sort(key=lambda view: _SORTS[self._sort][1](view, wall_s), reverse=self._reversed)  # type: ignore[arg-type, return-value]
        rows.show_columns(Columns.at(rows.inner_width).names())
        rows.show([RunRow.of(view, wall_s) for view in shown], empty=self._empty_words(len(views)))
        rows.name_it(self._title_words(len(shown), len(views)))

    def hear(self, event: Event) -> None:
        if isinstance(event, RunChanged):
            self.pull()

    def _empty_words(self, total: int) -> str:
        if total:
            words = _("No run fits {filter}. esc shows all {total}.")
            return words.format(filter=self._filter, total=total)
        return _(
            "Nothing was started from here yet. l starts a profile; processes that others started "
            "are on the host's screen."
        )

    def _title_words(self, shown: int, total: int) -> str:
        count = ngettext("{n} run", "{n} runs", total).format(n=total)
        if self._filter:
            count = _("{shown} of {total} runs fit {filter}").format(
                shown=shown, total=total, filter=self._filter[:30]
            )
        order = _SORTS[self._sort][0] + (_(", turned round") if self._reversed else "")
        return f"{count}  {order}" if total else _("runs")

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.pull)

    @property
    def _here(self) -> RunView | None:
        key = self.query_one(RowList).cursor_key
        return None if key is None else self.engine.runs.get(RunId(key))

    @on(RowList.Opened)
    def _open(self, event: RowList.Opened) -> None:
        open_run(self.app, RunId(event.key))

    def action_stop(self) -> None:
        if (view := self._here) is not None:
            self.run_worker(stop_run(self, view), group="stop", exclusive=True)

    def action_relaunch(self) -> None:
        if (view := self._here) is not None:
            from cockpit.screens.launch import open_relaunch

            open_relaunch(self.app, view)

    def action_remark(self) -> None:
        if (view := self._here) is not None:
            self.run_worker(write_remark(self, view), group="remark", exclusive=True)

    def action_copy(self) -> None:
        if (view := self._here) is not None:
            self.app.copy_to_clipboard(view.run)
            self.notify(_("Copied {what}").format(what=view.run), markup=False)

    # Sorting and filtering.

    def action_sort(self) -> None:
        choices = [Choice(key, words) for key, (words, _key) in _SORTS.items()]
        menu = ChoiceMenu(
            _("Sort runs"),
            choices,
            current=self._sort,
            body=_("The same letter again turns it round."),
        )
        self.app.push_screen(menu, self._sorted)

    def _sorted(self, key: str | None) -> None:
        if key is None:
            return
        self._reversed = key == self._sort and not self._reversed
        self._sort = key
        self.pull()

    def action_filter(self) -> None:
        bar = self.query_one(FilterBar)
        bar.text = self._filter
        bar.open()

    @on(FilterBar.Typed)
    def _typed(self, event: FilterBar.Typed) -> None:
        """The last filter that could be read stays in force while one types."""
        saved = services(self).options.filters
        found = read_typed(self.query_one(FilterBar), event.text, saved)
        if found is not None:
            self._wanted, self._filter = found, event.text.strip()
            self.pull()

    @on(FilterBar.Accepted)
    def _accepted(self) -> None:
        self.query_one(FilterBar).close()
        self.query_one(RowList).focus()

    @on(FilterBar.Left)
    def _left(self) -> None:
        self.undo_layer()

    def undo_layer(self) -> bool:
        """The filter, open or kept."""
        bar = self.query_one(FilterBar)
        if not self._filter and not bar.is_open:
            return False
        self._filter = bar.text = ""
        self._wanted = Filter()
        bar.close()
        self.query_one(RowList).focus()
        self.pull()
        return True
