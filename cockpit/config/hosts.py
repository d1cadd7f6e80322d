"""hosts.toml: which hosts there are and how to reach them. Reading needs neither pydantic nor tomlkit.

The fleet's first paint waits for this file, so its flat tables are read by plain functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from cockpit.config import values
from cockpit.config.address import is_host, is_own_name, is_user, parse_jump
from cockpit.config.document import Document, read_document
from cockpit.config.jumps import attach_hops
from cockpit.config.pasted import Forward, PastedHost, parse_pasted
from cockpit.config.paths import Home, expanded, is_there
from cockpit.config.platforms import platform_of
from cockpit.config.spec import HostSpec, Notice
from cockpit.config.values import BadValue, Reader
from cockpit.domain.models import HostName
from cockpit.domain.text import cut_end, safe_line
from cockpit.errors import ConfigError, UsageError

__all__ = [
    "Forward", "HostSpec", "Notice", "add_host", "forward_notices", "host_unknown", "load_hosts",
    "notices_of", "remove_host",
]  # fmt: skip

_NAME_CELLS = 60


def load_hosts(home: Home) -> dict[HostName, HostSpec]:
    """Every host in the file's order; empty when there is no file. Raises ConfigError with every problem."""
    try:
        document = read_document(home.hosts_toml)
    except FileNotFoundError:
        return {}
    hosts = read_hosts(document)
    if document.problems:
        raise ConfigError(file=document.file, problems=document.sorted_problems())
    return hosts


def read_hosts(document: Document) -> dict[HostName, HostSpec]:
    """The hosts of a document; what is wrong is reported to it."""
    for key in document.data:
        if key not in ("defaults", "hosts"):
            document.unknown((key,), ("defaults", "hosts"))
    defaults = document.table(("defaults",), document.data.get("defaults", {}), _DEFAULTS)
    tables = document.data.get("hosts", {})
    if not isinstance(tables, dict):
        document.report(("hosts",), "wrong_type", expected="a table", given=values.shown(tables))
        return {}
    specs: dict[HostName, HostSpec] = {}
    for name, raw in tables.items():
        if not is_own_name(name):
            document.report(("hosts", name), "bad_name", given=values.shown(name))
            continue
        specs[HostName(name)] = _host(document, name, raw, defaults)
    return attach_hops(document, specs)


def _host(document: Document, name: str, raw: object, defaults: Mapping[str, object]) -> HostSpec:
    path = ("hosts", name)
    before = len(document.problems)
    own = document.table(path, raw, _HOST)
    if len(document.problems) == before:
        _check_way(document, path, own)
    pasted = cast("PastedHost | None", own.pop("ssh", None))
    said = {**_from_pasted(pasted), **own}
    inherited = {} if own.get("local") else {k: v for k, v in defaults.items() if k not in said}
    fields = {**said, **inherited}
    amount, currency = cast("tuple[float | None, str | None]", fields.pop("price", (None, None)))
    host = cast("str | None", fields.get("host"))
    fields.setdefault("platform", platform_of(host))
    return HostSpec(
        name=HostName(name),
        price_per_h=amount,
        currency=currency,
        from_defaults=frozenset(inherited) - {"price"},
        **fields,  # type: ignore[arg-type]
    )


def _from_pasted(pasted: PastedHost | None) -> dict[str, object]:
    if pasted is None:
        return {}
    found = {
        "host": pasted.host,
        "port": pasted.port,
        "user": pasted.user,
        "identity": pasted.identity,
        "jump": pasted.jump,
        "forwards": pasted.forwards,
    }
    return {key: value for key, value in found.items() if value is not None}


def _check_way(document: Document, path: tuple[str, ...], own: Mapping[str, object]) -> None:
    """A host is reached by `ssh` or `host`, or is this machine; never by none, never by both."""
    ways = [key for key in ("ssh", "host") if key in own]
    if own.get("local"):
        for key in ("ssh", "host", "port", "user", "identity", "jump"):
            if key in own:
                document.report((*path, key), "local_and_remote")
    elif not ways:
        document.report(path, "no_way_to_host")


