"""The lines of one host: a titled frame around its cards, or bare rows with its name on the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip

from cockpit.domain.cells import cut_end, cut_middle
from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_pair_text, price_text
from cockpit.engine.fleet import HostState, history_key
from cockpit.widgets.card_line import NOBODY, Columns, Holder, draw_card
from cockpit.widgets.drawing import Line, Piece, pieces_width
from cockpit.widgets.host_words import (
    age_text,
    cards_text,
    idle_text,
    reason,
    sentence,
    source_text,
    worst_disk_text,
)
from cockpit.widgets.look import Look, Tone

Holders = Mapping[tuple[HostName, int], Holder]


@dataclass(frozen=True, slots=True)
class HostFace:
    """What one host is drawn from. `price` and `platform` come from its configuration."""

    state: HostState
    now_s: float
    holders: Holders
    price_per_h: float | None = None
    currency: str | None = None
    platform: str | None = None

    @property
    def old(self) -> bool:
        return self.state.link not in ("live", "degraded", "connecting")

    def tone(self, look: Look) -> Tone:
        return look.old if self.old else look.fresh

    def card(self, index: int) -> GpuSample | None:
        latest = self.state.latest
        cards = () if latest is None else latest.gpus
        return next((gpu for gpu in cards if gpu.index == index), None)


def link_style(face: HostFace, look: Look) -> Style:
    link = face.state.link
    if link == "live":
        return look.ok
    if link == "connecting":
        return look.muted
    return look.warn if link in ("stale", "degraded", "host_key") else look.fatal


def pane_top(face: HostFace, width: int, look: Look) -> Strip:
    """The upper border with the host's name, its cards and, on the right, its numbers or its trouble."""
    tone, glyphs = face.tone(look), look.glyphs
    line = Line(look.text).add(f"{glyphs.top_left}{glyphs.horizontal} ", look.faint)
    line.add(glyphs.link(face.state.link), link_style(face, look)).add(" ")
    line.add(cut_middle(safe_line(face.state.host), 28, glyphs.cut), tone.strong).add(" ")
    latest = face.state.latest
    if latest is not None and latest.gpus:
        line.add(" ").add(cut_end(cards_text(latest), 40, glyphs.cut), tone.muted).add(" ")
    right = _fit_right(_right_parts(face, look), width - line.cells - 4)
    line.fill_to(width - pieces_width(right) - 2, glyphs.horizontal, look.faint)
    line.add_all(right)
    return line.add(glyphs.horizontal + glyphs.top_right, look.faint).strip(width)


def host_title(face: HostFace, width: int, look: Look) -> Strip:
    """The same as the upper border, without a frame: the first line of the host's own screen."""
    tone, glyphs = face.tone(look), look.glyphs
    line = Line(look.text).add(" ").add(glyphs.link(face.state.link), link_style(face, look))
    line.add(" ").add(cut_middle(safe_line(face.state.host), 40, glyphs.cut), tone.strong)
    if face.state.latest is not None and face.state.latest.gpus:
        line.add("   ").add(cut_end(cards_text(face.state.latest), 40, glyphs.cut), tone.muted)
    right = _fit_right(_right_parts(face, look), width - line.cells - 2)
    return line.pad_to(width - pieces_width(right)).add_all(right).strip(width)


def pane_bottom(width: int, look: Look) -> Strip:
    glyphs = look.glyphs
    text = glyphs.bottom_left + glyphs.horizontal * (width - 2) + glyphs.bottom_right
    return Line(look.faint).add(text).strip(width)


def pane_card(
    face: HostFace, index: int, columns: Columns, width: int, look: Look, cursor: bool
) -> Strip:
    """One card between the frame's sides."""
    line = Line(look.text)
    _draw_index_card(line, face, index, columns, look, cursor)
    return _between_sides(line.strip(width - 2, look.cursor if cursor else None), look)


def pane_words(face: HostFace, width: int, look: Look, cursor: bool) -> Strip:
    """The one line of a host that has no cards to show: why."""
    line = Line(look.text).add(look.glyphs.mark if cursor else " ", look.ok).add(" ")
    line.add(
        cut_end(sentence(face.state, face.now_s), width - 6, look.glyphs.cut), face.tone(look).muted
    )
    return _between_sides(line.strip(width - 2, look.cursor if cursor else None), look)


def _between_sides(inner: Strip, look: Look) -> Strip:
    side = Line(look.faint).add(look.glyphs.vertical).strip(1)
    return Strip.join([side, inner, side])


