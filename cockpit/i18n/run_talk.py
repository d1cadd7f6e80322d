"""What `cockpit run`, `attach`, `wait`, `logs` and `stop` say beside the job's output."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

_GOES_ON: Final = _("It goes on.")
_LEAVES: Final = _("`cockpit attach {run}` follows it, `cockpit stop {run}` ends it.")

RUN_TALK: Final[dict[str, Entry]] = {
    "run_starting": Entry((_("Starting {profile} on {host}, run {run}."), _("Starting."))),
    "run_queued": Entry(
        (
            _(
                "Waiting on {host} for free cards, number {position} in the queue; it starts by itself."
            ),
            _("Waiting on {host} for free cards; it starts by itself."),
            _("Waiting for free cards."),
        ),
        (_("Held: {holders}."),),
    ),
    "run_started": Entry((_("Started on {host}, GPU {gpus}."), _("Started on {host}."))),
    "run_ready": Entry((_("{profile} is ready."), _("It is ready."))),
    "run_stopping": Entry(
        (_("Stopping {run}: it has its time to save. ctrl+c again leaves it to that."),)
    ),
    "run_exited": Entry(
        (_("{profile} on {host} ended with code {code}."), _("It ended.")),
        (_("Still there of it: pid {left}."),),
    ),
    "run_signalled": Entry(
        (_("Signal {signal} ended {profile} on {host}."), _("A signal ended it.")),
        (_("Still there of it: pid {left}."),),
    ),
    "run_not_known": Entry(
        (
            _("{profile} on {host} is over, without a code of its own."),
            _("It is over, without a code of its own."),
        ),
        (_("Still there of it: pid {left}."),),
    ),
    "run_left": Entry((_("{run} goes on, on {host}."), _GOES_ON), (_LEAVES,)),
    "run_left_stopping": Entry(
        (
            _("{run} was told to stop, and has its time to save on {host}."),
            _("It was told to stop."),
        ),
        (_("`cockpit attach {run}` follows it, `cockpit wait {run}` waits for its end."),),
    ),
    "run_left_starting": Entry(
        (_("Whether {run} started on {host} is not known: `cockpit ps` tells."),)
    ),
    "run_link_lost": Entry(
        (_("The connection to {host} is gone; the run is not touched."),),
        (_("Its log goes on where it stopped, as soon as {host} answers."),),
    ),
    "run_link_restored": Entry((_("{host} answers again."),)),
    "run_stopped": Entry(
        (
            _("Nothing of {run} is left; it was sent {signals}."),
            _("Nothing of {run} is left."),
            _("Nothing of the run is left."),
        )
    ),
    "run_namesakes": Entry(
        (
            _("Not stopped, older runs of {profile} that go on: {runs}."),
            _("Older runs of it go on."),
        )
    ),
    "run_stop_incomplete": Entry(
        (
            _("Something of {run} is still there after {signals}."),
            _("Something of {run} is still there."),
            _("Something of the run is still there."),
        ),
        (_("A process that SIGKILL does not end hangs in the driver: restart the instance."),),
    ),
    "no_runs": Entry((_("No runs."),), (), (_("`cockpit run PROFILE` starts one."),)),
    "log_hole": Entry(
        (
            _("Bytes {start} to {end} of the log are not on the host any more."),
            _("A part of the log is not on the host any more."),
        ),
        (_("[log] max says how much of it is kept."),),
    ),
    "log_truncated": Entry((_("The job cut its log to nothing; what follows is new."),)),
    "log_from_copy": Entry(
        (_("This is the copy of {run} on this computer, up to where it was followed."),)
    ),
    "log_copy_whole": Entry((_("It is whole: {run} had ended, and all of its log is here."),)),
    "log_copy_gap": Entry((_("Missing here: bytes {start} to {end}."),)),
    "log_copy_short": Entry((_("Missing here: the end, from byte {start} of {end} on."),)),
    "log_copy_open": Entry(
        (
            _(
                "{run} had not ended when its host was last heard: what came after byte {start} is "
                "not here."
            ),
        )
    ),
    "log_copy_unsure": Entry((_("Whether more came after byte {start} is not known."),)),
    "end_remembered": Entry(
        (
            _("{run} had ended when {host} was last heard, {age} ago: that is what follows."),
            _("{run} had ended when {host} was last heard: that is what follows."),
        )
    ),
    "forwarded": Entry((_("Forwarded: {text}."), _("A port is forwarded."))),
    "launch_sending": Entry((_("Sending the run."),)),
    "launch_on_disk": Entry((_("The host has it on disk."),)),
    "launch_failed:reply_lost": Entry(
        (
            _("The connection to {host} went before it said whether {run} started."),
            _("The connection went before the host said whether the run started."),
        ),
        (_("Nothing is started twice: `cockpit ps` tells."),),
    ),
    # how a run ended
    "signal": Entry((_("Signal {signal} ended it."), _("A signal ended it."))),
    "cancelled": Entry((_("It was stopped while it waited."),)),
    "never_started": Entry((_("Its start was cut off; nothing of it ran."),)),
    "hook_cut_off": Entry(
        (
            _(
                "Its supervisor was killed while its hook `before` ran, and the hook is over: "
                "the job was never started."
            ),
        ),
        (),
        (
            _(
                "What the hook printed is in the log: `cockpit logs {run}`. Then start the run again."
            ),
        ),
    ),
    "unknown": Entry((_("How it ended is not known."),)),
}
