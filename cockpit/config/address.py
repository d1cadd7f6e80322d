"""Names, users, ports and destinations: what may stand in an address, and what an address says."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from cockpit.config.ssh_words import refused

_HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,255}")
_PORT = re.compile(r"[0-9]{1,5}")
_OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SCOPE = re.compile(r"[A-Za-z0-9._-]{1,32}")
_URL = "ssh://"


@dataclass(frozen=True, slots=True)
class Destination:
    """A [user@]host[:port]; an IPv6 address has no brackets here."""

    host: str
    user: str | None = None
    port: int | None = None


def is_own_name(text: str) -> bool:
    """Whether it may name a host, a profile or a tag: a letter or digit first, then those and . _ -"""
    return _OWN_NAME.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """A DNS name, an alias of ssh_config or an IP address; never something that looks like an option."""
    return _HOST_NAME.fullmatch(text) is not None or _is_ipv6(text)


def is_user(text: str) -> bool:
    return _USER.fullmatch(text) is not None


def parse_port(text: str) -> int:
    if _PORT.fullmatch(text) is None or not 1 <= int(text) <= 65535:
        raise refused("bad_port", text)
    return int(text)


def parse_user(text: str) -> str:
    if not is_user(text):
        raise refused("bad_user", text)
    return text


def parse_host(text: str) -> str:
    """The host without brackets. Raises UsageError."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not is_host(inner) or (inner != text and not _is_ipv6(inner)):
        raise refused("bad_host", text)
    return inner


def parse_destination(text: str) -> Destination:
    """`user@host`, `host:port`, `[v6]:port`, bare IPv6 or `ssh://…`. Raises UsageError."""
    if text.lower().startswith(_URL):
        return _parse_url(text)
    user, at, rest = text.rpartition("@")
    named = parse_user(user) if at else None
    host, port = _split_port(rest)
    return Destination(parse_host(host), named, None if port is None else parse_port(port))


def parse_jump(text: str) -> tuple[Destination, ...]:
    """The hops of `-J`, first to last; none for "none". Raises UsageError."""
    if text.lower() == "none":
        return ()
    hops = tuple(parse_destination(part.strip()) for part in text.split(","))
    if len(hops) > 8:
        raise refused("bad_jump", text)
    return hops


def _parse_url(text: str) -> Destination:
    authority, slash, path = text[len(_URL) :].partition("/")
    if path:
        raise refused("bad_host", text)
    user, at, rest = authority.rpartition("@")
    if ":" in user:
        raise refused("password_in_url")
    host, port = _split_port(rest, bare_ipv6=False)
    return Destination(
        parse_host(host), parse_user(user) if at else None, parse_port(port) if port else None
    )


def _split_port(text: str, *, bare_ipv6: bool = True) -> tuple[str, str | None]:
    """Host and port's text: brackets end an IPv6 address, and several colons are one."""
    if text.startswith("["):
        inner, bracket, after = text.partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise refused("bad_host", text)
        return inner + bracket, after[1:] if after else None
    if bare_ipv6 and text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, port if colon else None


def _is_ipv6(text: str) -> bool:
    address, percent, scope = text.partition("%")
    if ":" not in address or (percent and _SCOPE.fullmatch(scope) is None):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True