def row_card(
    face: HostFace, index: int, first: bool, columns: Columns, width: int, look: Look, cursor: bool
) -> Strip:
    """One card without a frame; the host's name stands on its first line only."""
    line = Line(look.text)
    tone = face.tone(look)
    line.add(look.glyphs.mark if cursor else " ", look.ok)
    if first:
        line.add(look.glyphs.link(face.state.link), link_style(face, look)).add(" ")
        name = cut_middle(safe_line(face.state.host), columns.host - 3, look.glyphs.cut)
        line.add(name, tone.strong)
    line.pad_to(1 + columns.host)
    gpu = face.card(index)
    if gpu is not None:
        _draw_gpu(line, face, gpu, columns, look, tone)
    return line.strip(width, look.cursor if cursor else None)


def row_host(face: HostFace, columns: Columns, width: int, look: Look, cursor: bool) -> Strip:
    """A line for a host in trouble or without cards: its name and why, in words."""
    tone = face.tone(look)
    line = Line(look.text).add(look.glyphs.mark if cursor else " ", look.ok)
    line.add(look.glyphs.link(face.state.link), link_style(face, look)).add(" ")
    line.add(cut_middle(safe_line(face.state.host), columns.host - 3, look.glyphs.cut), tone.strong)
    line.pad_to(1 + columns.host)
    words = reason(face.state, face.now_s) or sentence(face.state, face.now_s)
    style = look.muted if face.state.link == "connecting" else link_style(face, look)
    line.add(cut_end(words, width - line.cells - 1, look.glyphs.cut), style)
    return line.strip(width, look.cursor if cursor else None)


def _draw_index_card(
    line: Line, face: HostFace, index: int, columns: Columns, look: Look, cursor: bool
) -> None:
    line.add(look.glyphs.mark if cursor else " ", look.ok)
    gpu = face.card(index)
    if gpu is not None:
        _draw_gpu(line, face, gpu, columns, look, face.tone(look))


def _draw_gpu(
    line: Line, face: HostFace, gpu: GpuSample, columns: Columns, look: Look, tone: Tone
) -> None:
    history = face.state.history.get(history_key(gpu))
    holder = face.holders.get((face.state.host, gpu.index), NOBODY)
    draw_card(line, gpu, history, holder, columns, look, tone)


def _right_parts(face: HostFace, look: Look) -> list[list[Piece]]:
    """Parts of the upper border's right side, the dearest first."""
    state, tone = face.state, face.tone(look)
    parts: list[list[Piece]] = []
    words = reason(state, face.now_s)
    if words and (state.latest is not None and state.latest.gpus):
        parts.append(
            [(words, look.muted if state.link == "connecting" else link_style(face, look))]
        )
    if price := price_text(face.price_per_h, face.currency):
        idle = idle_text(state, face.now_s)
        parts.append([(price, tone.text), *([(", " + idle, tone.warn)] if idle else [])])
    if state.latest is not None:
        parts += _load_parts(state.latest, look, tone, old=face.old)
    if platform := (face.platform or (state.facts.platform if state.facts else None)):
        parts.append([(safe_line(platform, 12), tone.muted)])
    if (age := age_text(state, face.now_s)) and not words:
        parts.insert(0, [(age, look.warn)])
    return parts


def _load_parts(sample: HostSample, look: Look, tone: Tone, *, old: bool) -> list[list[Piece]]:
    parts: list[list[Piece]] = []
    if source := source_text(sample):
        parts.append([(source, look.warn if not old else tone.muted)])
    disk, low = worst_disk_text(sample)
    if disk:
        sign = f" {look.glyphs.warning}" if low else ""
        parts.append([(disk + sign, tone.warn if low and not old else tone.muted)])
    if sample.mem_total_mib:
        memory = mib_pair_text(sample.mem_used_mib, sample.mem_total_mib)
        parts.append([("ram ", tone.muted), (memory, tone.text)])
    if sample.cpu_pct is not None:
        parts.append([("cpu ", tone.muted), (f"{sample.cpu_pct:>3.0f}%", tone.text)])
    return parts


def _fit_right(parts: list[list[Piece]], room: int) -> list[Piece]:
    """As many parts as fit, the dearest kept longest, drawn in reverse so that the price is last."""
    chosen: list[list[Piece]] = []
    for part in parts:
        if pieces_width(part) + 2 > room:
            if not chosen and room > 12:
                text, style = part[0]
                chosen.append([(cut_end(text, room - 2), style)])
            break
        chosen.append(part)
        room -= pieces_width(part) + 2
    out: list[Piece] = []
    for part in reversed(chosen):
        out += [(" ", part[0][1]), *part, (" ", part[0][1])]
    return out
