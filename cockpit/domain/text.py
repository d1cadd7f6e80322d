"""The one door to text that a host sent: harmless lines, widths, cuts, and lines out of bytes."""

from __future__ import annotations

from cockpit.domain.ansi import DISPLAY_CHARS, Span, ansi_spans, clean, safe_line, strip_ansi
from cockpit.domain.cells import cell_len, cut_end, cut_middle
from cockpit.domain.lines import Line, LineAssembler

__all__ = [
    "DISPLAY_CHARS", "Line", "LineAssembler", "Span", "ansi_spans", "cell_len", "clean",
    "cut_end", "cut_middle", "safe_line", "strip_ansi",
]  # fmt: skip
