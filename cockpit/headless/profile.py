"""`cockpit profile list | check | new | schema`."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

from cockpit.config.address import is_own_name
from cockpit.config.files import write_atomic
from cockpit.config.paths import Home, tilde
from cockpit.config.profile import (
    Profile,
    ProfileFile,
    find_profiles,
    load_profile,
    parse_profile,
    resolve_profile,
)
from cockpit.config.profile_schema import json_schema
from cockpit.config.values import shown
from cockpit.domain.models import RunId
from cockpit.domain.past_runs import Origin
from cockpit.domain.pipes import hides_the_exit_code
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.text import safe_line
from cockpit.errors import (
    ConfigError,
    ExitCode,
    Problem,
    ProfileError,
    StorageError,
    UsageError,
)
from cockpit.i18n import _
from cockpit.i18n.messages import explain
from cockpit.i18n.problem_text import problem_text


def main(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    actions = {"list": _list, "check": _check, "new": _new, "schema": _schema}
    return actions[args.action](home, args)


def _list(home: Home, args: argparse.Namespace) -> int:
    rows = [_row(home, file) for file in find_profiles(home)]
    if args.json:
        for row in rows:
            print(json.dumps(row))
        return ExitCode.OK
    lines = [("NAME", "KIND", "FROM", "DESCRIPTION"), *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        print(safe_line("  ".join([*cells, line[3]]).rstrip()))
    return ExitCode.OK


def _row(home: Home, file: ProfileFile) -> dict[str, object]:
    """A profile of the list; one with mistakes is listed with their number."""
    row: dict[str, object] = {
        "name": file.name,
        "kind": None,
        "origin": file.origin,
        "description": "",
        "path": str(file.path),
        "problems": 0,
    }
    try:
        profile = load_profile(file.path, home)
    except (ConfigError, StorageError) as error:
        row["problems"] = max(1, len(getattr(error, "problems", ())))
        return row
    return {**row, "kind": profile.kind, "description": profile.description}


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    text = str(row["description"])
    if row["problems"]:
        text = _("has mistakes: cockpit profile check {name}").format(name=row["name"])
    return (str(row["name"]), str(row["kind"] or "?"), str(row["origin"]), text)


def _check(home: Home, args: argparse.Namespace) -> int:
    """Silent success is no answer: a good profile says so on stderr; --json gives an object either way."""
    try:
        profile = load_profile(args.profile, home, args.overrides)
    except ProfileError as error:
        if args.json:
            for problem in error.problems:
                print(json.dumps(_problem_fields(problem)))
        raise
    if not args.json:
        file = tilde(profile.path) if profile.path else args.profile
        print(
            _("{file}: {name}, kind {kind}, no mistakes.").format(
                file=file, name=profile.name, kind=profile.kind
            ),
            file=sys.stderr,
        )
        if _hides_code(profile):
            print(explain("pipe_hides_code").text, file=sys.stderr)
    return ExitCode.OK


def _hides_code(profile: Profile) -> bool:
    table = profile.command
    if table is None:
        return False
    argv = table.argv if table.argv is not None else ("sh", "-c", table.script or "")
    return hides_the_exit_code(argv)


def _problem_fields(problem: Problem) -> dict[str, object]:
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "key": problem.key,
        "code": problem.code,
        "text": problem_text(problem.code, problem.facts),
        "suggestion": problem.facts.get("suggestion"),
    }


def _new(home: Home, args: argparse.Namespace) -> int:
    """Copy a profile, or what a run was started from, with its comments into the home under a name of its own."""
    past = _from_history(home, args.source)
    source = None if past is not None else resolve_profile(args.source, home)
    name = args.name or (source.name if source is not None else past.name if past else "")
    if not is_own_name(name):
        raise UsageError("bad_profile_name", name=shown(name))
    target = home.profiles_dir / f"{name}.toml"
    if os.path.lexists(target) and not args.replace:
        raise UsageError("profile_exists", path=tilde(target))
    if past is not None:
        from cockpit.engine.origins import toml_of

        text, file = _renamed(toml_of(past), name), past.file or args.source
    else:
        assert source is not None
        text, file = _renamed(_read(source.path), name), tilde(source.path)
    parse_profile(text, name=name, file=file)
    write_atomic(target, text)
    if args.json:
        print(json.dumps({"name": name, "path": str(target)}))
    else:
        print(target)
    return ExitCode.OK


def _from_history(home: Home, wanted: str) -> Origin | None:
    """What a run was started from, its changes by --set included; a profile of that name goes before."""
    names = {profile.name for profile in find_profiles(home)}
    if wanted in names or not is_run_id(wanted) or not home.db.exists():
        return None
    from cockpit.engine.store import Database

    database = Database(home.db)
    try:
        origin = database.origin(RunId(wanted))
    finally:
        database.close()
    if origin is not None and (origin.masked or not origin.text):
        raise UsageError("origin_masked", file=origin.file)
    return origin


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(path=tilde(path), why=str(error)) from error


def _renamed(text: str, name: str) -> str:
    """The text with its `name` changed; everything else stays byte for byte."""
    first_table = re.search(r"(?m)^[ \t]*\[", text)
    end = first_table.start() if first_table else len(text)
    line = f'name = "{name}"'
    head, changed = re.subn(r"(?m)^name[ \t]*=.*$", line, text[:end], count=1)
    return (head if changed else f"{line}\n{head}") + text[end:]


def _schema(home: Home, args: argparse.Namespace) -> int:
    print(json.dumps(json_schema(), indent=2))
    return ExitCode.OK
