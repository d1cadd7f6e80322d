"""Sentences about runs: launching, queueing, stopping, and what became of one."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

_NOT_STARTED: Final = _("Nothing was started.")
_PYTHON_THERE: Final = _("Install Python there: `apt-get install -y python3-minimal`, about 20 MB.")

RUN_ENTRIES: Final[dict[str, Entry]] = {
    "no_free_gpu": Entry(
        (
            _("No card is free for {profile}: it needs {count} with {min_free} each on one host."),
            _("No card is free for {profile}: it needs {count} on one host."),
            _("No card is free for {profile}."),
            _("No card is free."),
        ),
        (
            _("Nearest: {nearest}."),
            _("Held: {holders}."),
            _("First likely: {likely}."),
            _NOT_STARTED,
        ),
        (
            _("`enter` queue for up to {wait}, starts by itself"),
            _('Queue for one with wait = "2h" under [gpus], or take fewer: `--set gpus.count=1`.'),
        ),
    ),
    "port_taken": Entry(
        (
            _("Port {port} on {host} is in use by {holder}; {profile} was not started."),
            _("Port {port} on {host} is in use."),
            _("Port {port} on this computer is in use."),
        ),
        (_("It said: {text}."),),
        (
            _("`enter` take the next free port, {next_port}, and forward it"),
            _("Change it for good: [forward] and the port in the profile."),
        ),
    ),
    "disk_full": Entry(
        (
            _("{mount} on {host} is full: {free} of {total} free."),
            _("{mount} on {host} is full."),
            _("The disk of {host} is full."),
            _("The disk is full."),
        ),
        (
            _("The checkpoint of step {step} was not written whole."),
            _("{run} is still running, and will stop at the next save."),
            _("Biggest: {biggest}."),
        ),
        (
            _(
                "Delete old checkpoints, or move the cache to a larger volume (HF_HOME); "
                "keep fewer: save_total_limit = 2."
            ),
        ),
    ),
    "launch_failed": Entry(
        (
            _("The run was not started on {host}: {detail}."),
            _("The run was not started on {host} ({why})."),
            _("The run was not started ({why})."),
            _("The run was not started."),
        )
    ),
    "launch_failed:no_cwd": Entry(
        (
            _("{path} is not on {host}; the run was not started."),
            _("The folder to work in is not on {host}; the run was not started."),
        ),
        (),
        (_("Make it there, or change cwd in the profile."),),
    ),
    "launch_failed:no_environment": Entry(
        (
            _("{path} is not on {host}: the Python environment of the profile is missing there."),
            _("The Python environment of the profile is not on {host}."),
        ),
        (),
        (_("Make it there (conda create, python -m venv, uv sync), or change the path in [env]."),),
    ),
    "launch_failed:disk_full": Entry((_("The disk of {host} is full; the run was not started."),)),
    "launch_failed:no_inodes": Entry(
        (_("{host} has no inodes left: too many small files. The run was not started."),)
    ),
    "launch_failed:too_few_cards": Entry(
        (_("{host} has fewer cards than the profile asks for; the run was not started."),)
    ),
    "launch_failed:unsafe_folder": Entry(
        (_("The folder for runs on {host} is not ours alone; the run was not started."),),
        (_("It belongs to somebody else, is a link, or others may write to it: {path}."),),
        (_("Name another with run_root under [hosts.{host}]."),),
    ),
    "launch_failed:run_root": Entry(
        (_("No folder for runs can be made on {host}; the run was not started."),),
        (),
        (_("Name one with run_root under [hosts.{host}]."),),
    ),
    "launch_failed:locked": Entry(
        (_("Another start on {host} has not ended yet; the run was not started."),)
    ),
    "launch_failed:start_slow": Entry(
        (_("{host} did not confirm the start in time."),),
        (_("Whether it runs is not known: `cockpit ps` tells."),),
    ),
    "launch_failed:supervisor_failed": Entry(
        (_("The supervisor on {host} did not start; neither did the run."),),
        (_("It said: {detail}."),),
    ),
    "launch_failed:sh_only": Entry(
        (
            _(
                "{host} has no Python, and its shell alone cannot do {what}; the run was not started."
            ),
        ),
        (),
        (_PYTHON_THERE,),
    ),
    "launch_failed:sh_only_name": Entry(
        (
            _(
                "{host} has no Python, and its shell keeps {name} for itself; the run was not started."
            ),
        ),
        (),
        (_("Take {name} out of [env]."), _PYTHON_THERE),
    ),
    "launch_failed:no_session": Entry(
        (
            _(
                "{host} has no Python, and nothing else that keeps a job apart from what starts it; "
                "the run was not started."
            ),
        ),
        (_("Looked for: setsid, busybox, perl, timeout of coreutils."),),
        (_PYTHON_THERE,),
    ),
    "sh_only_run": Entry(
        (
            _("{host} has no Python 3.6 or newer: its shell alone looks after the run."),
            _("The host has no Python 3.6 or newer: its shell alone looks after the run."),
        ),
        (
            _(
                "Its exit code and its log are kept, and it can be stopped; there is no queue for "
                "cards, no restart, no trimming of a long log, and a process that leaves its session "
                "and wipes its environment outlives a stop."
            ),
        ),
        (_PYTHON_THERE,),
    ),
    "sh_only_no_lock": Entry(
        (_("Without Python on the host its cards are not locked: another run may take them too."),)
    ),
    "sh_only_cannot": Entry(
        (
            _("{host} has no Python, and its shell alone cannot do {what}."),
            _("The host has no Python, and its shell alone cannot do {what}."),
        ),
        (_NOT_STARTED,),
        (_("Take {what} out of the profile."), _PYTHON_THERE),
    ),
    "secret_missing": Entry(
        (
            _(
                "The secret {name} is not in this environment nor in the keyring; nothing was started."
            ),
        ),
        (),
        (_("`export {name}=…`, or store it: `keyring set {service} {name}`"),),
    ),
    "gang_too_few_hosts": Entry(
        (_("{profile} needs {nodes} hosts with room, and {found} have it."),),
        (_("Room is on {hosts}."),),
        (_("Wait for cards, name more hosts in `from`, or take fewer: `--set nodes=…`."),),
    ),
    "gang_no_address": Entry((_("{host} has no address that another host could reach."),)),
    "gang_unreachable": Entry(
        (_("{host} cannot reach {first} at port {port}; nothing was started."),),
        (_("Tried: {tried}."),),
        (
            _(
                "Open the ports between them, put them into one private network, or take hosts of one provider."
            ),
        ),
    ),
    "gang_no_common_address": Entry(
        (_("No address of {host} is reached by all of {others}; nothing was started."),),
        (),
        (_("Put the hosts into one private network."),),
    ),
    "gang_port_taken": Entry(
        (
            _(
                "Another program took port {port} of {host} while the hosts were prepared; nothing was started."
            ),
        ),
        (),
        (_("Start it again: another port is chosen."),),
    ),
    "gang_cards_differ": Entry(
        (_("The hosts would take different numbers of cards: {found}."),),
        (),
        (_("Ask for a number that all of them have: `--set gpus.count=…`."),),
    ),
    "gang_script_missing": Entry(
        (_("{host} has no {path}."),),
        (),
        (_("Put the same code on all of them, or let `[code]` send it."),),
    ),
    "gang_not_called": Entry(
        (_("{host} was ready and could not be told to begin; all ranks are being taken back."),)
    ),
    "gang_failed": Entry(
        (
            _("Rank {rank} on {host} failed first (code {code}); the others were stopped."),
            _("Rank {rank} on {host} failed first; the others were stopped."),
        ),
        (),
        (_("Its log: cockpit logs {run}"),),
    ),
    "gang_meeting": Entry((_("Looking for a way between the hosts."),)),
    "gang_met": Entry((_("The hosts meet at {text}."), _("The hosts have found each other."))),
    "gang_versions_differ": Entry(
        (_("{name} differs between the hosts: {found}."),),
        (),
        (_("Give all of them one environment."),),
    ),
    "gang_no_restart": Entry(
        (_("[restart] does not apply to a run on several hosts: one rank cannot come back alone."),)
    ),
    "gang_no_queue": Entry(
        (_("[gpus] wait does not apply to a run on several hosts: cards are taken now or never."),)
    ),
    "binds_everywhere": Entry(
        (_("The server will listen on every address of the host, not on loopback alone."),),
        (_("Whoever reaches the host's port can use it; [forward] needs loopback only."),),
    ),
    "env_file_unreadable": Entry(
        (_("env.file cannot be read: {why}."), _("env.file cannot be read."))
    ),
    "env_file_too_large": Entry((_("env.file is too large to be one."),)),
    "env_file_line": Entry((_("that line of env.file is not NAME=value."),)),
    "no_host_ready": Entry(
        (
            _("None of {host} can be used now; nothing was started."),
            _("No host can be used now; nothing was started."),
        ),
    ),
    "run": Entry(
        (
            _("{host} could not do that with the run ({why})."),
            _("That could not be done with the run."),
        ),
        (_("It said: {detail}."),),
    ),
    "search_needs_grep": Entry(
        (
            _(
                "{host} has neither Python nor a grep that tells places, so its logs cannot be searched there."
            ),
            _(
                "There is neither Python nor a grep that tells places, so the log cannot be searched there."
            ),
        ),
        (),
        (_("Save it (w), and search the copy."),),
    ),
    "pattern_needs_python": Entry(
        (
            _("{host} has no Python, and without it no regular expressions for whole logs."),
            _("Regular expressions for whole logs need Python on the host."),
        ),
        (),
        (_("Without the leading ~ it is searched as plain text."),),
    ),
    "bad_pattern": Entry(
        (_("That is not a regular expression: {detail}."), _("That is not a regular expression.")),
        (),
        (_("Without the leading ~ it is searched as plain text."),),
    ),
    "pattern_too_slow": Entry(
        (
            _("This regular expression takes too long on {host}."),
            _("This regular expression takes too long."),
        ),
        (_("At byte {at} it did not come to an end; the search was stopped."),),
        (_("Make it simpler: repeats within repeats are what takes long."),),
    ),
    "search_replaced": Entry((_("Another search of this log has begun; this one was stopped."),)),
    "too_many_searches": Entry(
        (_("{limit} logs are being searched already."), _("Too many logs are being searched.")),
        (),
        (_("Stop one with esc, then search again."),),
    ),
    "run_unknown": Entry(
        (_("There is no run {run}."), _("There is no such run.")),
        (_("Known: {known}."),),
        (_("`cockpit ps` lists them."),),
    ),
    "run_rank_unknown": Entry(
        (
            _("{run} has {count} ranks, counted from 0: there is no rank {rank}."),
            _("The run has no such rank."),
        )
    ),
    "run_ambiguous": Entry(
        (_("{run} is the beginning of several runs: {matches}."), _("Several runs are meant.")),
        (),
        (_("Give more of its id."),),
    ),
    "process_gone": Entry(
        (
            _("Process {pid} on {host} is gone, or is another one by now; no signal was sent."),
            _("The process is gone; no signal was sent."),
        )
    ),
    "signal_unknown": Entry(
        (
            _("{signal} is not a signal that we send: {known}."),
            _("That is not a signal that we send."),
        )
    ),
    "watch_only": Entry((_("This build watches and starts nothing."),)),
    "stop_left": Entry(
        (_("Something of {run} is still there: {pids}."), _("Something of the run is still there."))
    ),
    "file_exists": Entry(
        (
            _("{path} exists; it was not overwritten."),
            _("The file exists; it was not overwritten."),
        ),
        (),
        (_("Give another name."),),
    ),
    # how a run ended
    "exited": Entry((_("It ended by itself with code {code}."), _("It ended by itself."))),
    "signalled": Entry((_("Signal {signal} ended it."), _("A signal ended it."))),
    "stopped": Entry((_("It was stopped from here."),)),
    "stopped_by_user": Entry((_("It was stopped from here."),)),
    "oom_killed": Entry((_("The kernel ended it: out of host memory."),)),
    "host_restarted": Entry((_("The host restarted while it ran; how it ended is not known."),)),
    "killed_without_record": Entry(
        (_("It is gone and left no record: something ended it and its supervisor at once."),)
    ),
    "killed_at_logout": Entry(
        (
            _(
                "It is gone and left no record, and this host ends what a user runs when the last "
                "login ends (KillUserProcesses=yes): that is the likely cause."
            ),
        ),
        (),
        (_("On the host: `loginctl enable-linger`, then start the run again."),),
    ),
    "run_dir_gone": Entry((_("Its folder on the host is gone; how it ended is not known."),)),
    "lost": Entry((_("How it ended is not known."),)),
    "supervisor_died": Entry(
        (_("Its supervisor is gone; the run goes on, and its end is read from its own record."),)
    ),
    "sh_only": Entry((_("The host has no Python: a shell looks after it, without a supervisor."),)),
    "supervisor_stalled": Entry((_("Its supervisor does not answer; the run goes on."),)),
    "server_ended": Entry((_("It is a server, and nobody had asked it to end."),)),
    "before_failed": Entry(
        (
            _("Its hook `before` ended with code {code}; the job was not started."),
            _("Its hook `before` did not succeed; the job was not started."),
        ),
        (),
        (_("What it printed is in the log: `cockpit logs {run}`."),),
    ),
    "cancelled": Entry((_("It was stopped before its job began."),)),
    # launch steps
    "sending_code": Entry((_("Sending the code."),)),
    "queued": Entry((_("Waiting for free cards."),)),
    "starting": Entry((_("Starting."),)),
    "started": Entry((_("Started."),)),
    "running": Entry((_("Running."),)),
    "ready": Entry((_("Ready."),)),
    "first_line": Entry((_("First line printed."),)),
    "stopping": Entry((_("Stopping."),)),
}
