"""How a script reaches /bin/sh through any login shell, and where its output begins.

The command is one fixed string: `exec`, a path and one single-quoted word without backslash or `!` mean the
same to sh, bash, dash, zsh, fish, csh and tcsh. `read` takes one line byte by byte, so nothing of what follows
is swallowed (`sh -s` reads ahead in dash). That costs about 0.6 ms a kilobyte: keep scripts short and `write`
the bulk to what they start.
"""

from __future__ import annotations

import re
import secrets

from cockpit.errors import ProtocolError

READ_SCRIPT = 'IFS= read -r s; eval "$(printf %b "$s")"'
"""Takes the next line of stdin, an `escaped_line`, and runs it."""
BOOTSTRAP = f"exec /bin/sh -c '{READ_SCRIPT}'"
NOISE_LIMIT = 64 * 1024

_ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n"}
_SPECIAL = re.compile(rb"[^ -\[\]-~]")


def new_token() -> bytes:
    """A word that no rc file prints by chance and no host can know beforehand."""
    return b"cockpit-" + secrets.token_hex(16).encode()


def framed(token: bytes) -> bytes:
    """The sentinel as it appears in the output."""
    return b"\0" + token + b"\0"


def script_line(script: bytes, token: bytes) -> bytes:
    """The one line to send: it prints the sentinel on both streams, then becomes `script`.

    Stdout comes last: once it is seen, closing the channel no longer breaks the shell's own printing.
    """
    if b"\0" in script:
        raise ValueError("a shell script cannot hold NUL bytes")
    opening = b"printf '\\000%s\\000' " + token
    whole = opening + b" >&2; " + opening + b"\n" + script
    return escaped_line(whole)


def escaped_line(script: bytes) -> bytes:
    """Any script without NUL as one line of plain ASCII, for READ_SCRIPT."""
    return _SPECIAL.sub(_escape, script) + b"\n"


def _escape(found: re.Match[bytes]) -> bytes:
    byte: bytes = found[0]
    return _ESCAPES.get(byte) or b"\\0%03o" % ord(byte)


class Preamble:
    """Splits a stream at the sentinel: what came before is noise, and there may only be so much of it."""

    def __init__(self, token: bytes, limit: int = NOISE_LIMIT) -> None:
        self._mark = framed(token)
        self._limit = limit
        self._held = bytearray()
        self.found = False
        self.noise = b""

    def feed(self, data: bytes) -> bytes:
        """What of `data` comes after the sentinel. Raises ProtocolError beyond the limit."""
        if self.found:
            return data
        searched = max(0, len(self._held) - len(self._mark) + 1)
        self._held += data
        at = self._held.find(self._mark, searched)
        if at < 0:
            self.noise = bytes(self._held[: self._limit])
            if len(self._held) > self._limit + len(self._mark):
                self._held.clear()
                raise ProtocolError(why="noise_too_long", limit=self._limit)
            return b""
        rest = bytes(self._held[at + len(self._mark) :])
        self.noise = bytes(self._held[: min(at, self._limit)])
        self.found = True
        self._held = bytearray()
        return rest
