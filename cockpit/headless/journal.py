"""`cockpit journal HOST`: what this computer remembers of a host, from cockpit.db: runs and incidents, by time."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

from cockpit.config.hosts import host_unknown, load_hosts
from cockpit.config.paths import Home
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName
from cockpit.domain.past_runs import PastRun
from cockpit.domain.text import safe_line
from cockpit.engine.store import Database
from cockpit.headless.incident_line import incident_fields, incident_text
from cockpit.i18n import _

Told = dict[str, Any]
MOST_INCIDENTS = 5000


def main(args: argparse.Namespace) -> int:
    """Oldest first. Raises UsageError for a host that nobody knows, StorageError."""
    home, host = Home.from_environ(), HostName(args.host)
    runs, incidents = _remembered(home, host)
    if not runs and not incidents and host not in (hosts := load_hosts(home)):
        raise host_unknown(args.host, hosts)
    entries = sorted((*_of_runs(runs), *_of_incidents(incidents)), key=lambda one: one[0])
    for _at_s, told, words in entries:
        print(json.dumps(told, ensure_ascii=False) if args.json else words)
    if not entries and not args.json:
        print(_("Nothing is remembered of {host}.").format(host=safe_line(host)))
    return 0


def _remembered(home: Home, host: HostName) -> tuple[list[PastRun], list[Incident]]:
    if not home.db.exists():
        return [], []
    database = Database(home.db)
    try:
        runs = [one for one in database.newest() if one.view.host == host]
        known = database.newest_incidents(MOST_INCIDENTS)
        return runs, [one for one in known if one.host == host]
    finally:
        database.close()


def _of_runs(runs: list[PastRun]) -> Iterator[tuple[float, Told, str]]:
    for past in runs:
        view = past.view
        begun_s = view.started_s or view.claimed_s or past.seen_s
        name = safe_line(view.profile)
        told: Told = {"run": view.run, "host": view.host, "name": view.profile}
        words = _("{name} started, run {run}").format(name=name, run=view.run)
        yield begun_s, {"event": "run.started", "at_s": begun_s, **told}, _line(begun_s, words)
        if view.ended:
            at_s = view.ended_s or past.seen_s
            end = {"code": view.code, "signal": view.signal, "reason": view.reason}
            words = _("{name} ended: {how}").format(name=name, how=_how(past))
            yield at_s, {"event": "run.exited", "at_s": at_s, **told, **end}, _line(at_s, words)


def _of_incidents(incidents: list[Incident]) -> Iterator[tuple[float, Told, str]]:
    for one in incidents:
        told = {
            "event": "incident",
            "at_s": one.opened_s,
            "run": one.run,
            **incident_fields(one),
            "last_s": one.last_s,
            "recording": one.recording or None,
        }
        words = incident_text(one).split("\n")[0]
        yield one.opened_s, told, _line(one.opened_s, words)


def _how(past: PastRun) -> str:
    view = past.view
    if view.code is not None:
        return _("code {code}").format(code=view.code)
    if view.signal is not None:
        return _("signal {signal}").format(signal=view.signal)
    return safe_line(view.reason or view.state)


def _line(at_s: float, words: str) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at_s))}  {words}"
