"""The wire to an on-host agent: numbered questions, their answers, and mailboxes for what streams."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping

from cockpit.domain.models import HostName
from cockpit.domain.run_spec import Json
from cockpit.domain.text import safe_line
from cockpit.engine.agent_frames import (
    MAGIC,
    MAX_FRAME_BYTES,
    PROTOCOL,
    Frame,
    FrameReader,
    decode_object,
)
from cockpit.engine.bounds import end, within
from cockpit.engine.sampler import Budget
from cockpit.errors import CockpitError, LinkLost, ProtocolError
from cockpit.transport.base import ByteChannel

HELLO_S = 20.0
WRITE_S = 30.0
PING_EVERY_S = 60.0
"""An agent that hears nothing for five minutes takes itself for forgotten."""
PING_S = 30.0
FRAMES_PER_S = 2000.0
FRAMES_BURST = 8000.0
"""A host that sends more, however small, is read later: every frame costs this process a moment."""
FRAME_COST_BYTES = 64
"""What a frame counts for beside its bytes, so that empty ones cannot pile up either."""


class Mailbox:
    """Frames of one tail, kept until they are taken; more than `limit` bytes of them is foul play."""

    def __init__(self, number: int, limit: int) -> None:
        self.number = number
        self._limit = limit
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._failure: CockpitError | None = None
        self._changed = asyncio.Event()

    def put(self, frame: Frame) -> None:
        self._bytes += len(frame.payload) + FRAME_COST_BYTES
        if self._bytes > self._limit:
            raise ProtocolError(why="window")
        self._frames.append(frame)
        self._changed.set()

    def fail(self, failure: CockpitError) -> None:
        self._failure = self._failure or failure
        self._changed.set()

    async def take(self) -> Frame:
        """The next frame; what ended the stream is raised after all that came before it."""
        while not self._frames:
            if self._failure is not None:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        self._bytes -= len(frame.payload) + FRAME_COST_BYTES
        return frame


class AgentLink:
    """Owns the channel to one agent. Whatever ends it ends every question and mailbox the same way."""

    def __init__(self, channel: ByteChannel, host: HostName) -> None:
        self._channel = channel
        self._host = host
        self._numbers = 0
        self._asked: dict[int, asyncio.Future[Frame]] = {}
        self._mailboxes: dict[int, Mailbox] = {}
        self._hello: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._failure: CockpitError | None = None
        self._writing = asyncio.Lock()
        self._reader = asyncio.create_task(self._read())
        self._pinger = asyncio.create_task(self._ping())

    async def hello(self) -> dict[str, object]:
        """What the program says first. Raises ProtocolError when it is another program, or version."""
        try:
            frame = await within(HELLO_S, self._hello)
        except asyncio.TimeoutError as error:
            raise LinkLost(host=self._host, why="no hello") from error
        hello = decode_object(frame.payload)
        if hello.get("protocol") != PROTOCOL:
            raise ProtocolError(host=self._host, why="version")
        return hello

    async def ask(
        self, op: str, fields: Mapping[str, Json], *, limit_s: float, number: int = 0
    ) -> Frame:
        """Send a request and wait for the frame that answers it. Raises LinkLost, ProtocolError."""
        number = number or self.next_number()
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            await self.tell(op, fields, number=number)
            return await within(limit_s, answer)
        except asyncio.TimeoutError as error:
            raise LinkLost(host=self._host, why="no answer", op=op) from error
        finally:
            self._asked.pop(number, None)

    async def tell(self, op: str, fields: Mapping[str, Json], *, number: int) -> None:
        """Send a request without waiting for what comes of it. Raises LinkLost."""
        if self._failure is not None:
            raise self._failure
        line = json.dumps({"op": op, "id": number, **fields}, separators=(",", ":"))
        try:
            async with self._writing:
                await within(WRITE_S, self._channel.write(line.encode() + b"\n"))
        except asyncio.TimeoutError as error:
            raise LinkLost(host=self._host, why="not reading", op=op) from error

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def open_mailbox(self, window: int) -> Mailbox:
        """A place for frames that come unasked under a number of their own."""
        box = Mailbox(self.next_number(), 2 * window + 2 * MAX_FRAME_BYTES)
        self._mailboxes[box.number] = box
        return box

    def close_mailbox(self, box: Mailbox) -> None:
        self._mailboxes.pop(box.number, None)

    async def closed(self) -> CockpitError:
        """Return when the link is of no more use, with the reason."""
        await asyncio.wait({self._reader})
        return self._failure or LinkLost(host=self._host, why="closed")

    async def close(self) -> None:
        """Let go of the channel, which ends the agent."""
        self._fail(LinkLost(host=self._host, why="closed"))
        await end(self._reader, self._pinger)
        await self._channel.close()

    async def _read(self) -> None:
        frames = FrameReader()
        now_s = asyncio.get_running_loop().time
        budget = Budget(now_s(), FRAMES_PER_S, FRAMES_BURST)
        try:
            while data := await self._channel.read():
                count = 0
                for count, frame in enumerate(frames.feed(data), 1):  # noqa: B007 - told below
                    self._deliver(frame)
                if (wait_s := budget.spend(count, now_s())) > 0.0:
                    await asyncio.sleep(wait_s)
            self._fail(LinkLost(host=self._host, why="agent ended", stderr=self._last_words()))
        except CockpitError as error:
            self._fail(error)

    def _last_words(self) -> str:
        return safe_line(self._channel.stderr_tail()[-1000:])

    def _deliver(self, frame: Frame) -> None:
        if frame.kind == b"H":
            if frame.request != MAGIC or self._hello.done():
                raise ProtocolError(host=self._host, why="hello")
            self._hello.set_result(frame)
        elif not self._hello.done():
            raise ProtocolError(host=self._host, why="not our agent")
        elif (answer := self._asked.pop(frame.request, None)) is not None:
            if not answer.done():
                answer.set_result(frame)
        elif (box := self._mailboxes.get(frame.request)) is not None:
            box.put(frame)

    def _fail(self, failure: CockpitError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        for waiting in (self._hello, *self._asked.values()):
            if not waiting.done():
                waiting.set_exception(failure)
                waiting.exception()  # nobody may be waiting for it
        for box in self._mailboxes.values():
            box.fail(failure)

    async def _ping(self) -> None:
        try:
            while True:
                await asyncio.sleep(PING_EVERY_S)
                await self.ask("ping", {}, limit_s=PING_S)
        except CockpitError as error:
            self._fail(error)
            self._reader.cancel()
