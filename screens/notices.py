"""What the app says by itself: toasts for incidents, the keyboard's state, how to quit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from textual import events
from textual.app import App
from textual.notifications import SeverityLevel
from textual.widgets import Input, TextArea

from cockpit.domain.text import safe_line
from cockpit.engine.events import Event, IncidentChanged, LaunchStep, OwnTrouble, RunNoted
from cockpit.i18n import _
from cockpit.screens.keys import (
    all_binding_ids,
    checked_keymap,
    is_foreign_letter,
    normalised,
)
from cockpit.widgets.incident_strip import summary, where
from cockpit.widgets.toasts import ToastOrder, ToastRules

INTERRUPT_S = 2.0
_CONCERNS = frozenset(
    {
        "run_restart_given_up", "run_relaunch_failed", "run_log_not_trimmed", "run_ends_at_logout",
        "run_hook_failed", "run_hook_timeout",
    }
)  # fmt: skip
_RESULTS = frozenset({"fetched", "fetched_nothing", "fetch_failed"})


class Notices:
    """One for each app. Everything that it says was written by us or cleaned, and is never markup."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._rules = ToastRules()
        self._told_input_method = False
        self._fatal_shown = False
        self._interrupted_s = -INTERRUPT_S

    def hear(self, event: Event) -> None:
        if isinstance(event, OwnTrouble):
            self._trouble(event)
        if isinstance(event, LaunchStep) and event.code in _RESULTS:
            self._results(event)
        if isinstance(event, RunNoted):
            self._noted(event)
        if isinstance(event, IncidentChanged) and (order := self._rules.decide(event)):
            self._toast(order)

    def _trouble(self, event: OwnTrouble) -> None:
        from cockpit.i18n.messages import explain

        message = explain(event.code, event.facts)
        words = "\n".join(filter(None, (message.headline, message.body, *message.actions[:1])))
        lines = "\n".join(safe_line(line) for line in words.splitlines())
        self._app.notify(lines, severity="warning", markup=False)

    def _results(self, event: LaunchStep) -> None:
        """What was fetched of a run, or why it was not."""
        from cockpit.i18n.messages import explain

        words = explain(event.code, {"text": safe_line(event.text, 400)}).headline
        severity: SeverityLevel = "warning" if event.code == "fetch_failed" else "information"
        self._app.notify(words, title=event.run, severity=severity, markup=False)

    def _noted(self, noted: RunNoted) -> None:
        """What a host or we did for a run, or could not."""
        from cockpit.domain.run_notes import note_code, note_facts
        from cockpit.i18n.messages import explain

        code = note_code(noted.event)
        if code is None:
            return
        facts = {"run": noted.run, "host": noted.host, **note_facts(noted.event, None)}
        message = explain(code, facts)
        words = "\n".join(filter(None, (message.headline, *message.actions[:1])))
        lines = "\n".join(safe_line(line) for line in words.splitlines())
        severity: SeverityLevel = "warning" if code in _CONCERNS else "information"
        self._app.notify(lines, title=noted.run, severity=severity, markup=False)

    def _toast(self, order: ToastOrder) -> None:
        if order.kind == "more":
            title, text = "", _("{count} more; i shows them").format(count=order.count)
        elif order.kind == "storm":
            text = _("{count} incidents in 1 min; i shows them").format(count=order.count)
            title = ""
        else:
            title = f"{order.incident.family}  {where(order.incident)}"
            text = safe_line(summary(order.incident))
            if order.kind == "recovered":
                title += "  " + _("is over")
        self._fatal_shown = self._fatal_shown or order.severity == "error"
        self._app.notify(
            text, title=title, severity=order.severity, timeout=order.lasts_s, markup=False
        )

    def key(self, event: events.Key) -> events.Key:
        """A fatal toast stays until a key: this is one. Outside of inputs it is what was meant."""
        if self._fatal_shown:
            self._fatal_shown = False
            self._app.clear_notifications()
        if isinstance(self._app.focused, Input | TextArea):
            return event
        meant = normalised(event)
        if is_foreign_letter(meant):
            self._input_method_is_on()
        return meant

    def _input_method_is_on(self) -> None:
        if not self._told_input_method:
            self._told_input_method = True
            words = _("Your input method is on; keys need plain letters (Shift or Ctrl+Space).")
            self._app.notify(words, markup=False)

    def interrupt(self) -> None:
        """ctrl+c copies a selection; else it says how to quit, and quits on the second press."""
        selected = self._app.screen.get_selected_text()
        if selected:
            self._app.copy_to_clipboard(selected)
            return
        now_s = time.monotonic()
        if now_s - self._interrupted_s < INTERRUPT_S:
            self._app.exit()
        self._interrupted_s = now_s
        self._app.notify(_("ctrl+q quits, or ctrl+c again; runs go on."), markup=False)

    def apply_keymap(self, keys: Mapping[str, str]) -> None:
        """Take the user's `[keys]`, and say in words what could not be taken."""
        if not keys:
            return
        taken, problems = checked_keymap(keys, all_binding_ids())
        self._app.set_keymap(taken)
        if problems:
            self._app.notify("\n".join(problems[:4]), severity="warning", markup=False)
