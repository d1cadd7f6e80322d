"""Changing hosts.toml: a person's comments and order stay, and a file with mistakes is not touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import tomlkit
from tomlkit.items import InlineTable, Table
from tomlkit.toml_document import TOMLDocument

from cockpit.config.document import parse_document
from cockpit.config.files import locked, write_atomic
from cockpit.config.hosts import host_unknown, load_hosts, read_hosts
from cockpit.config.pasted import PastedHost
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.errors import UsageError

_HEADER = '# Hosts of cockpit. `cockpit hosts add NAME "ssh ..."` writes here; so may you.\n\n'


def record_host(
    home: Home,
    name: str,
    line: str,
    pasted: PastedHost,
    *,
    replace: bool,
    extra: Mapping[str, object],
) -> None:
    """Write `[hosts.NAME]`. Raises UsageError when it exists and `replace` is off."""
    with locked(home.root):
        known = load_hosts(home)
        if HostName(name) in known and not replace:
            raise UsageError("host_exists", host=name)
        document = _read(home)
        hosts = _hosts_table(document)
        if name in hosts:
            _readdress(cast("Table", hosts[name]), line, pasted)
        else:
            hosts[name] = _new_table(hosts, line)
        for key, value in extra.items():
            cast("Table", hosts[name])[key] = value
        _write(home, tomlkit.dumps(document))


def erase_host(home: Home, name: str) -> None:
    """Take `[hosts.NAME]` out. Raises UsageError when it is not there or another host needs it."""
    with locked(home.root):
        known = load_hosts(home)
        if HostName(name) not in known:
            raise host_unknown(name, known)
        through = tuple(
            other.name for other in known.values() if name in {str(hop.name) for hop in other.hops}
        )
        if through:
            raise UsageError("host_is_jump", host=name, hosts=through)
        document = _read(home)
        del _hosts_table(document)[name]
        _write(home, tomlkit.dumps(document))


def _read(home: Home) -> TOMLDocument:
    try:
        return tomlkit.parse(home.hosts_toml.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return tomlkit.parse(_HEADER)


def _write(home: Home, text: str) -> None:
    """Write what reads back without a problem; otherwise the file stays as it was."""
    document = parse_document(text.encode(), str(home.hosts_toml))
    read_hosts(document)
    if document.problems:
        first = document.problems[0]
        raise UsageError(first.code, **first.facts)
    write_atomic(home.hosts_toml, text)


def _hosts_table(document: TOMLDocument) -> Table | InlineTable:
    if "hosts" not in document:
        document.add("hosts", tomlkit.table(is_super_table=True))
    return cast("Table", document["hosts"])


def _new_table(hosts: Table | InlineTable, line: str) -> Table | InlineTable:
    table = tomlkit.inline_table() if isinstance(hosts, InlineTable) else tomlkit.table()
    table["ssh"] = _without_prompt(line)
    return table


def _readdress(table: Table, line: str, pasted: PastedHost) -> None:
    """Give a host the new line; keys of the old address go, since a single key would win over it."""
    stale = ["host", "port", "local"]
    stale += [key for key in ("user", "identity", "jump") if getattr(pasted, key) is not None]
    for key in stale:
        if key in table:
            table.remove(key)
    table["ssh"] = _without_prompt(line)


def _without_prompt(line: str) -> str:
    text = line.strip()
    return text[1:].strip() if text[:1] == "$" and text[1:2].isspace() else text
