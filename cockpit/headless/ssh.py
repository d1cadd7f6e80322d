"""`cockpit ssh HOST`: this process becomes the system's ssh."""

from __future__ import annotations

import argparse
import os

from cockpit.config.hosts import host_unknown, load_hosts
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.transport.shell import shell_argv


def main(args: argparse.Namespace) -> int:
    """Does not return. Raises CockpitError."""
    home = Home.from_environ()
    hosts = load_hosts(home)
    spec = hosts.get(HostName(args.host))
    if spec is None:
        raise host_unknown(args.host, hosts)
    argv = shell_argv(spec, home, hosts)
    os.execvp(argv[0], argv)
