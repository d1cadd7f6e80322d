"""What ssh_config says about a host: OpenSSH's own answer (`ssh -G`), or asyncssh's parser where there is no ssh.

Where no config file can bear on the host, its answer is what ssh says of any host, asked once.
Both give the same shape: option name in lower case -> its values. Nothing here runs a word of a pasted line:
names are checked before (`ssh_config.check_word`), and `Match exec` and ProxyCommand come from the person's files.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from asyncssh.config import ConfigParseError, SSHClientConfig

from cockpit.domain.text import safe_line
from cockpit.errors import HostUnreachable
from cockpit.transport.ssh_config_files import says_nothing

Options: TypeAlias = Mapping[str, tuple[str, ...]]

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
RESOLVE_TIMEOUT_S = 10.0
NO_CONFIG = "/dev/null"
SYSTEM_SSH = ("/usr/bin/ssh", "/bin/ssh")
"""These read SYSTEM_CONFIG; an ssh of another place may have a file of its own."""

_MANY = frozenset({"identityfile", "certificatefile", "setenv", "sendenv"})
_LISTS = frozenset({"userknownhostsfile", "globalknownhostsfile"})
_ASKING = threading.Lock()
"""Many hosts are resolved at once, each in its thread: one of them asks for the plain options."""


def config_file(chosen: Path | None = None) -> Path:
    """The person's ssh_config: the one that was named, else that of $HOME."""
    return chosen if chosen is not None else Path.home() / ".ssh" / "config"


def config_argument(chosen: Path | None = None) -> tuple[str, ...]:
    """The -F that makes ssh read the same file as we do; empty where ssh finds it by itself.

    ssh looks in the account's home whatever $HOME says.
    """
    if chosen is None and str(Path.home()) == pwd.getpwuid(os.getuid()).pw_dir:
        return ()
    file = config_file(chosen)
    return ("-F", str(file) if file.is_file() else NO_CONFIG)


def read_options(host: str, user: str | None, port: int | None, config: Path | None) -> Options:
    """Every option that applies to `host`. Raises HostUnreachable `bad_ssh_config`."""
    ssh = shutil.which("ssh")
    if ssh is None:
        return _parsed(host, user, port, config)
    argument = config_argument(config)
    files = _files(ssh, argument)
    if files is not None and says_nothing(host, files):
        return _plain(host, user, port)
    said = ("-l", user) if user else ()
    where = ("-p", str(port)) if port else ()
    return _asked(ssh, (*argument, *said, *where), host)


def _files(ssh: str, argument: tuple[str, ...]) -> tuple[Path, ...] | None:
    """The config files that this ssh reads; None for one whose own folder we do not know."""
    if argument:
        return (Path(argument[1]),) if argument[1] != NO_CONFIG else ()
    return (config_file(), SYSTEM_CONFIG) if ssh in SYSTEM_SSH else None


def _plain(host: str, user: str | None, port: int | None) -> Options:
    with _ASKING:
        options = dict(plain_options())
    options["host"] = (host,)
    options["hostname"] = (host if ":" in host else host.lower(),)
    if user:
        options["user"] = (user,)
    if port:
        options["port"] = (str(port),)
    return options


@lru_cache(maxsize=1)
def plain_options() -> Options:
    """What ssh does without any config file; empty where there is no ssh."""
    ssh = shutil.which("ssh")
    return _asked(ssh, ("-F", NO_CONFIG), "host.invalid") if ssh else {}


def _asked(ssh: str, arguments: tuple[str, ...], host: str) -> Options:
    try:
        answer = subprocess.run(
            [ssh, "-G", *arguments, "--", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RESOLVE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostUnreachable("bad_ssh_config", host=host, text=str(error)) from error
    if answer.returncode != 0:
        raise HostUnreachable("bad_ssh_config", host=host, text=_last_words(answer.stderr))
    return _table(answer.stdout.decode("utf-8", "replace"))


def _last_words(stderr: bytes) -> str:
    lines = [safe_line(line) for line in stderr.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _table(text: str) -> Options:
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        name = name.lower()
        if name in _LISTS:
            found[name] = _paths(value)
        elif name in _MANY:
            found[name] = (*found.get(name, ()), value)
        else:
            found[name] = (value,)
    return found


def _paths(value: str) -> tuple[str, ...]:
    """Split a list of files as ssh prints it, without quotes: a piece that starts no path belongs to the last."""
    found: list[str] = []
    for piece in value.split(" "):
        if found and piece[:1] not in ("/", "~", "$", "%") and piece != "none":
            found[-1] += " " + piece
        else:
            found.append(piece)
    return tuple(found)


def _parsed(host: str, user: str | None, port: int | None, config: Path | None) -> Options:
    files: list[str | Path] = [
        file
        for file in (config_file(config), *(() if config else (SYSTEM_CONFIG,)))
        if os.access(file, os.R_OK)
    ]
    try:
        options = SSHClientConfig.load(
            None, files, False, False, False, getpass.getuser(), user or (), host, port or ()
        ).get_options(False)
    except (ConfigParseError, OSError, UnicodeDecodeError) as error:
        text = safe_line(str(error))
        raise HostUnreachable("bad_ssh_config", host=host, text=text) from error
    found = {name.lower(): _words(value) for name, value in options.items()}
    found.setdefault("hostname", (host,))
    return found


def _words(value: object) -> tuple[str, ...]:
    if value is None:
        return ("none",)
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, (list, tuple)):
        return tuple(str(item) for item in value) or ("none",)
    return (str(value),)
