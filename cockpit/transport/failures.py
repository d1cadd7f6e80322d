"""Foreign exceptions become ours: each class of failure has its own error, and `why` names the case.

    HostUnreachable       why = refused | timeout | no_such_name | no_route | no_banner | login_timeout | not_ssh |
                                busy | login_lost | jump_refused | proxy_command | bad_name | jump_loop;
                                code bad_ssh_config
    AuthenticationFailed  why = no_key_accepted | no_keys | passphrase_needed | password_refused | declined |
                                too_many_tries | method_not_offered
    HostKeyUnknown, HostKeyChanged (why = another_key | revoked | certificate | mismatch)
    LinkLost              why = keepalive | reset | closed | ended_by_host | max_sessions | timeout | not_connected
    ProtocolError         why = no_sentinel | login_takes_terminal | noise_too_long | exec_refused |
                                no_common_algorithm | broken
    ProxyWithoutExec

Facts always hold `host`; `hop` (from 1) and `hop_name` say that a jump host is meant; text of a host is cleaned.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

import asyncssh

from cockpit.domain.models import HostName
from cockpit.errors import (
    AuthenticationFailed,
    Fact,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LinkLost,
    ProtocolError,
    ProxyWithoutExec,
    TransportError,
)
from cockpit.transport.brief import brief
from cockpit.transport.endpoints import Endpoint
from cockpit.transport.known_hosts import KnownKeys
from cockpit.transport.questions import LoginRecord

PROXIES_WITHOUT_EXEC = frozenset({"ssh.runpod.io"})
_PROXY_WORDS = (b"doesn't support PTY", b"does not support PTY", b"exec is not supported")
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})


@dataclass(frozen=True, slots=True)
class Place:
    """Which server of which host is being dialled."""

    host: HostName
    endpoint: Endpoint
    hop: int | None = None
    """From 1 for a jump host; None for the host itself."""
    before: tuple[Endpoint, ...] = ()
    """The jump hosts on the way to it."""

    @property
    def server(self) -> str:
        """What tells one sshd from another: address and port, as seen from where it is dialled."""
        via = ",".join(jump.text for jump in self.before)
        return f"{via}>{self.endpoint.address}:{self.endpoint.port}"

    @property
    def facts(self) -> dict[str, Fact]:
        at = self.endpoint
        facts: dict[str, Fact] = {"host": self.host, "address": at.address, "port": at.port}
        facts["user"] = at.user
        if self.hop is not None:
            facts |= {"hop": self.hop, "hop_name": at.name}
        return facts


def dial_failed(error: Exception, place: Place, timeout_s: float | None = None) -> TransportError:
    """The TCP connection did not come about, here or at the jump host before."""
    if isinstance(error, asyncssh.ChannelOpenError):
        return _refused_behind_jump(error, place)
    if isinstance(error, TimeoutError):
        return HostUnreachable(why="timeout", timeout_s=timeout_s, **place.facts)
    if isinstance(error, socket.gaierror):
        return HostUnreachable(why="no_such_name", text=brief(error.strerror), **place.facts)
    number = error.errno if isinstance(error, OSError) else None
    why = "no_route" if number in _NO_ROUTE else "refused"
    if number == errno.ETIMEDOUT:
        why = "timeout"
    text = brief(error.strerror if isinstance(error, OSError) else error)
    return HostUnreachable(why=why, text=text, **place.facts)


def _refused_behind_jump(error: asyncssh.ChannelOpenError, place: Place) -> HostUnreachable:
    """The jump host could not reach the next server, or may not: then it is the one to name."""
    why, facts = _jump_answer(error), dict(place.facts)
    if why == "jump_refused" and place.before:
        facts |= {"hop": len(place.before), "hop_name": place.before[-1].name}
    return HostUnreachable(why=why, text=brief(error.reason), **facts)


def _jump_answer(error: asyncssh.ChannelOpenError) -> str:
    """sshd passes on the words of its own connect()."""
    text = error.reason.lower()
    if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        return "jump_refused"
    for words, why in (
        ("refused", "refused"),
        ("timed out", "timeout"),
        ("not known", "no_such_name"),
        ("no address", "no_such_name"),
        ("name resolution", "no_such_name"),
        ("unreachable", "no_route"),
        ("no route", "no_route"),
    ):
        if words in text:
            return why
    return "refused"


def key_refused(
    error: Exception, place: Place, record: LoginRecord, known: KnownKeys
) -> TransportError:
    """The host's key is not one that we know: the two cases that asyncssh does not tell apart."""
    key = record.offered_key
    if key is None:
        text = brief(error)
        why = "revoked" if "revoked" in text else "certificate"
        return HostKeyChanged(why=why, text=text, fingerprint=None, known=None, **place.facts)
    facts: dict[str, Fact] = {
        "fingerprint": key.get_fingerprint("sha256"),
        "key_type": key_type(key),
        **place.facts,
    }
    if key in known.revoked:
        return HostKeyChanged(why="revoked", known=None, **facts)
    if not known.trusted:
        return HostKeyUnknown(**facts)
    same = [old for old in known.trusted if old.algorithm == key.algorithm]
    old = (same or list(known.trusted))[0]
    return HostKeyChanged(
        why="another_key",
        known=old.get_fingerprint("sha256"),
        known_key_type=key_type(old),
        **facts,
    )


