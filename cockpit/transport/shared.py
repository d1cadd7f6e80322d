"""What all transports of a process share: key files, answers, and how many logins one server gets at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from cockpit.transport.answers import Answers
from cockpit.transport.keyring import KeyRing

HANDSHAKES_AT_ONCE = 8
"""sshd drops logins at random from the tenth on (MaxStartups 10:30:100)."""


@dataclass(slots=True)
class Shared:
    """One for each event loop: locks and tasks belong to it."""

    ring: KeyRing = field(default_factory=KeyRing)
    answers: Answers = field(default_factory=Answers)
    _slots: dict[str, asyncio.Semaphore] = field(default_factory=dict)

    def handshakes(self, server: str) -> asyncio.Semaphore:
        return self._slots.setdefault(server, asyncio.Semaphore(HANDSHAKES_AT_ONCE))


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Shared] = WeakKeyDictionary()


def shared() -> Shared:
    """The running loop's."""
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Shared()
    return found
