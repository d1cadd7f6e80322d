"""Keys that come faster than a prompt can open: they belong to the prompt, not to the bindings.

A key reaches its binding only after it went up through every parent, and the next keys of the same
burst (a slow link, a paste) are by then on their way to the widget that had the focus before.
"""

from __future__ import annotations

from textual import events
from textual.widget import Widget


class TypeAhead(Widget):
    """A widget some of whose keys open a prompt elsewhere; it gives what came too early to it."""

    ASKING_ACTION = "ask"
    """Keys whose action begins with this open the prompt."""

    _ahead: str | None = None

    def typed_ahead(self, text: str) -> None:
        """What was typed before the prompt had the focus; a newline is enter."""
        raise NotImplementedError

    def _opens_prompt(self, key: str) -> bool:
        found = self._bindings.key_to_bindings.get(key, [])
        return any(binding.action.startswith(self.ASKING_ACTION) for binding in found)

    def on_key(self, event: events.Key) -> None:
        if self._ahead is None:
            self._ahead = "" if self._opens_prompt(event.key) else None
            return
        if event.is_printable and event.character is not None:
            self._ahead += event.character
        elif event.key == "enter":
            self._ahead += "\n"
        elif event.key == "backspace":
            self._ahead = self._ahead[:-1]
        else:
            return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        """Every key that was sent here came before this."""
        ahead, self._ahead = self._ahead, None
        if ahead:
            self.typed_ahead(ahead)

    def on_focus(self) -> None:
        self._ahead = None
