"""Rows of nvidia-smi as looks at every card: when a look is complete, and what a missing row means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from cockpit.domain.smi_rows import Row

Record: TypeAlias = dict[str, object]
_ROWS_MAX: Final = 64


class Cards:
    """Rows of one look at every card; a card without a row has an error, in the words beside them."""

    def __init__(self) -> None:
        self.driver: str | None = None
        self.notes: list[str] = []
        """Lines of the newest look that are no rows: the driver's own words."""
        self._rows: dict[int, Row] = {}
        self._words: list[str] = []
        self._open_ticks = 0
        self._complete: dict[int, Row] = {}
        self._known: dict[int, Row] = {}

    def note(self, words: str) -> bool:
        """A line that is no row, in the place of one; whether the look is complete with it."""
        if words and len(self._words) < _ROWS_MAX:
            self._words.append(words)
        return self._finish_if_complete()

    def take(self, row: Row) -> bool:
        """Add a row; whether the look is complete with it."""
        late = bool(self._rows) and row.index <= max(self._rows)
        if late:
            self._finish()
        self.driver = row.driver or self.driver
        self._rows[row.index] = row
        return self._finish_if_complete() or late

    def tick(self) -> bool:
        """Time passed: a look that stays incomplete for two ticks is what there is."""
        self._open_ticks += 1
        if self._open_ticks < 3 or not self._rows:
            return False
        self._finish()
        return True

    def end(self) -> list[str]:
        """nvidia-smi ended: the words it had."""
        words = self._words or self.notes
        self._rows, self._words, self.notes = {}, [], []
        return words

    def _finish_if_complete(self) -> bool:
        counts = [row.count for row in (*self._rows.values(), *self._complete.values())]
        wanted = max((count for count in counts if count is not None), default=0)
        if self._rows and len(self._rows) + len(self._words) >= wanted:
            self._finish()
            return True
        return False

    def _finish(self) -> None:
        self._complete, self._rows, self._open_ticks = self._rows, {}, 0
        self.notes, self._words = self._words, []
        if len(self._known) < _ROWS_MAX:
            self._known.update(self._complete)

    def told(
        self, processes: Mapping[str, list[Record]] | None, hung: bool, host_kib: int | None
    ) -> Record:
        """`cards` and `gpus` of a record."""
        count = max([row.count or 0 for row in self._complete.values()] + [0])
        indices = sorted({*self._complete, *range(min(count, _ROWS_MAX))})
        missing = [index for index in indices if index not in self._complete]
        gpus = []
        for index in indices:
            row = self._complete.get(index)
            if hung:
                gpus.append(
                    _failed(index, self._known.get(index), "driver_hung", "driver not answering")
                )
            elif row is None:
                gpus.append(self._missing(index, missing.index(index)))
            else:
                gpus.append(row.record(processes, host_kib))
        return {"cards": indices, "gpus": gpus}

    def _missing(self, index: int, place: int) -> Record:
        """The words that nvidia-smi had for a card without a row, by bus id or by order."""
        known = self._known.get(index)
        bus = str(known.values.get("bus_id") or "")[-10:].lower() if known else ""
        words = [note for note in self.notes if bus and bus in note.lower()]
        words = words or self.notes[place : place + 1] or ["no row from nvidia-smi"]
        lost = "lost" in words[0].lower() or "fallen off" in words[0].lower()
        return _failed(index, known, "gpu_lost" if lost else "unknown", words[0])


def _failed(index: int, known: Row | None, code: str, words: str) -> Record:
    if known is not None:
        return known.failed(code, words)
    return {"index": index, "error": words, "error_code": code}
