"""Sentences about this computer and about screens with nothing on them yet."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

COMMON_ENTRIES: Final[dict[str, Entry]] = {
    "internal": Entry(
        (
            _("This is a mistake of cockpit itself ({why})."),
            _("This is a mistake of cockpit itself."),
        ),
        (_("Runs are not touched. The traceback is in cockpit.log in its home folder."),),
    ),
    "usage": Entry(
        (_("That cannot be taken: {word}."), _("That cannot be taken.")),
        (),
        (_("`cockpit --help` lists what can."),),
    ),
    "no_terminal": Entry(
        (_("The screen needs a terminal to draw on and to type in."),),
        (),
        (_("`cockpit status` and `cockpit run` do without one."),),
    ),
    "replay_no_terminal": Entry(
        (_("A replay is shown on a screen, and there is none here."),),
        (),
        (_("`--json` prints what happened in it, `--redact OUT` makes a copy without names."),),
    ),
    "bad_data": Entry(
        (
            _("{path} is not what it should be: {why}."),
            _("{path} is not what it should be."),
            _("The input is not what it should be."),
        )
    ),
    "io": Entry(
        (
            _("{path}: {why}."),
            _("{path} could not be read or written."),
            _("A file could not be read or written."),
        )
    ),
    "keyring": Entry((_("The keyring of this computer does not answer."),)),
    "bad_fingerprint": Entry(
        (_("{text} is no fingerprint; nothing was recorded."), _("That is no fingerprint.")),
        (
            _(
                "It looks like SHA256: and 43 letters, as `ssh-keygen -lf` and the platforms show it."
            ),
        ),
    ),
    "no_such_hop": Entry(
        (
            _("There is no jump host {hop} on the way to {host}; there are: {hops}."),
            _("There is no jump host on the way to {host}."),
        )
    ),
    "host_local": Entry((_("{host} is this computer: it has no key to trust."),)),
    "no_ssh": Entry(
        (_("There is no ssh program on this computer to open a shell with."),),
        (),
        (_("Install OpenSSH's client; cockpit's own connections do without."),),
    ),
    "bad_ssh_config": Entry(
        (_("ssh_config for {host} cannot be read; nothing was sent."),), (_("ssh said: {text}."),)
    ),
    "no_hosts": Entry(
        (_("There are no hosts in {file} yet."), _("There are no hosts yet.")),
        (),
        (
            _(
                '`cockpit hosts add NAME "ssh -p 41234 root@203.0.113.5"` adds one; '
                "`cockpit demo` shows the embedded fleet."
            ),
        ),
    ),
    "scan_no_file": Entry((_("Name a log, or `-` for what comes in by a pipe."),)),
    "code_unknown": Entry(
        (_("There is no code {given}. {suggestion}?"), _("There is no code {given}."))
    ),
    "scan_two_inputs": Entry((_("A log or --memory: one of them at a time."),)),
    "demo_failed": Entry(
        (_("The embedded fleet did not start: {why}."), _("The embedded fleet did not start.")),
        (_("Nothing of it is left behind."),),
    ),
    # what became of an incident
    "explained_by": Entry((_("it follows from: {title}"),)),
    "comes_and_goes": Entry((_("it comes and goes"),)),
    "levelled_off": Entry(
        (_("we were wrong: memory levelled off at {level}"), _("we were wrong: it levelled off"))
    ),
    # empty screens
    "empty_first_start": Entry(
        (_("No hosts yet."),),
        (
            _(
                "Paste the ssh command from your provider's page, for example `ssh -p 41234 root@203.0.113.5`."
            ),
            _("Or `d` for the demo fleet: nothing leaves this computer."),
        ),
    ),
    "empty_this_machine": Entry((_("No NVIDIA driver on this computer, so it is not shown."),)),
    "empty_runs": Entry(
        (_("Nothing was started from here yet."),),
        (_("`l` starts a profile; processes that others started are on the host's screen."),),
    ),
    "empty_incidents": Entry(
        (_("All quiet for {quiet}."), _("All quiet.")),
        (
            _("{hosts} hosts, {cards} cards and {runs} runs are watched."),
            _("`H` shows {closed} closed ones."),
        ),
    ),
    "empty_incidents_stale": Entry(
        (
            _("Nothing open on what we can see; {host} has not answered for {age_s} s."),
            _("Nothing open on what we can see."),
        )
    ),
    "empty_launch": Entry(
        (_("No profiles in {folder}."), _("No profiles of yours yet.")),
        (_("`C` copies one of {shipped} ready ones."),),
    ),
    "empty_log": Entry(
        (_("Started {age} ago, nothing printed yet."), _("Nothing printed yet.")),
        (
            _("Loading weights often takes 1 to 5 min without a line."),
            _("GPU memory is at {memory} and rising."),
        ),
    ),
    "empty_filter": Entry(
        (_("No card has {filter}."), _("Nothing matches.")),
        (_("Largest now: {largest}."), _("`esc` shows all {count}.")),
    ),
    "empty_processes": Entry((_("Nothing runs on these cards."),)),
    "empty_notices": Entry((_("Nothing to say."),)),
}
