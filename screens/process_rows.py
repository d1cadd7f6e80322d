"""The processes on a host's cards as rows of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cockpit.domain.cells import cut_end
from cockpit.domain.models import GpuSample, ProcessSample, RunId
from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_text
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, padded, padded_left
from cockpit.widgets.look import Look


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process on one card."""

    gpu: int
    gpu_uuid: str
    process: ProcessSample
    run_name: str = ""

    @property
    def key(self) -> str:
        return f"{self.gpu_uuid}/{self.process.pid}"

    def draw(self, look: Look, width: int) -> Line:
        process, line = self.process, Line(look.text)
        line.add(f"{self.gpu:>3}  ", look.muted)
        line.add(f"{process.pid:>7}  ", look.text)
        line.add(_fixed(process.user or "n/a", 10, look), look.muted)
        line.add(f"{mib_text(process.mem_used_mib, width=6)}  ", look.text)
        if width >= 60:
            cpu = "n/a" if process.cpu_pct is None else f"{process.cpu_pct:.0f}%"
            line.add(f"{cpu:>5}  ", look.muted)
        if width >= 76:
            line.add(
                _fixed(self.run_name or "-", 14, look), look.ok if self.run_name else look.muted
            )
        words = process.command or process.name or ""
        if not process.visible:
            words = _("in another container; ") + words
        room = max(0, width - line.cells)
        return line.add(cut_end(safe_line(words, 400), room, look.glyphs.cut))


def _fixed(text: str, cells: int, look: Look) -> str:
    short = cut_end(safe_line(text, 80), cells, look.glyphs.cut)
    return padded(short, cells + 2)


def process_columns(width: int) -> str:
    """The names over the columns, at the same cells as the rows have them."""
    head = f"{padded_left(_('gpu'), 3)}  {padded_left(_('pid'), 7)}  {padded(_('user'), 10)}  "
    head += f"{padded_left(_('memory'), 6)}  "
    if width >= 60:
        head += f"{padded_left(_('cpu'), 5)}  "
    if width >= 76:
        head += f"{padded(_('run'), 14)}  "
    return head + _("command")


def process_rows(gpus: Sequence[GpuSample], runs: Mapping[RunId, str]) -> list[ProcessRow]:
    """By card, the largest first."""
    rows = [
        ProcessRow(gpu.index, gpu.uuid, process, runs.get(process.run, "") if process.run else "")
        for gpu in gpus
        for process in gpu.processes
    ]
    return sorted(
        rows, key=lambda row: (row.gpu, -(row.process.mem_used_mib or 0), row.process.pid)
    )
