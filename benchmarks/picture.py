"""The README's picture: the real screen on the embedded fleet, exported by the app itself once memory ran out."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from cockpit.app import CockpitApp
from cockpit.config.hosts import load_hosts
from cockpit.demo.director import direct
from cockpit.demo.main import embedded_fleet
from cockpit.engine.engine import Engine
from cockpit.widgets.options import UiOptions

LIMIT_S = 150.0
SETTLE_S = 4.0


async def export(target: Path, size: tuple[int, int], theme: str) -> None:
    with embedded_fleet(3) as fleet:
        engine = Engine(fleet.home, load_hosts(fleet.home))
        app = CockpitApp(engine, UiOptions(theme=theme))
        async with app.run_test(size=size) as pilot:
            playing = asyncio.ensure_future(direct(engine))
            begun_s = engine.now_s()
            while not any(each.family == "gpu_oom" for each in engine.incidents.all()):
                if engine.now_s() - begun_s > LIMIT_S:
                    raise TimeoutError("memory never ran out")
                await pilot.pause(0.5)
            await pilot.pause(SETTLE_S)
            app.clear_notifications()
            await pilot.pause()
            target.write_text(app.export_screenshot(title="cockpit"))  # noqa: ASYNC240
            await playing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, nargs="?", default=Path("docs/fleet.svg"))
    parser.add_argument("--size", default="120x30")
    parser.add_argument("--theme", default="dark")
    args = parser.parse_args()
    columns, _, rows = args.size.partition("x")
    asyncio.run(export(args.target, (int(columns), int(rows)), args.theme))


if __name__ == "__main__":
    main()
