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
        kind = safe_line(entry.kind, 12)
        room = max(8, width - 2 - len(kind) - 2)
        line.add(cut_middle(safe_line(entry.name), room, look.glyphs.cut), look.strong)
        line.pad_to(width - width_of(kind))
        return line.add(kind, look.muted)


@dataclass(frozen=True, slots=True)
class CardRow:
    """A card of a host that was considered."""

    card: CardChoice
    chosen: bool
    price_per_h: float | None = None
    currency: str | None = None

    @property
    def key(self) -> str:
        return f"{self.card.host}:{self.card.index}"

    def draw(self, look: Look, width: int) -> Line:
        card = self.card
        line = Line(look.text).add("[", look.muted)
        line.add(look.glyphs.done if self.chosen else " ", look.ok).add("] ", look.muted)
        where_cells = max(10, min(26, width // 3))
        place = f"{safe_line(card.host)}:{card.index}"
        line.add(cut_middle(place, where_cells), look.strong if self.chosen else look.text)
        line.pad_to(4 + where_cells + 1)
        free = mib_pair_text(card.free_mib, card.total_mib) + " " + _("free")
        price = price_text(self.price_per_h, self.currency)
        name = short_card(card.name)
        used = (
            _("free")
            if card.holder is None
            else _("used by {who}").format(who=safe_line(card.holder, 40))
        )
        columns = [(free.rjust(16), look.text if card.free_mib is not None else look.muted)]
        if width >= 84:
            columns.append((cut_middle(name, 14).ljust(14), look.muted))
        for text, style in columns:
            line.add(" ").add(text, style).add(" ")
        room = width - line.cells - (len(price) + 2 if width >= 64 else 0)
        line.add(" ").add(
            cut_end(used, max(4, room - 1)), look.ok if card.holder is None else look.warn
        )
        if width >= 64:
            line.pad_to(width - len(price)).add(price, look.muted)
        return line


def problems_text(entry: ProfileEntry) -> str:
    return ngettext("{n} mistake", "{n} mistakes", entry.problems).format(n=entry.problems)