def add_host(
    home: Home,
    name: str,
    pasted: str,
    *,
    replace: bool = False,
    price: str | None = None,
    tags: tuple[str, ...] = (),
) -> tuple[HostSpec, tuple[Notice, ...]]:
    """Record a host: no connection, no question. Raises UsageError, ConfigError, StorageError."""
    from cockpit.config.hosts_file import record_host

    check_host_name(name)
    found = parse_pasted(pasted)
    extra = _extra_keys(price, tags)
    record_host(home, name, pasted, found, replace=replace, extra=extra)
    spec = load_hosts(home)[HostName(name)]
    return spec, notices_of(spec, found)


def remove_host(home: Home, name: str) -> None:
    """Take a host out of hosts.toml. Raises UsageError when it is not there."""
    from cockpit.config.hosts_file import erase_host

    erase_host(home, name)


def host_unknown(name: str, known: Iterable[str]) -> UsageError:
    """What is said about a name that no host has: what was probably meant, and which there are."""
    names = tuple(known)
    return UsageError(
        "host_unknown",
        host=cut_end(safe_line(name), _NAME_CELLS) or '""',
        suggestion=values.closest(name, names),
        known=names,
    )


def check_host_name(name: str) -> None:
    if not is_own_name(name):
        raise UsageError("bad_host_name", name=values.shown(name))


def _extra_keys(price: str | None, tags: tuple[str, ...]) -> dict[str, object]:
    extra: dict[str, object] = {}
    try:
        if price is not None:
            values.price(price)
            extra["price"] = price
        if tags:
            extra["tags"] = list(_tags(tags))
    except BadValue as error:
        raise UsageError(error.code, **error.facts) from error
    return extra


def notices_of(spec: HostSpec, pasted: PastedHost) -> tuple[Notice, ...]:
    """What a person should know about a line that was taken: dropped parts, a missing key file, forwards."""
    notices = [Notice(f"dropped_{part.why}", {"text": part.text}) for part in pasted.dropped]
    if spec.identity is not None and not is_there(spec.identity):
        notices.append(
            Notice("key_file_missing", {"path": spec.identity, "found": _keys_that_exist()})
        )
    return (*notices, *forward_notices(spec))


def forward_notices(spec: HostSpec) -> tuple[Notice, ...]:
    return tuple(
        Notice("forward", {"listen": f.listen_port, "to": f"{f.host}:{f.port}"})
        for f in spec.forwards
    )


def _keys_that_exist() -> tuple[str, ...]:
    """Names of private keys in ~/.ssh, told by their public halves."""
    folder = expanded("~/.ssh")
    try:
        names = sorted(path.stem for path in folder.glob("*.pub") if path.with_suffix("").is_file())
    except OSError:
        return ()
    return tuple(names[:5])


def _ssh(value: object) -> PastedHost:
    line = values.filled(value)
    try:
        return parse_pasted(line)
    except UsageError as error:
        raise BadValue(error.code, (), **error.facts) from error


def _address(value: object) -> str:
    text = values.filled(value)
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not is_host(inner):
        raise BadValue("bad_host", given=values.shown(text))
    return inner


def _user(value: object) -> str:
    text = values.filled(value)
    if not is_user(text):
        raise BadValue("bad_user", given=values.shown(text))
    return text


def _jump(value: object) -> str:
    text = values.filled(value)
    try:
        parse_jump(text)
    except UsageError as error:
        raise BadValue("bad_jump", given=values.shown(text)) from error
    return text


_tags = values.list_of(values.own_name)
_DEFAULTS: dict[str, Reader[object]] = {
    "port": values.port,
    "user": _user,
    "identity": values.filled,
    "jump": _jump,
    "price": values.price,
    "platform": values.own_name,
    "tags": _tags,
    "data_dir": values.filled,
    "python": values.filled,
    "run_root": values.filled,
}
_HOST: dict[str, Reader[object]] = {
    "ssh": _ssh,
    "host": _address,
    "local": values.flag,
    **_DEFAULTS,
}
