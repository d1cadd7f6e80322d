"""Whether ssh's config files can say anything about a host: where they cannot, `ssh -G` need not be started.

Asking ssh costs a process for each host. Only the plainest files are judged here; whatever is in doubt
(Match, quotes, tokens, an option that we use or do not know) is left to ssh.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

FILE_LIMIT: Final = 64 * 1024
DEPTH: Final = 4

_LINE: Final = re.compile(r"\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+)(\S.*?)\s*")
_PLAIN: Final = {
    "host": re.compile(r"[A-Za-z0-9_.:@/%*?!\s-]+"),
    "include": re.compile(r"[A-Za-z0-9_./*?\s-]+"),
    "port": re.compile(r"[0-9]+"),
}
"""Neither quotes nor comments nor brackets, and in Include no token and no variable."""
_OF_NO_USE: Final = frozenset({
    "addkeystoagent", "controlmaster", "controlpath", "controlpersist", "gssapiauthentication",
    "gssapidelegatecredentials", "hashknownhosts", "sendenv", "serveralivecountmax",
    "serveraliveinterval", "stricthostkeychecking", "tcpkeepalive", "visualhostkey",
})  # fmt: skip
"""Options that ssh_config may hold for any host without changing what we would dial."""
_OF_OTHERS: Final = _OF_NO_USE | frozenset({
    "certificatefile", "forwardagent", "forwardx11", "hostkeyalias", "hostname",
    "identitiesonly", "identityfile", "localforward", "port", "preferredauthentications",
    "proxycommand", "proxyjump", "remotecommand", "requesttty", "user", "userknownhostsfile",
})  # fmt: skip
"""Options that ssh is sure to take, so that the section of another host holds no error for us."""


class _InDoubt(Exception):
    """Only ssh can tell."""


def says_nothing(host: str, files: Iterable[Path]) -> bool:
    """True only where every option of `files` that might apply to `host` is of no use to us."""
    try:
        for file in files:
            _check(host.lower(), file, DEPTH)
    except _InDoubt:
        return False
    return True


def _check(host: str, file: Path, depth: int) -> None:
    applies = True
    for keyword, value in _options(file):
        words = value.split()
        if keyword == "host":
            applies = any(_matches(host, word) for word in words)
        elif keyword == "include":
            for other in _included(words, depth):
                _check(host, other, depth - 1)
        elif keyword not in (_OF_NO_USE if applies else _OF_OTHERS):
            raise _InDoubt


def _options(file: Path) -> Iterator[tuple[str, str]]:
    """(keyword in lower case, value) of each line."""
    for line in _text(file).split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        option = _LINE.fullmatch(line)
        if option is None:
            raise _InDoubt
        keyword, value = option[1].lower(), option[2]
        plain = _PLAIN.get(keyword)
        if plain is not None and not plain.fullmatch(value):
            raise _InDoubt
        yield keyword, value


def _text(file: Path) -> str:
    """What the file holds; nothing where there is none. ssh refuses files that others may write to."""
    try:
        with file.open("rb") as opened:
            about = os.fstat(opened.fileno())
            data = opened.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        return ""
    except OSError:
        raise _InDoubt from None
    if len(data) > FILE_LIMIT or about.st_mode & 0o022 or about.st_uid not in (0, os.getuid()):
        raise _InDoubt
    return data.decode("utf-8", "replace")


def _included(words: Sequence[str], depth: int) -> Iterator[Path]:
    """The files of an Include; where a relative one is looked for, ssh knows."""
    for word in words:
        if depth == 0 or not word.startswith("/"):
            raise _InDoubt
        yield from map(Path, glob.glob(word))


def _matches(host: str, pattern: str) -> bool:
    """Whether a pattern may apply; what a negated one would take away again is not looked at."""
    return not pattern.startswith("!") and fnmatchcase(host, pattern.lower())
