"""Profile files behind the Launch screen: read one to show it, copy one to own it, edit it."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

from textual.screen import Screen

from cockpit.domain.text import safe_line
from cockpit.engine.api import LaunchPlan, ProfileEntry
from cockpit.i18n import _
from cockpit.screens.dialogs import TextPrompt
from cockpit.screens.terminal import lend_terminal

MOST_BYTES = 256 * 1024


def read_text(path: Path) -> str:
    """What is shown of a profile; its trouble in a comment when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"# {error.strerror or error}"


def past_text(plan: LaunchPlan) -> str:
    """The profile that a run of the past had, with its changes written into it."""
    from cockpit.engine.origins import toml_of

    return "" if plan.origin is None else toml_of(plan.origin)


async def copy_profile(
    screen: Screen[None], entry: ProfileEntry, text: str | None = None
) -> Path | None:
    """Ask for a path, write a copy there that is the person's own; None when nothing was written.

    `text` is what is written where no file holds it.
    """
    folder = _own_folder(screen)
    typed = await screen.app.push_screen_wait(
        TextPrompt(
            _("A profile of your own from {name}").format(name=safe_line(entry.name)),
            body=_("The copy is a plain file; e edits it."),
            value=str(folder / f"{entry.path.stem if text is None else entry.name}.toml"),
            check=_check_target,
        )
    )
    if not typed:
        return None
    target = _path(typed)
    why = await asyncio.to_thread(_write_copy, entry.path, target, text)
    if why is not None:
        screen.notify(why, severity="warning", markup=False)
        return None
    screen.notify(_("Copied to {path}").format(path=target), markup=False)
    return target


def _own_folder(screen: Screen[None]) -> Path:
    """Where the home's profiles are; beside the hosts file when the screens know it."""
    from cockpit.screens.base import services

    hosts_file = services(screen).options.hosts_file
    return Path.cwd() if hosts_file is None else hosts_file.parent / "profiles"


def _path(typed: str) -> Path:
    return Path(typed.strip()).expanduser()


def _check_target(typed: str) -> tuple[bool, str]:
    target = _path(typed)
    if target.suffix != ".toml":
        return False, _("a profile's file ends in .toml")
    if target.exists():
        return False, _("there is such a file; it will not be replaced")
    return True, _("a new file in {folder}").format(folder=target.parent)


def _write_copy(source: Path, target: Path, text: str | None) -> str | None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(source.read_bytes()[:MOST_BYTES] if text is None else text.encode())
    except OSError as error:
        return f"{target}: {error.strerror or error}"
    return None


def edit_file(screen: Screen[None], path: Path, *, shipped: bool) -> bool:
    """Lend the terminal to the person's editor; False when there was nothing to edit."""
    if shipped:
        screen.notify(_("This one came with cockpit; C makes a copy that is yours"), markup=False)
        return False
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    why = lend_terminal(screen.app, [*shlex.split(editor), str(path)])
    if why is not None:
        screen.notify(safe_line(why), severity="warning", markup=False)
    return why is None
