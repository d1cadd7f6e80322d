"""Secrets asked for in a terminal without a screen: one question at a time, nothing echoed, nothing kept."""

from __future__ import annotations

import asyncio
import getpass
import sys

from cockpit.i18n import _
from cockpit.transport.base import AskSecret, SecretRequest
from cockpit.transport.own_thread import in_own_thread


def ask_in_terminal() -> AskSecret | None:
    """A way to ask the person, or None where nobody could answer (a pipe, a timer, a CI job)."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    turn = asyncio.Lock()

    async def ask(request: SecretRequest) -> str | None:
        async with turn:
            try:
                return await in_own_thread(getpass.getpass, _question(request)) or None
            except EOFError:
                return None

    return ask


def _question(request: SecretRequest) -> str:
    if request.kind == "passphrase":
        return _("{host}: passphrase of {subject}: ").format(
            host=request.host, subject=request.subject
        )
    if request.kind == "password":
        return _("{host}: password of {subject}: ").format(
            host=request.host, subject=request.subject
        )
    return f"{request.host}: {request.prompt or request.subject} "
