"""What only a person can answer: asked once for all who wait for it, kept in memory at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.transport.base import AskSecret, SecretRequest


class _Question:
    """A question on somebody's screen, and how many connections wait for its answer."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Future[str | None]) -> None:
        self.task = task
        self.waiting = 0


class Answers:
    """Passwords that worked, and questions that are open now."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], str] = {}
        self._open: dict[tuple[str, str, str], _Question] = {}

    def kept(self, request: SecretRequest) -> str | None:
        return self._kept.get(_key(request))

    def keep(self, request: SecretRequest, answer: str) -> None:
        self._kept[_key(request)] = answer

    def forget(self, request: SecretRequest) -> None:
        self._kept.pop(_key(request), None)

    async def ask(self, ask: AskSecret, request: SecretRequest) -> str | None:
        """Ask, or wait for the same question that is being asked already."""
        key = _key(request)
        question = self._open.get(key)
        if question is None:
            question = self._open[key] = _Question(asyncio.ensure_future(ask(request)))
            question.task.add_done_callback(lambda _: self._open.pop(key, None))
        question.waiting += 1
        try:
            return await asyncio.shield(question.task)
        finally:
            question.waiting -= 1
            if question.waiting == 0:
                question.task.cancel()


class Patience:
    """Time that stands still while a person is asked."""

    def __init__(self, limit_s: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left_s = limit_s
        self._since = clock()
        self._pauses = 0

    def left_s(self) -> float:
        if self._pauses:
            return max(self._left_s, 1.0)
        return self._left_s - (self._clock() - self._since)

    def __enter__(self) -> Patience:
        if self._pauses == 0:
            self._left_s -= self._clock() - self._since
        self._pauses += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._pauses -= 1
        if self._pauses == 0:
            self._since = self._clock()


def _key(request: SecretRequest) -> tuple[str, str, str]:
    """A passphrase belongs to its file; a password and a challenge to the account."""
    prompt = request.prompt if request.kind == "keyboard_interactive" else ""
    return (request.kind, request.subject, prompt)