def key_type(key: asyncssh.SSHKey) -> str:
    """ED25519, ECDSA, RSA: as people compare them."""
    name = key.get_algorithm().removeprefix("sk-").removeprefix("ssh-")
    return "ECDSA" if name.startswith("ecdsa") else name.split("@")[0].split("-")[0].upper()


def login_failed(
    error: Exception, place: Place, record: LoginRecord, known: KnownKeys, methods: tuple[str, ...]
) -> TransportError:
    """The server was reached and did not let us in."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return key_refused(error, place, record, known)
    if isinstance(error, asyncssh.PermissionDenied):
        return denied(place, record, methods)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return ProtocolError(why="no_common_algorithm", text=brief(error.reason), **place.facts)
    if isinstance(error, asyncssh.DisconnectError):
        if "too many authentication failures" in error.reason.lower():
            return denied(place, record, methods, why="too_many_tries")
        if isinstance(error, asyncssh.ProtocolNotSupported):
            return HostUnreachable(why="not_ssh", text=brief(error.reason), **place.facts)
        if not isinstance(error, asyncssh.ConnectionLost):
            return ProtocolError(why="broken", text=brief(error.reason), **place.facts)
    return HostUnreachable(why="login_lost", text=brief(error), **place.facts)


def denied(
    place: Place, record: LoginRecord, methods: tuple[str, ...], why: str | None = None
) -> AuthenticationFailed:
    """What was offered, so that the person sees what is missing."""
    return AuthenticationFailed(
        why=why or _denied_why(record, methods),
        agent_keys=record.agent_keys,
        files=tuple(record.files),
        missing_files=tuple(record.missing_files),
        locked_file=record.passphrase_needed,
        methods=methods,
        banner=brief(record.banner) or None,
        **place.facts,
    )


def _denied_why(record: LoginRecord, methods: tuple[str, ...]) -> str:
    if record.passphrase_needed:
        return "declined" if record.declined else "passphrase_needed"
    if record.declined:
        return "declined"
    if record.passwords_tried:
        return "password_refused"
    if methods and "publickey" not in methods:
        return "method_not_offered"
    if not record.files and not record.agent_keys:
        return "no_keys"
    return "no_key_accepted"


def link_lost(error: Exception | None, host: HostName) -> LinkLost:
    """A connection that was there is gone; `text` says it in the library's words."""
    text = brief(getattr(error, "reason", "") or error or "")
    why = "closed"
    if error is None:
        why = "closed"
    elif "keepalive" in text:
        why = "keepalive"
    elif isinstance(error, (ConnectionResetError, BrokenPipeError)):
        why = "reset"
    elif isinstance(error, asyncssh.DisconnectError) and not isinstance(
        error, asyncssh.ConnectionLost
    ):
        why = "ended_by_host"
    elif isinstance(error, asyncssh.ConnectionLost):
        why = "reset"
    return LinkLost(why=why, text=text or None, host=host)


_NEEDS_TERMINAL = (b"not a terminal", b"Must be connected to a terminal", b"not a tty")
"""What tmux and screen say when an rc file starts them for a command."""


def no_sentinel(host: HostName, why: str, noise: bytes) -> TransportError:
    """The login shell did not run our bootstrap: a proxy for people, a restricted shell, or an rc file that hangs."""
    if any(words in noise for words in _PROXY_WORDS):
        return ProxyWithoutExec(host=host, text=brief(noise.decode("utf-8", "replace")))
    if why == "no_sentinel" and any(words in noise for words in _NEEDS_TERMINAL):
        why = "login_takes_terminal"
    lines = [brief(line) for line in noise.decode("utf-8", "replace").splitlines() if line.strip()]
    return ProtocolError(host=host, why=why, text=lines[-1] if lines else None)
