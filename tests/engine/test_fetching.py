"""Results fetched once: at the end, or when the host of a run that ended meanwhile is seen again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.config.hosts import load_hosts
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, LaunchStep
from cockpit.engine.fetch_files import Fetched
from cockpit.engine.fetch_store import FetchStore, FetchWish
from cockpit.engine.fetching import is_news, told
from cockpit.engine.runs import Runs
from cockpit.errors import RunUnknown
from tests.desk import until
from tests.rented import Rented, rented_box

BOX = HostName("box")
RUN = RunId("job-1")


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


@asynccontextmanager
async def laptop(rented: Rented, steps: list[LaunchStep]) -> AsyncIterator[tuple[Engine, Runs]]:
    """An engine as the screen has it, on the desk's home."""

    def heard(event: Event) -> None:
        if isinstance(event, LaunchStep):
            steps.append(event)

    home = Home(rented.desk.home)
    engine = Engine(home, load_hosts(home))
    engine.subscribe(heard)
    await engine.start()
    try:
        runs = engine.runs_service
        assert isinstance(runs, Runs)
        yield engine, runs
    finally:
        await engine.close()


def profile(rented: Rented, script: str, when: str = "success") -> str:
    text = f'cwd = "~/job"\n[fetch]\nglobs = ["out/*"]\nwhen = "{when}"\n'
    path = Path(rented.desk.profile("job", script))
    path.write_text(
        text.split("[fetch]")[0] + path.read_text() + "[fetch]" + text.split("[fetch]")[1]
    )
    (rented.sshd.folder / "home" / "job").mkdir(exist_ok=True)
    return str(path)


def is_over(rented: Rented, run: str) -> bool:
    return b'"code"' in (rented.log_of(run).parent / "exit").read_bytes()


@pytest.mark.sshd
async def test_what_ended_while_nobody_looked_is_fetched_when_its_host_is_seen(
    rented: Rented,
) -> None:
    run = await rented.desk.detached(profile(rented, "mkdir -p out; echo good > out/model"))
    await until(lambda: is_over(rented, run), "it has ended")
    steps: list[LaunchStep] = []
    async with laptop(rented, steps):
        await until(lambda: [one for one in steps if one.code == "fetched"], "fetched")
    folder = rented.desk.folder / "fetched" / run
    assert (folder / "out" / "model").read_text() == "good\n"
    (folder / "out" / "model").write_text("mine by now")
    steps.clear()
    async with laptop(rented, steps) as (engine, runs):
        await until(lambda: runs.of_host(BOX).listed.is_set(), "listed")
        await until(lambda: engine.runs.get(RunId(run)), "known")
        view = engine.runs.get(RunId(run))
        assert view is not None and not runs.fetcher.begin(view)
        assert engine.fetch(RunId(run)) is True  # by hand, again
        await runs.fetcher.settled(RunId(run))
        assert "1 beside others" in steps[-1].text
        with pytest.raises(RunUnknown):
            engine.fetch(RunId("nope-1"))
    assert (folder / "out" / "model").read_text() == "mine by now"
    assert (folder / "out" / "model.1").read_text() == "good\n"


@pytest.mark.sshd
async def test_what_is_not_due_is_left_there_and_not_asked_again(rented: Rented) -> None:
    run = await rented.desk.detached(profile(rented, "mkdir -p out; echo x > out/m; exit 1"))
    await until(lambda: is_over(rented, run), "it has ended")
    store = FetchStore(Home(rented.desk.home))
    async with laptop(rented, []):

        def is_settled() -> bool:
            wish = store.read(BOX, RunId(run))
            return wish is not None and wish.state == "not_due"

        await until(is_settled, "settled")
    assert not (rented.desk.folder / "fetched").exists() and store.waiting(BOX) == []


def wish(when: str = "success") -> FetchWish:
    return FetchWish("~", ("a",), when, "/tmp/x", 1)  # type: ignore[arg-type]


def view(code: int | None = None, signal: int | None = None) -> RunView:
    return RunView(RUN, "job", "command", BOX, "exited", code=code, signal=signal)


@pytest.mark.parametrize(
    ("when", "ended", "due"),
    [
        ("success", view(0), True),
        ("success", view(1), False),
        ("success", view(None), False),
        ("failure", view(0), False),
        ("failure", view(3), True),
        ("failure", view(signal=9), True),
        ("failure", view(None), True),
        ("always", view(0), True),
        ("always", view(None), True),
    ],
    ids=range(9),
)
def test_when_results_are_wanted(when: str, ended: RunView, due: bool) -> None:
    assert wish(when).is_due(ended) is due


def test_one_of_several_cockpits_fetches(tmp_path: Path) -> None:
    store, other = FetchStore(Home(tmp_path)), FetchStore(Home(tmp_path))
    store.keep(BOX, RUN, wish())
    with store.claimed(BOX, RUN) as first, other.claimed(BOX, RUN) as second:
        assert (first, second) == (True, False)
    with other.claimed(BOX, RUN) as again:
        assert again


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cwd": 1}', json.dumps({"globs": 3})])
def test_a_spoilt_wish_is_none(tmp_path: Path, text: str) -> None:
    store = FetchStore(Home(tmp_path))
    store.keep(BOX, RUN, wish())
    assert store.waiting(BOX) == [RUN] and store.read(BOX, RUN) == wish()
    store.path(BOX, RUN).write_text(text)
    assert store.read(BOX, RUN) is None and store.waiting(BOX) == []


@pytest.mark.parametrize(
    ("fetched", "words"),
    [
        (Fetched(), "out/*"),
        (
            Fetched(total_bytes=9, changed=["out/g"]),
            "0 files, 9 B, not whole, since they change: out/g",
        ),
        (Fetched(total_bytes=9, failed=["out/g"]), "0 files, 9 B, not readable: out/g"),
        (Fetched(links=2), "0 files, 0 B, 2 links left there"),
    ],
    ids=["nothing", "changed", "failed", "links"],
)
def test_what_matched_and_did_not_come_is_not_called_nothing(fetched: Fetched, words: str) -> None:
    wish = FetchWish("~/job", ("out/*",), "success", "/there", 1 << 20)
    assert told(fetched, wish).removesuffix(", in /there") == words
    assert is_news(fetched) == (words != "out/*")
