"""Pictures of the whole log: a hit among its lines, a place, and the words when nothing is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cockpit.domain.models import RunId
from cockpit.screens.whole_log import WholeLogScreen
from cockpit.widgets.log_places import ByteAt, LineNumber
from tests.screens.fake_engine import FakeLog, run_view
from tests.screens.run_scenes import WatchedApp, busy_engine, workers_done
from tests.screens.test_snapshots_runs import Compare, after, by_size

RUN = RunId("llama-sft-1skaaaaaa")


class Shown(WatchedApp):
    """The whole log of a run, opened at a place or at a hit."""

    def __init__(self, text: str, place: ByteAt | LineNumber | None = None) -> None:
        engine = busy_engine()
        engine.put_run(run_view(RUN, host="h100"))
        lines = [f"step {n}/2000  loss {1.9 - n / 4000:.4f}  4.1 it/s" for n in range(1, 2001)]
        lines[1233] = "\x1b[33mWARNING\x1b[0m: loss is nan, step skipped  训练损失无效"
        engine.whole_log = "".join(f"{line}\n" for line in lines)
        engine.logs[RUN] = FakeLog(lines[-100:])
        self._opened = (text, place)
        super().__init__(engine)

    async def open_it(self) -> None:
        text, place = self._opened
        await self.push_screen(WholeLogScreen(RUN, text, place=place))
        await workers_done(self)


def pictured(*keys: str) -> Callable[..., object]:
    async def run(pilot: object) -> None:
        app = pilot.app  # type: ignore[attr-defined]
        assert isinstance(app, Shown)
        await app.open_it()
        await after()(pilot)  # type: ignore[arg-type]
        await workers_done(app)
        await after(*keys)(pilot)  # type: ignore[arg-type]
        await workers_done(app)
        await after()(pilot)  # type: ignore[arg-type]

    return run


@by_size
def test_a_hit_among_its_lines(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(Shown("nan"), terminal_size=size, run_before=pictured())


@pytest.mark.parametrize(
    ("place", "keys"),
    [(LineNumber(812), ()), (ByteAt(30_000), ("at",)), (ByteAt(30_000), ("n",))],
    ids=["line", "asked", "nothing-searched"],
)
def test_a_place(snap_compare: Compare, place: ByteAt | LineNumber, keys: tuple[str, ...]) -> None:
    assert snap_compare(Shown("", place), terminal_size=(120, 40), run_before=pictured(*keys))


def test_not_found(snap_compare: Compare) -> None:
    assert snap_compare(Shown("absent"), terminal_size=(80, 24), run_before=pictured())
