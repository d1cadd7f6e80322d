"""What a login asks a person, and what is remembered of it for the error that may have to be explained."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import asyncssh

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.transport.answers import Answers, Patience
from cockpit.transport.base import AskSecret, SecretKind, SecretRequest

T = TypeVar("T")

MAX_TRIES = 3
PROMPT_LIMIT = 400


@dataclass(slots=True)
class LoginRecord:
    """What happened, for the error that may have to be explained."""

    offered_key: asyncssh.SSHKey | None = None
    agent_keys: int = 0
    files: list[str] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)
    passphrase_needed: str | None = None
    passwords_tried: int = 0
    declined: bool = False
    banner: str = ""


class Questions:
    """Asks for one login at one server, while its time-out stands still."""

    def __init__(
        self, host: HostName, ask: AskSecret | None, answers: Answers, patience: Patience
    ) -> None:
        self._host = host
        self._ask = ask
        self._answers = answers
        self._patience = patience

    @property
    def possible(self) -> bool:
        return self._ask is not None

    def request(self, kind: SecretKind, subject: str, prompt: str = "") -> SecretRequest:
        return SecretRequest(self._host, kind, safe_line(prompt)[:PROMPT_LIMIT], subject)

    def kept(self, request: SecretRequest) -> str | None:
        return self._answers.kept(request)

    def keep(self, request: SecretRequest, answer: str) -> None:
        self._answers.keep(request, answer)

    def forget(self, request: SecretRequest) -> None:
        self._answers.forget(request)

    async def ask(self, request: SecretRequest) -> str | None:
        if self._ask is None:
            return None
        with self._patience:
            return await self._answers.ask(self._ask, request)

    async def once(self, key: tuple[str, ...], start: Callable[[], Awaitable[T]]) -> T:
        """What several logins need at the same time is asked by one of them; the others stand still with it."""
        with self._patience:
            return await self._answers.once(key, start)
