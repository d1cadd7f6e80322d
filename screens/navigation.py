"""Going from one screen to another by name, so that no screen imports the next one before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.screen import Screen

if TYPE_CHECKING:
    from cockpit.domain.models import HostName, RunId


def _fleet() -> Screen[Any]:
    from cockpit.screens.fleet import FleetScreen

    return FleetScreen()


def _runs() -> Screen[Any]:
    from cockpit.screens.runs import RunsScreen

    return RunsScreen()


def _incidents() -> Screen[Any]:
    from cockpit.screens.incidents import IncidentsScreen

    return IncidentsScreen()


def _launch() -> Screen[Any]:
    from cockpit.screens.launch import LaunchScreen

    return LaunchScreen()


def _desk() -> Screen[Any]:
    from cockpit.screens.desk import DeskScreen

    return DeskScreen()


MODES: Mapping[str, Callable[[], Screen[Any]]] = {
    "fleet": _fleet,
    "runs": _runs,
    "incidents": _incidents,
    "launch": _launch,
    "desk": _desk,
}


def open_host(app: App[Any], host: HostName) -> None:
    from cockpit.screens.host import HostScreen

    app.push_screen(HostScreen(host))


def open_run(app: App[Any], run: RunId) -> None:
    from cockpit.screens.run import RunScreen

    app.push_screen(RunScreen(run))


def open_incident(app: App[Any], key: str) -> None:
    """The incidents mode with one chosen."""
    from cockpit.screens.incidents import IncidentsScreen

    app.switch_mode("incidents")
    screen = app.screen
    if isinstance(screen, IncidentsScreen):
        screen.select(key)


def open_launch(app: App[Any], host: HostName | None = None, gpu: int | None = None) -> None:
    """The launch mode, with a host and a card filled in where they are known."""
    from cockpit.screens.launch import LaunchScreen

    app.switch_mode("launch")
    screen = app.screen
    if isinstance(screen, LaunchScreen) and host is not None:
        screen.prefill(host, gpu)


def open_first_start(app: App[Any], *, first: bool = False) -> None:
    from cockpit.screens.first_start import FirstStartScreen

    app.push_screen(FirstStartScreen(first=first))
