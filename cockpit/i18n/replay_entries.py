"""Sentences about recordings and their replay."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

REPLAY_ENTRIES: Final[dict[str, Entry]] = {
    "recording_failed": Entry(
        (
            _("The time around an incident could not be recorded in {path}: {why}."),
            _("The time around an incident could not be recorded."),
        ),
        (_("Everything else goes on."),),
        (_("Give the disk room, or set record to off in settings.toml."),),
    ),
    "recording_bad": Entry(
        (
            _("{file}, line {line}: {why}."),
            _("{file} cannot be replayed: {why}."),
            _("This recording cannot be replayed."),
        ),
    ),
    "recording_unreadable": Entry(
        (_("{file} cannot be read: {why}."), _("The recording cannot be read.")),
        (),
        (
            _(
                "Recordings are in the folder recordings of COCKPIT_HOME; a name alone is looked up there."
            ),
        ),
    ),
    "replay_only": Entry(
        (_("This is a replay: nothing was done."),),
        (_("What is shown is a recording; no host is connected."),),
    ),
}
