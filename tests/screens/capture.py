"""The app with its output caught: what a real terminal would be sent, byte for byte."""

from __future__ import annotations

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.screen import Screen

from cockpit.app import CockpitApp


class CapturingApp(CockpitApp):
    """Keeps every update as text in `written`."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.written: list[str] = []

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate) and not self._batch_count:
            self.written.append(renderable.render_segments(self.console))
        super()._display(screen, renderable)

    def take(self) -> str:
        """What was written since the last call."""
        text = "".join(self.written)
        self.written.clear()
        return text
