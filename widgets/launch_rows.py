"""Rows of the Launch screen: a profile with what it is for, a card with what is free on it now."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.domain.text import cut_end, cut_middle, safe_line
from cockpit.domain.units import mib_pair_text, price_text
from cockpit.engine.api import CardChoice, ProfileEntry
from cockpit.i18n import _, ngettext
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.host_words import short_card
from cockpit.widgets.look import Look


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Name and kind; the description where there is width."""

    entry: ProfileEntry

    @property
    def key(self) -> str:
        return str(self.entry.path)

    def draw(self, look: Look, width: int) -> Line:
        entry = self.entry
        line = Line(look.text)
        if entry.problems:
            line.add(look.glyphs.warning + " ", look.warn)
        else:
            line.add(("  " if entry.origin == "shipped" else look.glyphs.mark + " "), look.ok)
        name, kind = safe_line(entry.name), safe_line(entry.kind, 12)
        if name == kind or (width < 48 and width_of(name) + width_of(kind) + 4 > width):
            kind = ""
        room = max(8, width - 2 - (width_of(kind) + 2 if kind else 0))
        if width >= 48:
            room = min(room, 22)
        at = line.cells + room + 2
        line.add(cut_middle(name, room, look.glyphs.cut), look.strong)
        if width >= 48:
            line.pad_to(at).add(kind.ljust(12), look.muted)
            words = problems_text(entry) if entry.problems else safe_line(entry.description)
            return line.add(cut_end(words, max(0, width - line.cells), look.glyphs.cut), look.muted)
        return line.pad_to(width - width_of(kind)).add(kind, look.muted)


@dataclass(frozen=True, slots=True)
class CardRow:
    """A card of a host that was considered, and who holds it."""

    card: CardChoice
    chosen: bool
    place_cells: int = 12
    price_per_h: float | None = None
    currency: str | None = None

    @property
    def key(self) -> str:
        return f"{self.card.host}:{self.card.index}"

    @property
    def place(self) -> str:
        return safe_line(f"{self.card.host}:{self.card.index}")

    def draw(self, look: Look, width: int) -> Line:
        card = self.card
        line = Line(look.text).add("[", look.muted)
        line.add(look.glyphs.done if self.chosen else " ", look.ok).add("] ", look.muted)
        place = cut_middle(self.place, self.place_cells, look.glyphs.cut)
        line.add(place, look.strong if self.chosen else look.text).pad_to(6 + self.place_cells)
        free = mib_pair_text(card.free_mib, card.total_mib)
        line.add(free.rjust(12), look.text).add(" " + _("free") + "   ", look.muted)
        price = price_text(self.price_per_h, self.currency) if width >= 56 else ""
        if width >= 76:
            at = line.cells + 16
            line.add(cut_middle(short_card(card.name), 14), look.muted).pad_to(at)
        room = width - line.cells - (width_of(price) + 2 if price else 0)
        used, style = _("nobody on it"), look.ok
        if card.holder is not None:
            used, style = safe_line(card.holder, 60), look.warn
        line.add(cut_end(used, max(0, room), look.glyphs.cut), style)
        return line.pad_to(width - width_of(price)).add(price, look.muted)


def problems_text(entry: ProfileEntry) -> str:
    return ngettext("{n} mistake", "{n} mistakes", entry.problems).format(n=entry.problems)
