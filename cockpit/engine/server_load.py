"""What a host's server has to do now: the load that its memory is read against."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.domain.load_trend import Load
from cockpit.domain.models import HostName, RunId
from cockpit.domain.server_sample import ServerSample
from cockpit.engine.api import RunStore


def load_by(store: Callable[[], RunStore]) -> Callable[[HostName, RunId | None], Load | None]:
    """`store` is asked late: the runs are made after those who watch samples."""

    def load(host: HostName, run: RunId | None) -> Load | None:
        if run is not None:
            view = store().get(run)
            return None if view is None or view.served is None else _load(view.served)
        serving = [one.served for one in store().all() if one.host == host and one.served]
        return _load(serving[0]) if len(serving) == 1 else None

    return load


def _load(served: ServerSample) -> Load | None:
    if served.running is None:
        return None
    return Load(served.running + (served.waiting or 0), served.finished_total)
