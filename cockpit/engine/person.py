"""The person who may be asked for a secret, and of which hosts they are being asked right now."""

from __future__ import annotations

from cockpit.domain.models import HostName
from cockpit.transport.base import AskSecret, SecretRequest


class Person:
    """An AskSecret that remembers its open questions: no limit of a link runs out while someone types."""

    def __init__(self, ask: AskSecret) -> None:
        self._ask = ask
        self.asked: set[HostName] = set()
        self.ever_asked: set[HostName] = set()

    async def __call__(self, request: SecretRequest) -> str | None:
        self.asked.add(request.host)
        self.ever_asked.add(request.host)
        try:
            return await self._ask(request)
        finally:
            self.asked.discard(request.host)
