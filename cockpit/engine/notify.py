"""[notify]: messages through Apprise, which is an extra and is imported in a thread when the first one is sent.

An address holds a token as often as not: it is never logged, shown or stored, only its scheme is.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from cockpit.domain.text import safe_line
from cockpit.engine.bounds import end, within
from cockpit.transport.own_thread import in_own_thread

Kind: TypeAlias = Literal["info", "success", "warning", "failure"]

LIMIT_S: Final = 60.0
BURST: Final = 5
BURST_S: Final = 600.0
"""So many messages in ten minutes; what is more is gathered and sent as one."""
TEXT_CHARS: Final = 1000
DIGEST_LINES: Final = 20
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://.")
_TALKATIVE: Final = ("apprise", "urllib3", "requests")


def schemes(urls: Sequence[str]) -> tuple[str, ...]:
    """What may be shown of addresses: "ntfy", "slack"."""
    return tuple(match[1].lower() if (match := _SCHEME.match(url)) else "?" for url in urls)


def is_installed() -> bool:
    return importlib.util.find_spec("apprise") is not None


@dataclass(frozen=True, slots=True)
class Message:
    title: str
    body: str
    kind: Kind = "info"


@dataclass(slots=True)
class _Box:
    """What goes to one set of addresses."""

    sent_s: deque[float] = field(default_factory=lambda: deque(maxlen=BURST))
    held: list[Message] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


Send: TypeAlias = Callable[[str, Message], bool]
"""Blocking; True when the service took it."""
OnResult: TypeAlias = Callable[[str, bool], None]
"""(scheme, whether it was taken)"""


class Herald:
    """Sends messages, a few at a time; the same words twice in a row are one message."""

    def __init__(self, now_s: Callable[[], float], send: Send | None = None) -> None:
        self._now_s = now_s
        self._send = send or send_by_apprise
        self._boxes: dict[tuple[str, ...], _Box] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def tell(self, urls: Sequence[str], message: Message, on_result: OnResult) -> None:
        """Returns when it was sent, or put aside for the next digest."""
        box = self._boxes.setdefault(tuple(urls), _Box())
        now_s = self._now_s()
        is_full = len(box.sent_s) == BURST and now_s - box.sent_s[0] < BURST_S
        if not is_full and not box.held:
            box.sent_s.append(now_s)
            await self._deliver(urls, message, on_result)
            return
        if not any(one == message for one in box.held):
            box.held.append(message)
        if box.timer is None:
            wait_s = max(1.0, BURST_S - (now_s - box.sent_s[0]))
            flush = lambda: self._flush(tuple(urls), on_result)  # noqa: E731
            box.timer = asyncio.get_running_loop().call_later(wait_s, flush)

    async def close(self, limit_s: float) -> None:
        """What was gathered is sent now, if there is time."""
        for urls, box in self._boxes.items():
            if box.timer is not None:
                box.timer.cancel()
                self._flush(urls, lambda _scheme, _taken: None)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limit_s)
        await end(*self._tasks)

    def _flush(self, urls: tuple[str, ...], on_result: OnResult) -> None:
        box = self._boxes[urls]
        box.timer, held = None, box.held
        box.held = []
        if held:
            box.sent_s.append(self._now_s())
            task = asyncio.ensure_future(self._deliver(urls, digest(held), on_result))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _deliver(self, urls: Sequence[str], message: Message, on_result: OnResult) -> None:
        await asyncio.gather(*(self._deliver_one(url, message, on_result) for url in urls))

    async def _deliver_one(self, url: str, message: Message, on_result: OnResult) -> None:
        try:
            is_taken = await within(LIMIT_S, in_own_thread(self._send, url, _harmless(message)))
        except asyncio.TimeoutError:
            is_taken = False
        on_result(schemes((url,))[0], is_taken)


def digest(messages: Sequence[Message]) -> Message:
    """Several as one, the oldest first."""
    lines = [f"{one.title}: {one.body.splitlines()[0] if one.body else ''}" for one in messages]
    if (left := len(lines) - DIGEST_LINES) > 0:
        lines = [*lines[:DIGEST_LINES], f"and {left} more"]
    kinds: tuple[Kind, ...] = ("failure", "warning", "success", "info")
    worst = next(kind for kind in kinds if any(one.kind == kind for one in messages))
    return Message(f"cockpit: {len(messages)} messages", "\n".join(lines), worst)


def _harmless(message: Message) -> Message:
    body = "\n".join(safe_line(line) for line in message.body.splitlines())
    return Message(safe_line(message.title)[:200], body[:TEXT_CHARS], message.kind)


def send_by_apprise(url: str, message: Message) -> bool:
    """In a thread. Whatever a service's plug-in does, the address stays here."""
    for name in _TALKATIVE:
        quiet = logging.getLogger(name)
        quiet.propagate = False
        if not quiet.handlers:
            quiet.addHandler(logging.NullHandler())
    try:
        import apprise

        asset = apprise.AppriseAsset(
            app_id="cockpit", app_desc="cockpit", app_url="", async_mode=False
        )
        service: Any = apprise.Apprise(asset=asset)
        if not service.add(url):
            return False
        return bool(
            service.notify(
                title=message.title, body=message.body, notify_type=message.kind, body_format="text"
            )
        )
    except Exception:  # noqa: BLE001 - a plug-in is anybody's code; its error may quote the address
        return False
