"""`cockpit hosts trust NAME`: accept or replace a host's key after a person has compared it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from cockpit.config.hosts import host_unknown, load_hosts
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.errors import ExitCode
from cockpit.i18n import _
from cockpit.transport.trust import KeyOffer, Truster


def main(args: argparse.Namespace) -> int:
    """Exit 0 when the key is recorded, 77 when it is not. Raises CockpitError."""
    home = Home.from_environ()
    hosts = load_hosts(home)
    spec = hosts.get(HostName(args.name))
    if spec is None:
        raise host_unknown(args.name, hosts)
    truster = Truster(spec, home, hosts)
    if args.fingerprint:
        return _report(asyncio.run(truster.trust(args.fingerprint, args.hop)), args.json)
    offer = asyncio.run(truster.look(args.hop))
    if not offer.is_known and not _accepted(offer):
        return _report(offer, args.json, ExitCode.PERMISSION)
    return _report(asyncio.run(truster.trust(offer.fingerprint, args.hop)), args.json)


def _accepted(offer: KeyOffer) -> bool:
    """The person's yes, at a terminal only; the default is no."""
    say = _("{server} shows an {key_type} key: {fingerprint}")
    print(say.format(server=_server(offer), **_facts(offer)), file=sys.stderr)
    if offer.known is not None:
        print(_("Known so far: {known}").format(known=offer.known), file=sys.stderr)
    if not sys.stdin.isatty():
        again = _("Compare it with the platform's page, then: {command}")
        print(again.format(command=_command(offer)), file=sys.stderr)
        return False
    print(_("Is this the key on the platform's page? [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report(offer: KeyOffer, as_json: bool, code: ExitCode = ExitCode.OK) -> int:
    trusted = code is ExitCode.OK
    if as_json:
        print(json.dumps({**_facts(offer), "known": offer.known, "trusted": trusted}))
    elif trusted:
        say = _("{server} is known by its {key_type} key {fingerprint}")
        print(say.format(server=_server(offer), **_facts(offer)), file=sys.stderr)
    else:
        print(_("Nothing was recorded."), file=sys.stderr)
    return int(code)


def _facts(offer: KeyOffer) -> dict[str, str | int | None]:
    return {
        "host": offer.host,
        "hop": offer.hop,
        "fingerprint": offer.fingerprint,
        "key_type": offer.key_type,
    }


def _server(offer: KeyOffer) -> str:
    where = f"{offer.address}:{offer.port}"
    if offer.hop is None:
        return f"{offer.host} ({where})"
    return _("{name} ({where}), jump host {hop} on the way to {host},").format(
        name=offer.name, where=where, hop=offer.hop, host=offer.host
    )


def _command(offer: KeyOffer) -> str:
    hop = f" --hop {offer.hop}" if offer.hop is not None else ""
    return f"cockpit hosts trust {offer.host} --fingerprint {offer.fingerprint}{hop}"
