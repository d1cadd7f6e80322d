"""The command line: it imports the one front end that was asked for, and turns every end into an exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from typing import cast

from cockpit.cli_args import parse
from cockpit.cli_streams import forget, have_a_screen, make_sound, talk
from cockpit.errors import CockpitError, ConfigError, ExitCode, StorageError, UsageError

HEADLESS_MODULES: dict[str, str] = {
    "run": "run",
    "ps": "ps",
    "logs": "logs",
    "attach": "attach",
    "wait": "wait",
    "stop": "stop",
    "hosts": "hosts",
    "hosts trust": "trust",
    "status": "status",
    "scan": "scan",
    "journal": "journal",
    "replay": "replay",
    "doctor": "doctor",
    "fit": "fit",
    "cost": "cost",
    "profile": "profile",
    "ssh": "ssh",
    "serve": "serve",
    "export": "export",
    "help": "help_code",
}
"""Command (or "command action") to the module of cockpit.headless with its `main(args) -> int`."""

INTERRUPTED = 130
"""128 + SIGINT."""
BROKEN_PIPE = 141
"""128 + SIGPIPE, as any program ends whose reader has gone."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
_NO_TEMPORARY = "No usable temporary directory"


_DEMO_IS_OVER = (
    'The demo fleet is gone. Your own host: cockpit hosts add NAME "ssh …", then cockpit.'
)
PROBLEMS_SHOWN = 100
"""Mistakes of a file that are told one by one."""


def main(argv: Sequence[str] | None = None) -> int:
    make_sound()
    try:
        code = _dispatch(parse(sys.argv[1:] if argv is None else list(argv)))
        sys.stdout.flush()
    except CockpitError as error:
        say(error)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        forget(1)
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the process edge: our own mistakes end here
        return _output_failed(error) if _is_full(error) else _internal(error)
    return code


def _dispatch(args: argparse.Namespace) -> int:
    if args.no_color:
        os.environ["NO_COLOR"] = "1"
    if not getattr(args, "json", False):  # JSON is English: programs read it
        _speak()
    if args.command is None:
        from cockpit.config.paths import Home

        _need_screen()
        return _call("cockpit", "cockpit.app", "run_tui", Home.from_environ())
    if args.command == "demo":
        _need_screen()
        return _demo(args.hosts)
    if args.command == "replay" and not (args.json or args.redact):
        if not have_a_screen():
            return _call("cockpit replay", "cockpit.headless.replay", "without_a_screen", args)
        return _call("cockpit replay", "cockpit.replay_app", "run_replay", args.file)
    words = f"{args.command} {getattr(args, 'action', '')}".strip()
    module = HEADLESS_MODULES.get(words, HEADLESS_MODULES[args.command])
    return _call(f"cockpit {words}", f"cockpit.headless.{module}", "main", args)


def _speak() -> None:
    """The language of settings.toml, else the environment's. A broken file is its reader's to report."""
    from cockpit.config.paths import Home
    from cockpit.config.settings import load_settings
    from cockpit.i18n import language_of, use_language

    try:
        wanted = load_settings(Home.from_environ()).language
    except CockpitError:
        wanted = None
    use_language(wanted or language_of(os.environ))


def _need_screen() -> None:
    if not have_a_screen():
        raise UsageError("no_terminal")


def _demo(count: int | None) -> int:
    """The screen on the embedded fleet, which is gone when the screen is."""
    from cockpit.app import run_tui
    from cockpit.demo.director import direct
    from cockpit.demo.hosts import FLEET, demo_hosts
    from cockpit.demo.main import embedded_fleet
    from cockpit.i18n import _
    from cockpit.own_log import keep_log

    hosts = demo_hosts(count or len(FLEET))
    is_fast = any(host.clock != 1.0 for host in hosts)
    note = _("simulated; a100: time runs x60") if is_fast else _("simulated")
    with embedded_fleet(len(hosts)) as fleet:
        keep_log(fleet.home)
        code = run_tui(fleet.home, direct, note)
    if code == 0:
        talk(_DEMO_IS_OVER)
    return code


def _call(command: str, module: str, function: str, argument: object) -> int:
    """Import one front end and enter it; a command that this version lacks says so."""
    if importlib.util.find_spec(module) is None:
        raise CommandNotBuilt(command=command)
    entry = cast(
        "Callable[[object], int | None]", getattr(importlib.import_module(module), function)
    )
    if "logging" in sys.modules:  # who has not imported it has nothing to say
        from cockpit.own_log import keep_log

        keep_log()
    return entry(argument) or 0


class CommandNotBuilt(CockpitError):
    """The command is part of the design and not of this version."""

    default_code = "not_built"
    exit_code = ExitCode.UNAVAILABLE


def say(error: CockpitError) -> None:
    """The error in words, on stderr; stdout stays data."""
    from cockpit.domain.text import safe_line
    from cockpit.i18n import ngettext
    from cockpit.i18n.problem_text import error_lines, problem_line

    problems = error.problems if isinstance(error, ConfigError) else ()
    several = len(problems) if len(problems) > 1 else None
    lines = error_lines(error.code, {**error.facts, "several": several})
    lines += [
        problem_line(problem.code, problem.file, problem.line, problem.key, problem.facts)
        for problem in problems[:PROBLEMS_SHOWN]
    ]
    if (left := len(problems) - PROBLEMS_SHOWN) > 0:
        lines.append("  " + ngettext("and {n} more", "and {n} more", left).format(n=left))
    talk("\n".join(safe_line(line) for text in lines for line in text.split("\n")))


def _is_full(error: Exception) -> bool:
    if not isinstance(error, OSError):
        return False
    return error.errno in _NO_ROOM or _NO_TEMPORARY in str(error.strerror)


def _output_failed(error: Exception) -> int:
    """What we print goes to a file, and its disk takes no more; or no folder for passing files has room."""
    forget(1)
    why = getattr(error, "strerror", None)
    where = getattr(error, "filename", None) or "stdout"
    say(StorageError(path="TMPDIR" if _NO_TEMPORARY in str(why) else str(where), why=why))
    return int(ExitCode.IO)


def _internal(error: Exception) -> int:
    """One line for the person, the traceback for the log."""
    import traceback

    text = "".join(traceback.format_exception(error))
    where = _kept_in_log(text)
    talk(f"This is a mistake of cockpit itself: {type(error).__name__}; {where}  internal")
    return int(ExitCode.INTERNAL)


def _kept_in_log(text: str) -> str:
    """Where the text can be read: in our log, or here when that cannot be written."""
    from cockpit.own_log import append

    try:
        return f"the traceback is in {append(text)}"
    except (CockpitError, OSError) as problem:
        return f"the log cannot be written ({problem})\n{text.rstrip()}"
