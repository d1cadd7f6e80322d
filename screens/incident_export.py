"""Write an incident to a Markdown file: asks whether names stay and where to, and never replaces a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App

from cockpit import __version__
from cockpit.domain.incidents import Incident
from cockpit.domain.naming import without_names
from cockpit.domain.text import safe_line
from cockpit.errors import StorageError
from cockpit.i18n import _
from cockpit.screens.dialogs import Choice, ChoiceMenu, TextPrompt
from cockpit.screens.incident_evidence import Contexts, evidence_of
from cockpit.screens.incident_markdown import Document, markdown
from cockpit.screens.run_actions import check_new_file, full_path, show_error

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

MOST_CONTEXTS = 6


async def export_incident(
    app: App[Any], engine: EngineApi, incident: Incident, profile: Mapping[str, object] | None
) -> None:
    """To be run in a worker."""
    menu = ChoiceMenu(
        _("Write this incident as Markdown"),
        [
            Choice("w", _("with the names of hosts and users")),
            Choice("r", _("with neutral names, to be shown to strangers")),
        ],
        body=_("Secrets that are known here are covered either way."),
    )
    answer = await app.push_screen_wait(menu)
    if answer is None:
        return
    path = await app.push_screen_wait(
        TextPrompt(
            _("Write to which file?"),
            value=str(Path.cwd() / file_name(incident, is_neutral=answer == "r")),
            check=check_new_file,
        )
    )
    if not path:
        return
    text = await document_text(engine, incident, profile, is_neutral=answer == "r")
    target = full_path(path)
    try:
        await asyncio.to_thread(write_new, target, text)
    except StorageError as error:
        show_error(app, _("The incident was not written"), error)
        return
    app.notify(_("Written to {path}").format(path=target), markup=False)


async def document_text(
    engine: EngineApi,
    incident: Incident,
    profile: Mapping[str, object] | None,
    *,
    is_neutral: bool,
) -> str:
    contexts = await read_contexts(engine, incident, MOST_CONTEXTS)
    text = markdown(Document(incident, contexts, profile, __version__))
    text = await engine.masked_text(incident, text)
    return (
        without_names(text, host_names(engine), user_names(engine, incident))
        if is_neutral
        else text
    )


async def read_contexts(engine: EngineApi, incident: Incident, most: int) -> Contexts:
    """The lines around each place of the run's log that there is."""
    if incident.run is None:
        return {}
    offsets = dict.fromkeys(one.offset for one in evidence_of(incident) if one.offset is not None)
    found = {}
    for offset in list(offsets)[:most]:
        if lines := await engine.log_context(incident, offset):
            found[offset] = lines
    return found


def host_names(engine: EngineApi) -> list[str]:
    """What hosts are called here, in the network and by themselves."""
    names: list[str] = []
    for name, spec in engine.hosts.items():
        state = engine.fleet.hosts.get(name)
        facts = None if state is None else state.facts
        hostname = "" if facts is None else facts.hostname
        names += [name, spec.host or "", hostname, hostname.split(".")[0]]
    return [name for name in names if name]


def user_names(engine: EngineApi, incident: Incident) -> list[str]:
    company = () if incident.proof is None else incident.proof.company or ()
    names = [spec.user or "" for spec in engine.hosts.values()]
    names += [one.user for one in company]
    return [name for name in names if name]


def file_name(incident: Incident, *, is_neutral: bool = False) -> str:
    """ "incident-gpu_oom-qwen-lora-20261130-1204.md"."""
    about = "" if is_neutral else incident.profile or incident.host or ""
    when = datetime.fromtimestamp(incident.opened_s).strftime("%Y%m%d-%H%M")
    name = "-".join(part for part in ("incident", incident.family, safe_line(about), when) if part)
    plain = "".join(char if char.isalnum() or char in "-_." else "-" for char in name)
    return plain[:100] + ".md"


def write_new(target: Path, text: str) -> None:
    """A new file for its owner alone. Raises StorageError, also when there is one already."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(target, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise StorageError("file_exists", path=str(target)) from error
    except OSError as error:
        raise StorageError(path=str(target), why=error.strerror or str(error)) from error
