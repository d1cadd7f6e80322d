"""What happened to a run, one thing after the other: started, ended, started again, a stop's steps, a disk
that fills. The file has its size from the start, so that a full disk costs no event; the oldest give way."""

import json
import os
import time

from supervisor_files import Folder, parse_object  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

FILE = "events.jsonl"
SLOTS = 128
SLOT_BYTES = 256
MAX_TEXT = 100


class Events:
    """The writing side; `life` carries the number of the newest to whoever asks for the run's state."""

    def __init__(self, folder: "Folder", life: "Json") -> None:
        self._folder = folder
        self._life = life
        known = read_events(folder, 0)
        life["events"] = known[-1]["n"] if known else 0

    def note(self, event: str, **facts: "Any") -> None:
        number = self._life["events"] = self._life["events"] + 1
        line = encode(dict(facts, n=number, event=event, at_s=round(time.time(), 3)))
        try:
            fd = self._folder.open(FILE, os.O_WRONLY)
            try:
                os.pwrite(fd, line, (number - 1) % SLOTS * SLOT_BYTES)
                os.fdatasync(fd)
            finally:
                os.close(fd)
        except OSError:
            pass  # the run matters more than its diary


def encode(event: "Json") -> bytes:
    """One slot, whatever the facts: long texts are cut, and what still does not fit goes."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = value[-MAX_TEXT:]
    data = json.dumps(event, separators=(",", ":"), sort_keys=True).encode()
    if len(data) >= SLOT_BYTES:
        kept = {key: event[key] for key in ("n", "event", "at_s")}
        data = json.dumps(kept, separators=(",", ":")).encode()
    return data.ljust(SLOT_BYTES - 1) + b"\n"


def read_events(folder: "Folder", after: int) -> "list[Json]":
    """Those with a higher number than `after`, the oldest first; a torn one is left out."""
    lines = folder.read(FILE, SLOTS * SLOT_BYTES).split(b"\n")
    found = [event for event in map(parse_object, lines) if isinstance(event.get("n"), int)]
    return sorted((e for e in found if e["n"] > after), key=lambda event: int(event["n"]))
