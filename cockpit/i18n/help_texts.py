"""A code explained without an occasion: every sentence, with its facts left as names."""

from __future__ import annotations

from typing import Final

from cockpit.i18n import _
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.messages import entry_of
from cockpit.i18n.sentences import N_

_EXITS: Final[dict[int, str]] = {
    0: N_("All is well."),
    64: N_("The command line has a mistake."),
    65: N_("A file or what came on stdin cannot be read as what it should be."),
    69: N_("A host did not answer, or did not let us in."),
    70: N_("A mistake of cockpit itself; cockpit.log has the traceback."),
    74: N_("A file here could not be read or written."),
    75: N_("Not now: no card came free in time, or how the run ends is not known."),
    76: N_("A host answered in a way that cockpit does not understand."),
    77: N_("A host's key is not trusted yet, or it changed."),
    78: N_("A profile, or a file of settings or hosts, has a mistake."),
}
_SIGNALS: Final = range(129, 193)


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"<{name}>"


def explain_plainly(code: str) -> list[str]:
    """The sentences of a code; a number that an occasion would give is shown by its name."""
    entry = entry_of(code)
    if entry is None:
        return [_(CAUSES[code])] if code in CAUSES else []
    templates = (entry.headlines[-1], *entry.body, *entry.actions)
    return [_(template).format_map(_Names()) for template in templates]


def explain_exit(code: int) -> str:
    """What a command's exit code says; a run's own passes through."""
    if code in _EXITS:
        return _(_EXITS[code])
    if code in _SIGNALS:
        return _("Signal {number} ended the run.").format(number=code - 128)
    return _("The run's own code; cockpit's are 64 to 78.")
