"""Sentences about what goes along with a run: history, budget, hooks, messages, forwarded ports."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

AROUND_ENTRIES: Final[dict[str, Entry]] = {
    # history
    "history_unwritable": Entry(
        (
            _("{path} does not take the history of runs: {why}."),
            _("The history of runs cannot be kept."),
        ),
        (_("Everything else goes on; it is tried again every minute."),),
    ),
    "history_set_aside": Entry(
        (
            _("{path} was damaged; it is kept as {kept}, and a new one was begun."),
            _("The history of runs was damaged; a new one was begun."),
        ),
        (_("Runs that hosts still have are in it again; older ones are not."),),
    ),
    "history_newer": Entry(
        (
            _("{path} was written by a newer cockpit; this one leaves it alone."),
            _("The history of runs was written by a newer cockpit; this one leaves it alone."),
        ),
        (_("Runs are shown as their hosts tell them."),),
        (_("Update this cockpit: `uv tool upgrade cluster-cockpit`."),),
    ),
    "remark_not_kept": Entry(
        (_("The line about {run} was not kept."), _("The line was not kept.")),
        (_("cockpit.log in cockpit's folder says why."),),
    ),
    "run_not_from_here": Entry(
        (
            _("What {run} was started from is not known on this computer."),
            _("What the run was started from is not known on this computer."),
        ),
        (_("It was started elsewhere, or before cockpit kept a history."),),
        (_("Start its profile anew: `cockpit run PROFILE`."),),
    ),
    "origin_masked": Entry(
        (_("The profile of then held a secret's own value, which is not kept."),),
        (_("So that run cannot be started again as it was."),),
        (
            _("Start it from its file: `cockpit run {file}`"),
            _("Name the secret under [env] secrets instead of writing its value."),
        ),
    ),
    "run_host_gone": Entry(
        (
            _("{run} ran on {host}, which is not in hosts.toml any more."),
            _("Its host is not in hosts.toml any more."),
        ),
        (_("Last known: {state}, {age} ago."),),
        (_('`cockpit hosts add {host} "ssh …"` brings it back.'),),
    ),
    "relaunched_as": Entry((_("relaunched as {run}"), _("relaunched with the change"))),
    "run_gone_there": Entry(
        (
            _("{host} does not have {run} any more."),
            _("The host does not have the run any more."),
        ),
        (_("Its folder there was removed, or the machine is another one by now."),),
        (_("What was copied of its log: `cockpit logs {run}`."),),
    ),
    # budget
    "budget_no_price": Entry(
        (_("{host} has no price, so max_cost of [budget] cannot be measured."),),
        (),
        (_('Write price = "0.42 USD/h" under [hosts.{host}], or limit max_hours.'),),
    ),
    "budget_other_currency": Entry(
        (_("{host} costs {currency} and [budget] counts {wanted}: max_cost cannot be measured."),),
        (),
        (_("Write both in one currency, or limit max_hours."),),
    ),
    "budget_stop_needs_us": Entry(
        (
            _(
                "[budget] stops the run from this computer: it needs a cockpit open and connected then."
            ),
        ),
        (_("A run that is followed by nobody goes on, and is stopped when a cockpit comes back."),),
    ),
    "budget_stopping": Entry((_("The budget is used up; the run is being stopped."),)),
    # hooks and messages
    "hook_failed": Entry((_("A hook failed: {text}."), _("A hook failed."))),
    "hook_ran": Entry((_("Hook {text} ran."), _("A hook ran."))),
    "notified": Entry((_("Message sent by {text}."), _("Message sent."))),
    "notify_failed": Entry(
        (_("The message by {text} was not taken."), _("A message was not taken.")),
        (),
        (_("Try the address under [notify] with `apprise`."),),
    ),
    "notify_missing": Entry(
        (_("[notify] sends nothing: the package apprise is not installed here."),),
        (),
        (_("`pip install 'cluster-cockpit[notify]'`"),),
    ),
    "notify_bad_url": Entry(
        (_("Address {number} of [notify] urls is not one: it needs a form such as ntfy://topic."),)
    ),
    "notify_not_kept": Entry(
        (_("Whom [notify] told then is not kept; the profile's file is gone."),),
        (_("This run tells nobody."),),
    ),
    # ports
    "mirror_disk_full": Entry(
        (
            _(
                "The disk of this computer is full: the log of {run} is watched and no longer copied."
            ),
        ),
        (
            _(
                "Nothing is lost: it is on {host}, and the copy goes on from where it stopped next time."
            ),
        ),
        (_("Make room where {path} is."),),
    ),
    "mirror_limit": Entry(
        (_("The log of {run} has outgrown its room here: it is watched and no longer copied."),),
        (_("All of it is on {host} as far as that keeps it."),),
        (_('More room: `logs = "16 GiB"` in settings.toml.'),),
    ),
    "forward_port_taken": Entry(
        (
            _("Port {port} on this computer is in use, so {host} is not forwarded to it."),
            _("A port on this computer is in use and not forwarded."),
        ),
        (_("It is tried again every few seconds."),),
        (_("Free it, or change -L in the host's ssh command."),),
    ),
}
