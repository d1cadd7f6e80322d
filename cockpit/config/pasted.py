"""The ssh command that a rental platform shows, as a person pastes it: understood, never run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cockpit.config.address import (
    Destination,
    is_host,
    parse_destination,
    parse_host,
    parse_jump,
    parse_port,
    parse_user,
)
from cockpit.config.ssh_options import (
    DROPPED_LETTERS,
    DROPPED_OPTIONS,
    FLAGS,
    REFUSED_LETTERS,
    REFUSED_OPTIONS,
    WITH_VALUE,
)
from cockpit.config.ssh_words import refused, split_words
from cockpit.errors import UsageError

_PROGRAMS = frozenset({"ssh", "ssh.exe", "/usr/bin/ssh", "/bin/ssh", "/usr/local/bin/ssh"})
_ALL_ADDRESSES = frozenset({"0.0.0.0", "::", "*"})


@dataclass(frozen=True, slots=True)
class Forward:
    """A port of this computer's loopback that leads to a port as the host sees it (`-L`)."""

    listen_port: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A part that was read and is not honoured. `why` is a code such as host_key_check or agent_forwarding."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class PastedHost:
    """What a pasted line says; None where it says nothing."""

    host: str
    """Empty only in what `read_pasted` makes of a line that is not whole yet."""
    port: int | None = None
    user: str | None = None
    identity: str | None = None
    jump: str | None = None
    forwards: tuple[Forward, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def parse_pasted(text: str) -> PastedHost:
    """Read one pasted line. Raises UsageError with a code `pasted_…` and the offending `word`."""
    pasted, problem = read_pasted(text)
    if problem is not None:
        raise problem
    return pasted


def read_pasted(text: str) -> tuple[PastedHost, UsageError | None]:
    """What is understood so far, and what stands in the way: for a line that is still being typed."""
    reader = _Reader()
    problem: UsageError | None = None
    try:
        reader.read(split_words(text))
    except UsageError as error:
        problem = error
    return reader.seen(), problem


class _Reader:
    """Goes through the words as OpenSSH's own option parser does: the first value of an option wins."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._host: str | None = None
        self._host_name: str | None = None
        self._port: int | None = None
        self._user: str | None = None
        self._identity: str | None = None
        self._jump: str | None = None
        self._forwards: list[Forward] = []
        self._dropped: list[Dropped] = []
        self._letters: dict[str, Callable[[str], None]] = {
            "p": self._set_port,
            "l": self._set_user,
            "i": self._set_identity,
            "J": self._set_jump,
            "L": self._add_forward,
            "o": self._option,
        }
        self._options: dict[str, Callable[[str], None]] = {
            "port": self._set_port,
            "user": self._set_user,
            "identityfile": self._set_identity,
            "hostname": self._set_host_name,
            "proxyjump": self._set_jump,
            "localforward": lambda value: self._add_forward(":".join(value.split())),
        }

    def read(self, words: list[str]) -> None:
        self._words = _without_program(words)
        while self._words:
            word = self._words.pop(0)
            if word == "--" and self._host is None:
                self._destination(self._words.pop(0) if self._words else "")
            elif word == "--":
                self._drop_command(self._words)
                break
            elif word.startswith("-") and len(word) > 1:
                self._cluster(word[1:])
            elif self._host is None:
                self._destination(word)
            else:
                self._drop_command([word, *self._words])
                break
        if self._host is None:
            raise refused("no_host")

    def seen(self) -> PastedHost:
        return PastedHost(
            host=self._host_name or self._host or "",
            port=self._port,
            user=self._user,
            identity=self._identity,
            jump=self._jump or None,
            forwards=tuple(self._forwards),
            dropped=tuple(self._dropped),
        )

    def _cluster(self, letters: str) -> None:
        """A word of option letters: flags first, then at most one that takes the rest as its value."""
        for position, letter in enumerate(letters):
            if letter in WITH_VALUE:
                value = letters[position + 1 :] or self._next_value(letter)
                self._letter(letter, value)
                return
            if letter not in FLAGS:
                raise refused("unknown_option", f"-{letters[position:]}")
            self._drop(f"-{letter}", DROPPED_LETTERS.get(letter, "not_needed"))

    def _letter(self, letter: str, value: str) -> None:
        if letter in REFUSED_LETTERS:
            raise refused("refused_option", f"-{letter} {value}", option=REFUSED_LETTERS[letter])
        honour = self._letters.get(letter)
        if honour is None:
            self._drop(f"-{letter} {value}", DROPPED_LETTERS.get(letter, "not_needed"))
        else:
            honour(value)

    def _next_value(self, letter: str) -> str:
        if not self._words:
            raise refused("missing_value", option=f"-{letter}")
        return self._words.pop(0)

    def _option(self, text: str) -> None:
        name, value = _split_option(text)
        key = name.lower()
        if key in REFUSED_OPTIONS:
            raise refused("refused_option", text, option=name)
        if not name.isascii() or not name.isalnum():
            raise refused("unknown_option", f"-o {text}")
        honour = self._options.get(key)
        if honour is None:
            self._drop(f"-o {text}", DROPPED_OPTIONS.get(key, "not_needed"))
        elif not value:
            raise refused("missing_value", option=name)
        else:
            honour(value)

    def _destination(self, word: str) -> None:
        found: Destination = parse_destination(word)
        self._host = found.host
        if self._user is None:
            self._user = found.user
        if self._port is None:
            self._port = found.port

    def _set_port(self, value: str) -> None:
        port = parse_port(value)
        self._port = port if self._port is None else self._port

    def _set_user(self, value: str) -> None:
        user = parse_user(value)
        self._user = user if self._user is None else self._user

    def _set_host_name(self, value: str) -> None:
        host = parse_host(value)
        self._host_name = host if self._host_name is None else self._host_name

    def _set_identity(self, value: str) -> None:
        if not value.strip():
            raise refused("missing_value", option="-i")
        if self._identity is None:
            self._identity = value
        else:
            self._drop(f"-i {value}", "second_identity")

    def _set_jump(self, value: str) -> None:
        hops = parse_jump(value)
        if self._jump is None:
            self._jump = value if hops else ""

    def _add_forward(self, value: str) -> None:
        if "/" in value:
            self._drop(f"-L {value}", "socket_forward")
            return
        bind, forward = _parse_forward(value)
        if bind in _ALL_ADDRESSES or (bind and is_host(bind) and not _is_loopback(bind)):
            self._drop(bind, "bind_address")
        self._forwards.append(forward)

    def _drop_command(self, words: list[str]) -> None:
        if words:
            self._drop(" ".join(words), "remote_command")

    def _drop(self, text: str, why: str) -> None:
        self._dropped.append(Dropped(text, why))


def _without_program(words: list[str]) -> list[str]:
    """The words after `ssh`, which may be missing when an option or an address comes first."""
    if not words:
        raise refused("empty")
    first = words[0]
    if first in _PROGRAMS:
        return words[1:]
    if first.startswith("-") or "@" in first or first.lower().startswith("ssh://"):
        return words
    alone = all(word.startswith("-") for word in words[1:2])
    if alone and any(char in first for char in ".:") and _is_destination(first):
        return words
    raise refused("another_program", first)


def _is_destination(word: str) -> bool:
    try:
        parse_destination(word)
    except UsageError:
        return False
    return True


def _split_option(text: str) -> tuple[str, str]:
    """Name and value of `Name=value`, `Name value` or `Name = "value"`."""
    stripped = text.strip()
    end = next((i for i, char in enumerate(stripped) if char in "= \t"), len(stripped))
    name, value = stripped[:end], stripped[end:].strip()
    value = value[1:].strip() if value.startswith("=") else value
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return name, value


def _parse_forward(text: str) -> tuple[str, Forward]:
    """The bind address ("" when not given) and the forward of `[bind:]port:host:port`."""
    parts = _colon_parts(text)
    if len(parts) not in (3, 4):
        raise refused("bad_forward", text)
    bind = parts[0] if len(parts) == 4 else ""
    if bind and bind != "*" and not is_host(bind):
        raise refused("bad_forward", text)
    listen, host, port = parts[-3:]
    return bind, Forward(parse_port(listen), parse_host(host), parse_port(port))


def _colon_parts(text: str) -> list[str]:
    """Split at colons outside brackets; the brackets go."""
    parts = [""]
    inside = False
    for char in text:
        if char in "[]":
            inside = char == "["
        elif char == ":" and not inside:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")
