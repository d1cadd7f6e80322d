"""The first line of every screen: the fleet in one breath, what is wrong, and the time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.widget import Widget

from cockpit.i18n import _, ngettext
from cockpit.widgets.drawing import Line, Piece, pieces_width
from cockpit.widgets.look import Look, look_of

if TYPE_CHECKING:
    from cockpit.domain.occupancy import Sums


@dataclass(frozen=True, slots=True)
class HeaderFacts:
    """All that the header shows; equal facts are not drawn again."""

    sums: Sums
    fatal: int = 0
    warnings: int = 0
    wall_s: int = 0
    note: str = ""
    """PAUSED, a thin link: one short thing that a person must not forget."""
    muted: int = 0


class HeaderLine(Widget):
    """One row, drawn by itself; parts leave from the right when the width does not hold them."""

    DEFAULT_CSS = """
    HeaderLine { height: 1; width: 100%; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts: HeaderFacts | None = None

    def show(self, facts: HeaderFacts) -> None:
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, width = look_of(self), self.size.width
        line = Line(look.bar_text).add(" cockpit ", look.bar_key)
        if self._facts is None:
            return line.add(" ").add(_("opening …"), look.bar_muted).strip(width)
        right = self._right(look, self._facts)
        room = width - pieces_width(right) - line.cells
        for part in self._parts(look, self._facts):
            part_cells = pieces_width(part) + 2
            if part_cells > room:
                continue
            line.add("  ").add_all(part)
            room -= part_cells
        return line.pad_to(width - pieces_width(right)).add_all(right).strip(width)

    def _parts(self, look: Look, facts: HeaderFacts) -> list[list[Piece]]:
        from cockpit.domain.occupancy import money_text

        sums, strong, quiet = facts.sums, look.bar_text, look.bar_muted

        def count(number: int, word: str) -> list[Piece]:
            return [(str(number), strong), (" " + word, quiet)]

        hosts = count(sums.hosts, ngettext("host", "hosts", sums.hosts))
        if sums.live_hosts != sums.hosts:
            hosts = [(f"{sums.live_hosts}/{sums.hosts}", strong), (" " + _("hosts live"), quiet)]
        parts = [hosts]
        if sums.cards:
            parts.append(count(sums.cards, ngettext("GPU", "GPUs", sums.cards)))
            parts += [count(sums.busy, _("busy")), count(sums.free, _("free"))]
        if sums.lost:
            parts.append([(f"{sums.lost} " + _("lost"), look.fatal_badge)])
        if sums.mem_total_mib:
            used, total = sums.mem_used_mib / 1024, sums.mem_total_mib / 1024
            parts.append([(f"{used:.0f}/{total:.0f}", strong), (" GiB", quiet)])
        if sums.price_per_h:
            parts.append([(money_text(sums.price_per_h), strong), ("/h", quiet)])
            if sum(sums.idle_per_h.values()) >= 0.005:
                idle = money_text(sums.idle_per_h)
                idle = idle if len(sums.price_per_h) > 1 else idle.split(" ")[0]
                parts.append([(_("idle") + " ", quiet), (idle, strong)])
        if sums.power_w:
            parts.append([(f"{sums.power_w / 1000:.1f}", strong), (" kW", quiet)])
        return parts

    def _right(self, look: Look, facts: HeaderFacts) -> list[Piece]:
        pieces: list[Piece] = []
        if facts.note:
            pieces += [("  ", look.bar_text), (f" {facts.note} ", look.warn_badge)]
        glyphs = look.glyphs
        if facts.fatal:
            pieces += [("  ", look.bar_text), (f" {glyphs.lost} {facts.fatal} ", look.fatal_badge)]
        if facts.warnings:
            badge = f" {glyphs.warning} {facts.warnings} "
            pieces += [("  ", look.bar_text), (badge, look.warn_badge)]
        if facts.muted:
            words = _("{n} muted").format(n=facts.muted)
            pieces += [("  ", look.bar_text), (words, look.bar_muted)]
        clock = time.strftime("%H:%M:%S", time.localtime(facts.wall_s))
        return [*pieces, ("  ", look.bar_text), (clock, look.bar_muted), (" ", look.bar_text)]
