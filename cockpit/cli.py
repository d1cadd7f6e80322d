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
from cockpit.errors import CockpitError, ConfigError, ExitCode, StorageError

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
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


def main(argv: Sequence[str] | None = None) -> int:
    try:
        code = _dispatch(parse(sys.argv[1:] if argv is None else list(argv)))
        sys.stdout.flush()
    except CockpitError as error:
        say(error)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
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

        return _call("cockpit", "cockpit.app", "run_tui", Home.from_environ())
    if args.command == "demo":
        return _demo(args.hosts)
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


def _demo(count: int | None) -> int:
    """The screen on the embedded fleet, which is gone when the screen is."""
    from cockpit.app import run_tui
    from cockpit.demo.director import direct
    from cockpit.demo.main import embedded_fleet

    with embedded_fleet(count or 3) as fleet:
        return run_tui(fleet.home, direct)


def _call(command: str, module: str, function: str, argument: object) -> int:
    """Import one front end and enter it; a command that this version lacks says so."""
    if importlib.util.find_spec(module) is None:
        raise CommandNotBuilt(command=command)
    entry = cast(
        "Callable[[object], int | None]", getattr(importlib.import_module(module), function)
    )
    return entry(argument) or 0


class CommandNotBuilt(CockpitError):
    """The command is part of the design and not of this version."""

    default_code = "not_built"
    exit_code = ExitCode.UNAVAILABLE


def say(error: CockpitError) -> None:
    """The error in words, on stderr; stdout stays data."""
    from cockpit.i18n.problem_text import error_lines, problem_line

    problems = error.problems if isinstance(error, ConfigError) else ()
    several = len(problems) if len(problems) > 1 else None
    lines = error_lines(error.code, {**error.facts, "several": several})
    lines += [
        problem_line(problem.code, problem.file, problem.line, problem.key, problem.facts)
        for problem in problems
    ]
    print("\n".join(lines), file=sys.stderr)


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def _output_failed(error: Exception) -> int:
    """What we print goes to a file, and its disk takes no more."""
    _forget_stdout()
    where = getattr(error, "filename", None) or "stdout"
    say(StorageError(path=str(where), why=getattr(error, "strerror", None)))
    return int(ExitCode.IO)


def _internal(error: Exception) -> int:
    """One line for the person, the traceback for the log."""
    import traceback

    from cockpit.config.paths import Home

    log = Home.from_environ().log
    text = "".join(traceback.format_exception(error))
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(fd, "a", encoding="utf-8") as stream:
            stream.write(text)
        where = f"the traceback is in {log}"
    except OSError as problem:
        where = f"{log} cannot be written ({problem.strerror})\n{text.rstrip()}"
    print(
        f"This is a mistake of cockpit itself: {type(error).__name__}; {where}  internal",
        file=sys.stderr,
    )
    return int(ExitCode.INTERNAL)


def _forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
