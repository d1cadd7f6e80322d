"""Pictures of the incidents' screen: at the three sizes, in other colours and signs, and its menus."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cockpit.widgets.options import UiOptions
from tests.screens.incident_scenes import storied
from tests.screens.run_scenes import WatchedApp
from tests.screens.test_snapshots_runs import after, by_size

Compare = Callable[..., bool]


@by_size
@pytest.mark.parametrize(
    "keys", [("3",), ("3", "down"), ("3", "H")], ids=["oom", "leak", "everything"]
)
def test_incidents(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    assert snap_compare(WatchedApp(storied()), terminal_size=size, run_before=after(*keys))


@pytest.mark.parametrize(
    "options",
    [UiOptions(theme="light"), UiOptions(theme="ansi-dark-ground"), UiOptions(glyphs="ascii")],
    ids=["light", "16-colours", "ascii"],
)
def test_incidents_in_other_looks(snap_compare: Compare, options: UiOptions) -> None:
    app = WatchedApp(storied(), options)
    assert snap_compare(app, terminal_size=(120, 40), run_before=after("3"))


@pytest.mark.parametrize(
    "keys",
    [("3", "z"), ("3", "m"), ("3", "m", "h"), ("3", "e"), ("3", "slash", *"host:h100")],
    ids=["zoom", "mute", "how-long", "export", "filter"],
)
def test_menus(snap_compare: Compare, keys: tuple[str, ...]) -> None:
    assert snap_compare(WatchedApp(storied()), terminal_size=(80, 24), run_before=after(*keys))
