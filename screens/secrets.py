"""A secret that only the person has: asked once, handed to the engine, kept nowhere."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from textual.app import App

from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.screens.dialogs import PasswordPrompt


class SecretQuestion(Protocol):
    """What the transport asks, as far as a dialog needs it."""

    @property
    def host(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def prompt(self) -> str: ...

    @property
    def subject(self) -> str: ...


async def ask_secret(app: App[Any], question: SecretQuestion) -> str | None:
    """The answer, or None for "not now". A question that is no longer asked closes its dialog."""
    subject = safe_line(question.subject, 120)
    title = {
        "password": _("password of {subject}"),
        "passphrase": _("passphrase of the key {subject}"),
    }.get(question.kind, _("{subject} asks"))
    body = _("For {host}. It is used once and stored nowhere.").format(
        host=safe_line(question.host, 80)
    )
    if question.prompt:
        body += "\n" + _("The host says: {prompt}").format(prompt=safe_line(question.prompt, 200))
    answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def take(answer: str | None) -> None:
        if not answered.done():
            answered.set_result(answer)

    prompt = PasswordPrompt(title.format(subject=subject), body=body)
    app.call_next(app.push_screen, prompt, take)
    try:
        return await answered
    finally:
        if prompt.is_attached:
            app.call_next(prompt.dismiss, None)
