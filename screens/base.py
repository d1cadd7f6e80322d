"""What every full screen shares: header, incident strip, key bar, one pull at 4 Hz, events at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Static

from cockpit.domain.incidents import Incident
from cockpit.domain.occupancy import Sums
from cockpit.i18n import _
from cockpit.screens.replay import replay_facts
from cockpit.widgets.footer_bar import FooterBar, KeyHint, mode_hints
from cockpit.widgets.header_line import HeaderFacts, HeaderLine
from cockpit.widgets.incident_strip import IncidentStrip
from cockpit.widgets.look import Look
from cockpit.widgets.options import UiOptions
from cockpit.widgets.replay_line import ReplayLine

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi
    from cockpit.engine.events import Event
    from cockpit.engine.playback import Playback
    from cockpit.widgets.text_pane import Para

PULL_S = 0.25
"""At most four repaints a second; an incident does not wait for them."""
LEAST_WIDTH, LEAST_HEIGHT = 60, 15


class Services(Protocol):
    """What the app offers to its screens."""

    @property
    def engine(self) -> EngineApi: ...

    @property
    def options(self) -> UiOptions: ...

    @property
    def look(self) -> Look: ...


def services(node: DOMNode) -> Services:
    """The app that `node` lives in, as far as screens may know it; dialogs use it too."""
    return cast("Services", node.app)


class TooSmall(Static):
    """What is shown instead of everything when nothing would be readable."""

    def __init__(self) -> None:
        super().__init__("", id="too-small", markup=False)


class CockpitScreen(Screen[None]):
    """A screen of one of the five modes. Subclasses give `compose_body`, `pull`, and maybe `hear`."""

    MODE: ClassVar[str] = "fleet"
    """The mode that the key bar marks as the present one."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply_top", _("apply"), id="apply", tooltip=_("The top incident's first remedy, after its diff")),
        Binding("p", "pause", _("pause"), id="pause", tooltip=_("Stop repainting; recording goes on")),
    ]  # fmt: skip
    HINTS: ClassVar[tuple[str, ...]] = ()
    """Ids of the bindings that the key bar shows, the most useful first."""

    def __init__(self) -> None:
        super().__init__()
        self._sums = Sums()
        self._summed_s: int | None = None
        self._paused_s: float | None = None

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        if self._playback is not None:
            yield ReplayLine()
        with Vertical(id="body"):
            yield from self.compose_body()
        yield IncidentStrip()
        yield FooterBar(mode_hints(), self.MODE)
        yield TooSmall()

    def compose_body(self) -> ComposeResult:
        yield from ()

    @property
    def engine(self) -> EngineApi:
        return services(self).engine

    @property
    def look(self) -> Look:
        return services(self).look

    @property
    def _playback(self) -> Playback | None:
        """What is moved in a replay; None where the hosts are real."""
        return getattr(self.engine, "replay", None)

    def look_again(self) -> None:
        """Time was moved: everything anew, paused or not."""
        self._summed_s = None
        self.show_frame()
        self.pull()

    def pull(self) -> None:
        """Take what changed from the stores. Called at most 4 times a second, only while current."""

    def hear(self, event: Event) -> None:
        """An edge, at once: an incident, a link or a run changed. Called only while current."""

    def undo_layer(self) -> bool:
        """Take back one layer inside this screen (a search, a filter); False when there is none."""
        return False

    def on_mount(self) -> None:
        self.set_interval(PULL_S, self._pull_if_current)

    def on_screen_resume(self) -> None:
        self._summed_s = None
        self.show_frame()
        self.pull()
        self.call_after_refresh(self.show_hints)

    @property
    def is_top(self) -> bool:
        """Nothing lies over it. Textual's `is_current` is true of the screen below as well, and a
        change down there repaints every cell of the one above."""
        return self.app.screen is self

    def _pull_if_current(self) -> None:
        if self.is_top:
            self.show_frame()
            if self._paused_s is None:
                self.pull()

    def engine_event(self, event: Event) -> None:
        """The app hands every event of the engine to the current screen."""
        if not self.is_mounted:
            return  # its widgets are not there yet; it pulls when it is shown
        self._summed_s = None
        self.show_frame()
        if self._paused_s is None:
            self.hear(event)

    def show_frame(self) -> None:
        """Bring header and strip up to date; both draw only when something differs."""
        incidents = self.engine.incidents.all()
        self.query_one(IncidentStrip).show(self.strip_incidents(incidents))
        second = int(self.engine.wall_s())
        if second != self._summed_s:
            self._sums, self._summed_s = fleet_sums(self.engine), second
        facts = header_facts(
            incidents, self._sums, second, self._pause_words() or self.header_note()
        )
        self.query_one(HeaderLine).show(facts)
        if self._playback is not None:
            self.query_one(ReplayLine).show(replay_facts(self._playback))

    def strip_incidents(self, incidents: Sequence[Incident]) -> Sequence[Incident]:
        """Those that the strip may show here; a screen that shows some itself leaves them out."""
        return incidents

    def _pause_words(self) -> str:
        if self._paused_s is None:
            return ""
        behind_s = int(self.engine.now_s() - self._paused_s)
        return _("PAUSED {behind}").format(behind=f"{behind_s // 60}:{behind_s % 60:02}")

    def action_pause(self) -> None:
        """Painting stops and says how far behind it is; samples and incidents go on being taken."""
        self._paused_s = self.engine.now_s() if self._paused_s is None else None
        self._pull_if_current()

    def explain(self) -> list[Para]:
        """What is under the cursor: each number, where it is from and how old it is. For help."""
        return []

    def header_note(self) -> str:
        """One short thing that a person must not forget while this screen is shown."""
        return services(self).options.note

    def show_hints(self) -> None:
        """Read the keys that are live from the bindings; call it when focus or state changes them."""
        live = {
            active.binding.id: active.binding
            for active in reversed(self.active_bindings.values())
            if active.binding.id and active.enabled
        }
        hints = [
            KeyHint(
                self.app.get_key_display(live[name]),
                small(live[name].description),
                live[name].action,
            )
            for name in self.HINTS
            if name in live
        ]
        helping = KeyHint("?", _("help"), "app.help")
        self.query_one(FooterBar).show(hints, helping)

    @on(FooterBar.Pressed)
    async def _run_hint(self, event: FooterBar.Pressed) -> None:
        await self.run_action(event.action)

    @on(IncidentStrip.Opened)
    def _open_incident(self, event: IncidentStrip.Opened) -> None:
        from cockpit.screens.navigation import open_incident

        open_incident(self.app, event.key)

    @work(exclusive=True, group="apply")
    async def action_apply_top(self) -> None:
        """What the strip offers with `a`: nothing starts before its own dialog."""
        from cockpit.screens.applying import apply_remedy

        shown = self.query_one(IncidentStrip).incidents
        offered = next((one for one in shown if any(r.patch for r in one.finding.remedies)), None)
        if offered is None:
            self.app.notify(_("no incident here offers a change"), timeout=3, markup=False)
        else:
            await apply_remedy(self, offered)

    def on_descendant_focus(self) -> None:
        if self.is_top:
            self.call_after_refresh(self.show_hints)

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        small = width < LEAST_WIDTH or height < LEAST_HEIGHT
        self.set_class(small, "-too-small")
        if small:
            words = _(
                "cockpit needs {least_width}x{least_height} cells; this window has {width}x{height}."
            )
            words = words.format(
                least_width=LEAST_WIDTH, least_height=LEAST_HEIGHT, width=width, height=height
            )
            self.query_one(TooSmall).update(
                f"{words}\n" + _("Make it larger; q quits, runs go on.")
            )


def small(words: str) -> str:
    """A label as the key bar and the help write it: without a capital at its start."""
    return words[:1].lower() + words[1:]


def header_facts(incidents: Sequence[Incident], sums: Sums, wall_s: int, note: str) -> HeaderFacts:
    """The header's numbers out of the stores."""
    open_ones = [one for one in incidents if one.is_loud]
    muted = [one for one in incidents if one.mute and one.state in ("open", "applied")]
    return HeaderFacts(
        sums=sums,
        fatal=sum(one.severity == "fatal" for one in open_ones),
        warnings=sum(one.severity == "warning" for one in open_ones),
        wall_s=wall_s,
        note=note,
        muted=sum(one.severity != "notice" for one in muted),
    )


def fleet_sums(engine: EngineApi) -> Sums:
    """Totals over every host; 800 cards take about a millisecond."""
    sums = Sums(hosts=len(engine.fleet.hosts))
    for name, state in engine.fleet.hosts.items():
        spec = engine.hosts.get(name)
        price, currency = (spec.price_per_h, spec.currency) if spec else (None, None)
        sums.live_hosts += state.link in ("live", "degraded")
        if state.latest is None:
            sums.add_unseen(price, currency)
        else:
            sums.add(state.latest, price, currency)
    return sums
