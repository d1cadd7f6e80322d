"""Where a replay is, how fast it goes, and how one moves in it."""

from __future__ import annotations

import asyncio
from typing import Final

from cockpit.domain.incidents import Incident
from cockpit.engine.bounds import end
from cockpit.engine.clock import Clock
from cockpit.engine.recording_read import Recording
from cockpit.engine.replay_player import ReplayPlayer

SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
TICK_S: Final = 0.1
AT_ONCE: Final = 200
"""Frames that are applied before others have a turn."""


class Playback:
    """What the keys of a replay move. It is a clock too: its time is the recording's."""

    def __init__(self, recording: Recording, player: ReplayPlayer, clock: Clock) -> None:
        self.recording = recording
        self.is_playing = True
        self.version = 0
        """Goes up when somebody moved."""
        self._player = player
        self._clock = clock
        self._speed = SPEEDS.index(1.0)
        self._position_s = self.begin_s
        self._seen_s = clock.now_s()
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # -- what is shown ----------------------------------------------------------------------

    def wall_s(self) -> float:
        return self._position_s

    def now_s(self) -> float:
        return self._position_s

    @property
    def begin_s(self) -> float:
        return self.recording.begin_s

    @property
    def end_s(self) -> float:
        return self.recording.end_s

    @property
    def speed(self) -> float:
        return SPEEDS[self._speed]

    @property
    def is_over(self) -> bool:
        return self._position_s >= self.end_s

    @property
    def incident_s(self) -> float | None:
        """When the incident opened that it was made for."""
        occasion = self.recording.header.occasion
        return None if occasion is None else min(max(occasion.at_s, self.begin_s), self.end_s)

    @property
    def incident(self) -> Incident | None:
        """That incident, once it has opened."""
        occasion = self.recording.header.occasion
        return None if occasion is None else self._player.incidents.get(occasion.key)

    # -- what a person does -----------------------------------------------------------------

    def toggle(self) -> None:
        """Pause, go on, and from the end begin anew."""
        self._catch_up()
        if self.is_over:
            self.seek(self.begin_s)
            self.is_playing = True
        else:
            self.is_playing = not self.is_playing
        self._touch()

    def faster(self, steps: int) -> None:
        self._catch_up()
        self._speed = max(0, min(len(SPEEDS) - 1, self._speed + steps))
        self._touch()

    def step(self, seconds: float) -> None:
        self._catch_up()
        self.seek(self._position_s + seconds)

    def to_incident(self) -> None:
        """To the moment at which it opened."""
        if self.incident_s is not None:
            self.seek(self.incident_s + 0.05)

    def seek(self, to_s: float) -> None:
        before_s, self._position_s = self._position_s, max(self.begin_s, min(self.end_s, to_s))
        if self._position_s < before_s:
            self._player.rewind()
        self._touch()

    # -- its own time -----------------------------------------------------------------------

    def start(self) -> None:
        if self._task is None:
            self._seen_s = self._clock.now_s()
            self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        if self._task is not None:
            await end(self._task)

    async def settled(self) -> None:
        """All is applied up to where it is."""
        while not self._player.play(self._position_s, AT_ONCE):  # noqa: ASYNC110 - it works
            await asyncio.sleep(0)

    async def _run(self) -> None:
        while True:
            self._catch_up()
            await self.settled()
            self._moved.clear()
            waiting = asyncio.ensure_future(self._moved.wait())
            try:
                await asyncio.wait({waiting}, timeout=TICK_S)
            finally:
                await end(waiting)

    def _catch_up(self) -> None:
        """Time goes on while it plays."""
        now_s = self._clock.now_s()
        passed_s, self._seen_s = max(0.0, now_s - self._seen_s), now_s
        if self.is_playing and not self.is_over:
            self._position_s = min(self.end_s, self._position_s + passed_s * self.speed)

    def _touch(self) -> None:
        self.version += 1
        self._moved.set()
