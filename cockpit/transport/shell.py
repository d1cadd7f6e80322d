"""The system's own ssh for a person's shell: our resolution, our known keys, as strict as we are.

HostKeyAlias holds the very name under which we look a key up, so that ssh neither falls back to an entry without
the port nor to the address; jumps are spelled out as ProxyCommand, since ssh hands none of this to its own -J.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.errors import TransportError
from cockpit.transport.endpoints import Endpoint
from cockpit.transport.known_hosts import written_name
from cockpit.transport.ssh_config import resolve
from cockpit.transport.ssh_options import NO_CONFIG, config_argument


def shell_argv(
    spec: HostSpec,
    home: Home,
    hosts: Mapping[HostName, HostSpec] | None = None,
    *,
    ssh_config: Path | None = None,
) -> list[str]:
    """The command that opens a shell on the host in this terminal. Raises HostUnreachable, TransportError `no_ssh`."""
    resolved = resolve(spec, hosts, ssh_config=ssh_config)
    if resolved.target is None:
        return [os.environ.get("SHELL") or "/bin/sh"]
    ssh = shutil.which("ssh")
    if ssh is None:
        raise TransportError("no_ssh", host=spec.name)
    proxy = _escaped(resolved.chain[0].proxy_command or "none")
    for before, after in zip(resolved.jumps, resolved.chain[1:], strict=True):
        through = ["-W", f"[{after.address}]:{after.port}"]
        argv = [ssh, "-F", NO_CONFIG, *_options(before, home, proxy), *through]
        proxy = _escaped(shlex.join([*argv, "--", before.address]))
    config = config_argument(ssh_config)
    name = (spec.host or resolved.target.address).strip("[]")
    return [ssh, *config, *_options(resolved.target, home, proxy), "--", name]


def _options(endpoint: Endpoint, home: Home, proxy: str) -> list[str]:
    known = [home.known_hosts, *endpoint.user_known_hosts]
    said = {
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": " ".join(_quoted(path) for path in known),
        "HostKeyAlias": written_name(endpoint.key_name, endpoint.key_port),
        "UpdateHostKeys": "no",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ProxyCommand": proxy,
        **{name: ",".join(words) for name, words in endpoint.algorithms.items()},
    }
    options = [word for name, value in said.items() for word in ("-o", f"{name}={value}")]
    return [*options, "-l", endpoint.user, "-p", str(endpoint.port), *_identities(endpoint)]


def _identities(endpoint: Endpoint) -> Sequence[str]:
    if not endpoint.identities_given:
        return ()
    return [word for path in endpoint.identities for word in ("-i", str(path))]


def _quoted(path: Path) -> str:
    """ssh_config's own quoting: a list of files splits at spaces, and `%` begins a token."""
    text = str(path).replace("%", "%%")
    return f'"{text}"' if " " in text else text


def _escaped(command: str) -> str:
    """A ProxyCommand's `%` begins a token."""
    return command.replace("%", "%%")
