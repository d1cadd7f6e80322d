"""Sentences about a run's code on its way to a host, and about its results on their way back."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import Entry

_NOT_STARTED: Final = _("Nothing was sent or started.")
_HIS_FILES: Final = _("Files there that we did not send are never touched without being asked.")

CODE_ENTRIES: Final[dict[str, Entry]] = {
    # what is listed
    "code_listed": Entry((_("{files} files, {size}, of {folder} go to {path}."),)),
    "code_too_large": Entry(
        (_("{folder} has {files} files, {size}: more than is sent without asking ({limit})."),),
        (_("Largest: {largest}."),),
        (
            _("Leave out what a run does not need: name it in .cockpitignore."),
            _("Or send it all the same: `--set {needed}`, or the same key under [code]."),
        ),
    ),
    "code_links_left_out": Entry(
        (_("Not sent, since they lead out of the folder: {count} links ({names})."),)
    ),
    "code_special_left_out": Entry(
        (_("Not sent, since they are no files: {count} pipes, sockets or devices ({names})."),)
    ),
    "code_secret_left_out": Entry(
        (_("Not sent, since its values go on stdin as secrets do: {names} (env.file)."),)
    ),
    "code_submodule_empty": Entry(
        (_("Not sent, since they are not checked out here: {count} submodules ({names})."),),
        (),
        (_("`git submodule update --init` brings them."),),
    ),
    "code_shared_folder": Entry(
        (_("{runs} runs from {path} too: what it loads from now on is the new code."),),
        (),
        (_("A cwd for each run keeps them apart."),),
    ),
    "code_missing": Entry(
        (_("There is no folder {folder} on this computer; [code] path names it."),),
        (_NOT_STARTED,),
    ),
    "code_is_home": Entry(
        (_("{folder} is not a project: [code] would send all of it."),),
        (_NOT_STARTED,),
        (_("Name the project's folder with path under [code]."),),
    ),
    "code_empty": Entry(
        (_("There is nothing to send in {folder}: git and .cockpitignore leave no file."),),
        (_NOT_STARTED,),
        (_("Where .gitignore covers the whole folder: git = false under [code]."),),
    ),
    "code_too_many": Entry(
        (_("{folder} has too many files to list."),),
        (_NOT_STARTED,),
        (_("Name the large folders in .cockpitignore."),),
    ),
    "code_slow": Entry(
        (_("{folder} could not be listed within {limit_s} s."),),
        (_NOT_STARTED,),
    ),
    "code_unreadable": Entry(
        (_("{path} cannot be read: {text}."),),
        (_NOT_STARTED,),
        (_("Leave it out with .cockpitignore, or make it readable."),),
    ),
    "code_git_missing": Entry(
        (
            _(
                "{folder} is a git repository, and there is no git on this computer to list its files."
            ),
        ),
        (_NOT_STARTED,),
        (_("Install git, or write git = false under [code]: .cockpitignore alone decides then."),),
    ),
    "code_git_failed": Entry(
        (_("git cannot list the files of {folder}."),),
        (_("It said: {said}."), _NOT_STARTED),
    ),
    "code_git_failed:dubious": Entry(
        (_("git does not trust {folder}: it belongs to another user."),),
        (_NOT_STARTED,),
        (_("If it is yours: `git config --global --add safe.directory {folder}`"),),
    ),
    # on its way
    "code_sending": Entry((_("Sending code: {text}."),)),
    "code_sent": Entry((_("Code sent: {text}."),)),
    "run_dropped": Entry(
        (
            _(
                "Called off; nothing was started. Code that came over is kept on {host} for the next start."
            ),
        )
    ),
    "code_changed_here": Entry(
        (_("{path} changed while it was being sent; nothing was started."),),
        (),
        (_("Start it again when the file is at rest."),),
    ),
    "code_conflict": Entry(
        (
            _(
                "{count} files in {path} on {host} are not as we sent them; nothing was changed or started."
            ),
        ),
        (_("They are: {names}."), _HIS_FILES),
        (
            _("Bring over what is worth keeping, or use another cwd."),
            _(
                "To replace them (each is kept in {path}/.cockpit-code/kept): `--set code.on_conflict=replace`"
            ),
        ),
    ),
    "code_name_odd": Entry(
        (_("{path} has a name that cannot be sent to a host without Python."),),
        (_NOT_STARTED,),
        (_("Rename it, or leave it out with .cockpitignore."),),
    ),
    "code_busy": Entry(
        (_("Another launch is sending code to {path} on {host}; nothing was started."),)
    ),
    "code_host_failed": Entry(
        (_("The code could not be put into {path} on {host}: {text}."),),
        (_("Nothing was started; what was there is as it was."),),
    ),
    "code_host_failed:placing": Entry(
        (_("Some of the code could not be put into {path} on {host}: {text}."),),
        (
            _(
                "Nothing was started; part of it may be in place, and the next start puts in the rest."
            ),
        ),
    ),
    "code_host_full": Entry(
        (_("The disk of {path} on {host} has no room for the code: {needed} are needed."),),
        (_("Nothing was started; what was there is as it was."),),
    ),
    # results on their way back
    "fetching": Entry((_("Fetching results: {text}."),)),
    "fetched": Entry((_("Fetched: {text}."),)),
    "fetched_nothing": Entry((_("Nothing to fetch: no file there matches {text}."),)),
    "fetch_failed": Entry((_("Results were not fetched. {text}"),)),
    "fetch_none": Entry(
        (
            _(
                "{profile} asks for no results: there is no [fetch] in it, or it was started elsewhere."
            ),
        )
    ),
    "fetch_glob_outside": Entry(
        (_("[fetch] takes files below cwd only: {globs} lead out of it."),),
        (_NOT_STARTED,),
    ),
    "fetch_too_large": Entry(
        (_("The results on {host} are {files} files, {size}: more than is fetched ({limit})."),),
        (_("Largest: {largest}."), _("Nothing was fetched; all of it is still there.")),
        (_("Name fewer in globs under [fetch], or allow more with max_size."),),
    ),
    "fetch_no_room": Entry(
        (_("{path} has no room for the results of {host}: {needed} are needed, {free} are free."),),
        (_("Nothing was fetched; all of it is still there."),),
    ),
    "fetch_refused": Entry(
        (_("{host} did not hand out the results: {text}."),),
        (_("All of it is still there."),),
    ),
    "code_not_sent": Entry(
        (_("The connection to {host} broke again and again; the code is not there as a whole."),),
        (_("Nothing was started. What came over is kept there: the next start sends the rest."),),
    ),
}
