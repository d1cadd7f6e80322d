"""Help: the keys that are live on the screen below, read from its bindings, and what the signs mean."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ActiveBinding, ModalScreen, Screen

from cockpit.domain.filter_fields import FIELDS, FLAGS
from cockpit.i18n import _
from cockpit.screens.base import CockpitScreen, services, small
from cockpit.screens.keys import APP_BINDINGS, binding_ids
from cockpit.widgets.drawing import padded
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import BLANK, Para, TextPane, code, heading, para

_KEY_CELLS = 12
_LABEL_CELLS = 17
_MOVES = ("move.", "pane.", "list.up", "list.down")


class HelpScreen(ModalScreen[None]):
    """A page over the screen it explains; it changes nothing."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape,q,question_mark,f1", "close", _("close"), id="help.close", tooltip=_("Back")
        ),
    ]

    def __init__(self, about: Screen[Any]) -> None:
        super().__init__()
        self._live_keys = dict(about.active_bindings)
        self._display = about.app.get_key_display
        self._explained = about.explain() if isinstance(about, CockpitScreen) else []

    def compose(self) -> ComposeResult:
        yield TextPane(_("keys here"), foot=_("esc closes   arrows scroll"), id="help-text")

    def on_mount(self) -> None:
        pane = self.query_one(TextPane)
        keys = help_paras(self._live_keys, self._display, services(self).look)
        explained = [*self._explained, BLANK] if self._explained else []
        pane.show([*explained, *keys])
        pane.focus()

    def action_close(self) -> None:
        self.dismiss(None)


def help_paras(bindings: dict[str, ActiveBinding], display: Any, look: Look) -> list[Para]:
    """First this screen's keys, then those that work everywhere, then signs, filter and mouse."""
    everywhere = set(binding_ids(APP_BINDINGS))
    named: dict[str, tuple[list[str], Binding]] = {}
    for active in bindings.values():
        binding = active.binding
        if not binding.id or not binding.description or not active.enabled:
            continue
        named.setdefault(binding.id, ([], binding))[0].append(display(binding))
    moves = [entry for name, entry in named.items() if name.startswith(_MOVES)]
    here = [
        entry
        for name, entry in named.items()
        if name not in everywhere and not name.startswith(_MOVES)
    ]
    rest = [entry for name, entry in named.items() if name in everywhere]
    return [
        heading(_("On this screen")),
        *map(_key_para, here),
        BLANK,
        heading(_("Moving")),
        *map(_key_para, moves),
        BLANK,
        heading(_("Everywhere")),
        *map(_key_para, rest),
        BLANK,
        *_sign_paras(look),
        BLANK,
        *_filter_paras(),
        BLANK,
        *_mouse_paras(),
    ]


def _key_para(entry: tuple[list[str], Binding]) -> Para:
    keys, binding = entry
    shown = " ".join(dict.fromkeys(keys))
    label = padded(small(binding.description), _LABEL_CELLS)
    return code(
        (padded(shown, _KEY_CELLS), "ok"), (f"{label} ", "text"), (binding.tooltip, "muted")
    )


def _sign_paras(look: Look) -> list[Para]:
    glyphs = look.glyphs
    signs = [
        (glyphs.live, _("live")),
        (glyphs.connecting, _("connecting")),
        (glyphs.stale, _("stale: the numbers are old and grey")),
        (glyphs.lost, _("lost, or a fatal incident")),
        (glyphs.warning, _("warning")),
        (glyphs.recovered, _("recovered")),
    ]
    lines = [code((padded(sign, _KEY_CELLS), "ok"), (words, "text")) for sign, words in signs]
    blocks = glyphs.bars[-1] * 6 + glyphs.bars[len(glyphs.bars) // 2] + glyphs.bar_empty * 4
    look_line = code(
        (f"{blocks} {''.join(glyphs.sparks)}".ljust(_KEY_CELLS + 6), "ok"),
        (_("looks broken? COCKPIT_GLYPHS=narrow or ascii; T changes the colours"), "muted"),
    )
    return [heading(_("Signs")), *lines, look_line]


def _filter_paras() -> list[Para]:
    fields = ", ".join(FIELDS)
    flags = ", ".join(FLAGS)
    return [
        heading(_("Filter")),
        code(("free>20GiB & tag:4090 & !incident host:h100", "ok")),
        para(_("Words narrow by name; : has, = is, ~ pattern, > >= < <=; & | ! and brackets.")),
        para(_("Fields: {fields}.").format(fields=fields), "muted"),
        para(_("States: {flags}.").format(flags=flags), "muted"),
    ]


def _mouse_paras() -> list[Para]:
    return [
        heading(_("Mouse and copying")),
        para(
            _("A click selects, a double click opens. Shift and drag selects as the terminal does.")
        ),
        para(_("Copies go by OSC 52; in tmux: set -g set-clipboard on.")),
        para(_("Where keys misbehave, TEXTUAL_DISABLE_KITTY_KEY=1 helps.")),
    ]
