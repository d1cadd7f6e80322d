"""The log of a run whose host is none of ours any more: the copy on this computer, to its last byte."""

from __future__ import annotations

from cockpit.config.paths import Home
from cockpit.domain.runs import RunView
from cockpit.engine.clock import Clock
from cockpit.engine.follow import RunFollower
from cockpit.engine.masks import masker_of
from cockpit.engine.mirror import Mirror, mirror_path
from cockpit.errors import RunUnknown


def kept_log(home: Home, clock: Clock, view: RunView) -> RunFollower:
    """A follower that nothing will be added to. Raises RunUnknown when nothing was copied, StorageError."""
    path = mirror_path(home, view.host, view.run)
    if not path.exists():
        raise RunUnknown("run_host_gone", run=view.run, host=view.host, state=view.state)
    return RunFollower(view.run, Mirror(path), clock, lambda: masker_of(path.parent, ""))
