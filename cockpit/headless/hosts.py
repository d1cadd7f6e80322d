"""`cockpit hosts add | list | remove | import`: hosts.toml by command; nothing is connected."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping

from cockpit.config.hosts import HostSpec, Notice, add_host, load_hosts, remove_host
from cockpit.config.import_hosts import (
    MAX_BYTES,
    Candidate,
    from_lines,
    from_ssh_config,
    looks_like_ssh_config,
)
from cockpit.config.paths import Home, expanded, is_there, tilde
from cockpit.domain.cells import cell_len
from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.domain.units import price_text
from cockpit.errors import CockpitError, ExitCode, StorageError, UsageError
from cockpit.i18n import _, ngettext
from cockpit.i18n.problem_text import error_lines, notice_text


def main(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    actions = {"add": _add, "list": _list, "remove": _remove, "import": _import}
    return actions[args.action](home, args)


def _add(home: Home, args: argparse.Namespace) -> int:
    spec, notices = add_host(
        home, args.name, args.pasted, replace=args.replace, price=args.price, tags=tuple(args.tags)
    )
    _tell(spec, notices)
    if args.json:
        _print_json([host_fields(spec, load_hosts(home))])
    return ExitCode.OK


def _tell(spec: HostSpec, notices: Iterable[Notice]) -> None:
    _say(_("{name} is recorded: {address}").format(name=spec.name, address=address_text(spec)))
    for notice in notices:
        _say(f"  {notice_text(notice.code, notice.facts)}")


def _remove(home: Home, args: argparse.Namespace) -> int:
    remove_host(home, args.name)
    _say(_("{name} is removed; its runs are not touched.").format(name=args.name))
    return ExitCode.OK


def _list(home: Home, args: argparse.Namespace) -> int:
    hosts = load_hosts(home)
    rows = [host_fields(spec, hosts) for spec in hosts.values()]
    if args.json:
        _print_json(rows)
    elif not rows:
        _say(_('No hosts yet. Add one: cockpit hosts add NAME "ssh -p 41234 root@203.0.113.5"'))
    else:
        print("\n".join(safe_line(line) for line in _table(rows).split("\n")))
    return ExitCode.OK


def host_fields(spec: HostSpec, hosts: Mapping[HostName, HostSpec]) -> dict[str, object]:
    """A host as it would be reached: ssh_config and ssh's own defaults included."""
    host, port, user, identity, jump = _reached(spec, hosts)
    return {
        "name": spec.name,
        "host": host,
        "port": port,
        "user": user,
        "identity": identity,
        "jump": spec.jump or jump,
        "local": spec.local,
        "platform": spec.platform,
        "price_per_h": spec.price_per_h,
        "currency": spec.currency,
        "tags": list(spec.tags),
    }


_Reached = tuple[str | None, int | None, str | None, str | None, str | None]


def _reached(spec: HostSpec, hosts: Mapping[HostName, HostSpec]) -> _Reached:
    from cockpit.transport.ssh_config import resolve

    try:
        found = resolve(spec, hosts)
    except CockpitError as error:
        _say("\n".join(error_lines(error.code, error.facts)))
        key = None if spec.identity is None else str(expanded(spec.identity))
        return spec.host, spec.port, spec.user, key, None
    return found.host, found.port, found.user, found.identity, found.jump


def address_text(spec: HostSpec) -> str:
    """What was said of the way to a host, and no more: user@host:port via jump."""
    if spec.local:
        return _("this machine")
    host = spec.host or ""
    host = f"[{host}]" if ":" in host else host
    user = "" if spec.user is None else f"{spec.user}@"
    port = "" if spec.port is None else f":{spec.port}"
    via = "" if spec.jump is None else _(" through {jump}").format(jump=spec.jump)
    return f"{user}{host}{port}{via}"


def _table(rows: list[dict[str, object]]) -> str:
    """Columns for a person; missing values are left empty."""
    head: tuple[str, ...] = ("NAME", "ADDRESS", "KEY", "THROUGH", "PRICE", "PLATFORM", "TAGS")
    lines = [head, *(_row(row) for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _row(row: Mapping[str, object]) -> tuple[str, ...]:
    address = f"{row['user']}@{row['host']}:{row['port']}"
    price, tags = row["price_per_h"], row["tags"]
    return (
        str(row["name"]),
        _("this machine") if row["local"] else address,
        tilde(str(row["identity"] or "")),
        str(row["jump"] or ""),
        price_text(price, str(row["currency"])) if isinstance(price, float) else "",
        str(row["platform"] or ""),
        " ".join(tags) if isinstance(tags, list) else "",
    )


def _import(home: Home, args: argparse.Namespace) -> int:
    """Record every candidate that can be; what is there already stays unless --replace."""
    candidates = _candidates(args.source)
    if args.only:
        candidates = [candidate for candidate in candidates if candidate.name in args.only]
    if not candidates:
        raise UsageError("import_nothing", source=args.source)
    taken = 0
    refused: CockpitError | None = None
    for candidate in candidates:
        try:
            taken += _take(home, candidate, args)
        except UsageError as error:
            refused = error
            _say(f"{candidate.name}: " + "\n  ".join(error_lines(error.code, error.facts)))
    text = ngettext("{count} host is new.", "{count} hosts are new.", taken).format(count=taken)
    _say(_("{text} Nothing was written.").format(text=text) if args.dry_run else text)
    return int(refused.exit_code) if refused is not None and not taken else ExitCode.OK


def _take(home: Home, candidate: Candidate, args: argparse.Namespace) -> bool:
    if candidate.problem is not None:
        raise candidate.problem
    known = HostName(candidate.name) in load_hosts(home)
    if known and not args.replace:
        _say(_("{name} is known already; left as it was.").format(name=candidate.name))
        return False
    if args.dry_run:
        _say(f"{candidate.name}  {candidate.line}")
        return True
    spec, notices = add_host(home, candidate.name, candidate.line, replace=args.replace)
    _tell(spec, notices)
    if args.json:
        _print_json([host_fields(spec, load_hosts(home))])
    return True


def _candidates(source: str) -> list[Candidate]:
    if source == "-":
        return from_lines(_typed())
    path = expanded("~/.ssh/config" if source == "ssh-config" else source)
    if not is_there(path):
        raise UsageError("import_missing", source=tilde(path))
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise StorageError(path=tilde(path), why=error.strerror or str(error)) from error
    if source == "ssh-config" or looks_like_ssh_config(text):
        return from_ssh_config(path)
    return from_lines(text)


def _typed() -> str:
    """What comes in by stdin, whatever its bytes are."""
    return sys.stdin.buffer.read(MAX_BYTES).decode("utf-8", "replace")


def _print_json(rows: Iterable[Mapping[str, object]]) -> None:
    for row in rows:
        print(json.dumps(row))


def _say(text: str) -> None:
    print("\n".join(safe_line(line) for line in text.split("\n")), file=sys.stderr)
