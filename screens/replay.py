"""The keys of a replay, on every screen: they come before those of the screen, and not before an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from cockpit.i18n import _
from cockpit.widgets.replay_line import ReplayFacts

if TYPE_CHECKING:
    from cockpit.engine.playback import Playback

STEP_S = 10.0


def _key(keys: str, action: str, label: str, tip: str, name: str = "") -> Binding:
    """One that comes before what a screen does with the same key."""
    tooltip = _("In a replay") + ": " + tip
    name = f"replay.{name or action}"
    return Binding(keys, f"replay_{action}", label, id=name, priority=True, tooltip=tooltip)


class ReplayKeys(App[str]):
    """Mixed into the app of a replay."""

    playback: Playback

    BINDINGS: ClassVar[list[BindingType]] = [
        _key("space", "pause", _("pause"), _("Stop, go on; from its end, begin anew")),
        _key("full_stop", "step(1)", _("10 s on"), _("Forward in time"), "forward"),
        _key("comma", "step(-1)", _("10 s back"), _("Back in time"), "back"),
        _key("plus,equals_sign", "speed(1)", _("faster"), _("Up to 64 times"), "faster"),
        _key("minus", "speed(-1)", _("slower"), _("Down to a quarter"), "slower"),
        _key("I", "incident", _("to the incident"), _("The moment at which it opened")),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action.startswith("replay_"):
            is_typing = isinstance(self.focused, Input | TextArea)
            return not is_typing and not isinstance(self.screen, ModalScreen)
        return super().check_action(action, parameters)

    def action_replay_pause(self) -> None:
        self.playback.toggle()
        self._look()

    def action_replay_step(self, way: int) -> None:
        self.playback.step(way * STEP_S)
        self._look()

    def action_replay_speed(self, way: int) -> None:
        self.playback.faster(way)
        self._look()

    def action_replay_incident(self) -> None:
        if self.playback.incident_s is None:
            self.notify(_("this recording was made for no incident"), markup=False)
        self.playback.to_incident()
        self._look()

    def _look(self) -> None:
        """What a key moved is seen at once, and not with the next pull."""
        self.run_worker(self._look_when_settled(), group="replay", exclusive=True)

    async def _look_when_settled(self) -> None:
        from cockpit.screens.base import CockpitScreen

        await self.playback.settled()
        if isinstance(self.screen, CockpitScreen):
            self.screen.look_again()


def replay_facts(playback: Playback) -> ReplayFacts:
    begin_s, incident_s = playback.begin_s, playback.incident_s
    return ReplayFacts(
        wall_s=int(playback.wall_s()),
        passed_s=int(playback.wall_s() - begin_s),
        span_s=int(playback.end_s - begin_s),
        speed=playback.speed,
        is_playing=playback.is_playing,
        is_over=playback.is_over,
        is_whole=playback.recording.is_whole,
        incident_s=None if incident_s is None else int(incident_s - begin_s),
    )
