"""What the Launch screen does with the profile that is looked at: copy it, edit it, copy its command."""

from __future__ import annotations

from cockpit.engine.api import LaunchPlan, ProfileEntry
from cockpit.i18n import _
from cockpit.screens.base import CockpitScreen
from cockpit.screens.launch_files import copy_profile, edit_file
from cockpit.widgets.row_list import RowList
from cockpit.widgets.text_pane import TextPane


class ProfileActions(CockpitScreen):
    """Keys of the Launch screen that are about one profile, or about what a run of the past had."""

    def __init__(self) -> None:
        super().__init__()
        self._plan: LaunchPlan | None = None
        self._again: ProfileEntry | None = None
        """A run of the past in place of a profile; its path is its id."""
        self._toml = ""
        self._show_script = False

    @property
    def entry(self) -> ProfileEntry | None:
        raise NotImplementedError

    def list_profiles(self) -> None:
        raise NotImplementedError

    def plan_soon(self) -> None:
        raise NotImplementedError

    def show_plan(self) -> None:
        raise NotImplementedError

    def action_script(self) -> None:
        if self._plan is not None:
            self._show_script = not self._show_script
            pane = self.query_one("#plan", TextPane)
            self.show_plan()
            pane.scroll_rows(-pane.row_count)
            pane.focus()

    def action_copy_command(self) -> None:
        if (plan := self._plan) is not None:
            self.app.copy_to_clipboard(plan.script)
            self.notify(
                _("Copied the script that {host} would run").format(host=plan.host), markup=False
            )

    def action_copy_profile(self) -> None:
        if (entry := self.entry) is not None:
            self.run_worker(self._copied(entry), group="copy", exclusive=True)

    async def _copied(self, entry: ProfileEntry) -> None:
        target = await copy_profile(self, entry, self._toml if entry is self._again else None)
        if target is not None:
            self._again = None
            self.list_profiles()
            self.query_one("#profiles", RowList).select(str(target))

    def action_edit(self) -> None:
        entry = self.entry
        if entry is not None and entry is self._again:
            self.notify(_("C makes a profile of it that is yours"), markup=False)
        elif entry is not None and edit_file(self, entry.path, shipped=entry.origin == "shipped"):
            self.list_profiles()
            self.plan_soon()
