"""Sentences about what a host notes of a run, and about what a stop could not give back."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

RUN_NOTE_ENTRIES: Final[dict[str, Entry]] = {
    "run_started_again": Entry(
        (_("Attempt {attempt} has begun."), _("Another attempt has begun."))
    ),
    "run_restart_due": Entry(
        (
            _("Restart {restart} of {restarts} in {in}."),
            _("It is started again in {in}."),
            _("It is started again soon."),
        ),
        (_("{ended}"),),
    ),
    "run_attempt_ended": Entry(
        (
            _("The last attempt ended with code {code}."),
            _("Signal {signal} ended the last attempt."),
        )
    ),
    "run_restart_given_up": Entry(
        (_("It is not started again ({why})."), _("It is not started again.")),
    ),
    "run_hook_failed": Entry(
        (_("The hook `{hook}` ended with code {code}; the run's own code stands."),)
    ),
    "run_hook_timeout": Entry((_("The hook `{hook}` took longer than {limit} and was ended."),)),
    "run_adopted": Entry((_("Its supervisor had died; it has a new one."),)),
    "run_relaunched": Entry(
        (_("{host} had restarted; attempt {attempt} of {run} was started there."),)
    ),
    "run_relaunch_failed": Entry(
        (
            _("{host} had restarted, and {run} could not be started again."),
            _("It could not be started again."),
        ),
        (_("{detail}"),),
    ),
    "run_disk_low": Entry(
        (
            _("Only {free} is left on the disk of {path}."),
            _("Hardly any room is left on a disk of the run."),
        ),
    ),
    "run_disk_ok": Entry((_("There is room again on the disk of {path}: {free}."),)),
    "run_log_not_trimmed": Entry(
        (
            _(
                "The log is near its limit of {limit}, and this file system takes no part of it back."
            ),
        ),
        (_("Nothing of it is deleted; it may fill the disk."),),
    ),
    "run_caches_moved": Entry(
        (
            _(
                "Caches of models and kernels go to {path}: the home has little room, or takes nothing."
            ),
        )
    ),
    "run_activation_failed": Entry(
        (_("The activation scripts of the conda environment failed, or did not end in time."),),
        (_("The run goes on with the environment's own folders in front of PATH."),),
    ),
    "run_ends_at_logout": Entry(
        (
            _("{host} ends what a user runs when the last login ends (KillUserProcesses=yes)."),
            _("This host ends what a user runs when the last login ends."),
        ),
        (),
        (_("On the host: `loginctl enable-linger`, then start the run again."),),
    ),
    "run_memory_held": Entry(
        (
            _("{memory} still held on GPU {gpu}, though nothing of the run is left."),
            _("Memory of its cards is still held, though nothing of the run is left."),
        ),
        (),
        (
            _(
                "Look for its owner on the host's screen; what no process owns, only a restart gives back."
            ),
        ),
    ),
    "run_unkillable": Entry(
        (
            _("{count} of its processes hang in the kernel, where no signal reaches them: {pids}."),
            _("A process of it hangs in the kernel, where no signal reaches it."),
        ),
        (),
        (_("Restart the host, or stop and start the container from the platform's page."),),
    ),
}
