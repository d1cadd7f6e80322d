"""What a client does for runs that are in trouble: a new supervisor, another attempt, their events."""

import time

from supervisor_events import read_events  # type: ignore[import-not-found]
from supervisor_files import Refused  # type: ignore[import-not-found]
from supervisor_spec import check_spec, is_environment  # type: ignore[import-not-found]
from supervisor_start import Start, check_cwd, renew  # type: ignore[import-not-found]
from supervisor_store import Store, checked_id  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

DIED = "supervisor_died"


def adopt(store: "Store", request: "Json") -> "Json | Start":
    """A supervisor for a run that goes on without one; the record alone for a run that needs none."""
    with store.find(checked_id(request)) as run:
        record: "Json" = run.describe()
        if record.get("degraded") != DIED or run.foremost()[0] is None:
            return {"record": record}
        return Start(run.path, {"adopt": True}, is_new=False)


def restart(store: "Store", request: "Json", umask: int) -> "Json | Start":
    """The next attempt of a lost run. Of two who want it one gets it; the other is told that it exists."""
    spec, secrets = check_spec(request["spec"]), request.get("secrets") or {}
    if not is_environment(secrets):
        raise Refused("bad_spec", key="secrets")
    with store.find(spec["run"]) as run:
        record: "Json" = run.describe()
        attempt = record.get("attempt", 1) + 1
        if record["state"] != "lost" or request["attempt"] != attempt:
            return {"existed": True, "record": record}
        check_cwd(spec)
        try:
            renew(run, store.host, attempt)
        except FileExistsError:
            return {"existed": True, "record": record}
        order = {"spec": spec, "secrets": secrets, "umask": umask, "attempt": attempt}
        return Start(run.path, order, is_new=False)


def events(store: "Store", request: "Json") -> "Json":
    after = int(request.get("after") or 0)
    with store.find(checked_id(request)) as run:
        return {"events": read_events(run, after), "now_s": time.time()}
