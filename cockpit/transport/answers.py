"""What only a person can answer: asked once for all who wait for it, kept in memory at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from cockpit.transport.base import AskSecret, SecretRequest

T = TypeVar("T")


class _Shared:
    """Something that is under way once for everyone, and how many wait for it."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Future[Any]) -> None:
        self.task = task
        self.waiting = 0


class Answers:
    """Passwords that worked, and what is being asked now."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], str] = {}
        self._open: dict[tuple[str, ...], _Shared] = {}

    def kept(self, request: SecretRequest) -> str | None:
        return self._kept.get(_key(request))

    def keep(self, request: SecretRequest, answer: str) -> None:
        self._kept[_key(request)] = answer

    def forget(self, request: SecretRequest) -> None:
        self._kept.pop(_key(request), None)

    async def ask(self, ask: AskSecret, request: SecretRequest) -> str | None:
        """Ask, or wait for the same question that is being asked already."""
        return await self.once(_key(request), lambda: ask(request))

    async def once(self, key: tuple[str, ...], start: Callable[[], Awaitable[T]]) -> T:
        """The outcome of `start`, or of the one that is under way under this key; ended when nobody waits."""
        shared = self._open.get(key)
        if shared is None:
            shared = self._open[key] = _Shared(asyncio.ensure_future(start()))
            shared.task.add_done_callback(lambda _: self._open.pop(key, None))
        shared.waiting += 1
        try:
            outcome: T = await asyncio.shield(shared.task)
            return outcome
        finally:
            shared.waiting -= 1
            if shared.waiting == 0:
                shared.task.cancel()


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
