"""What our own instruments said when an incident opened: the curve before it, who was on the card, the versions."""

from __future__ import annotations

from cockpit.domain.incident_proof import Holder
from cockpit.domain.incidents import Incident
from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.i18n.describe import size_text
from cockpit.i18n.sentences import listed
from cockpit.widgets.curve_chart import curve_rows, curve_title
from cockpit.widgets.drawing import padded
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import Para, Role, code, para

_MOST_HOLDERS = 5
LABEL = 12


def proof_paras(incident: Incident, look: Look, *, indent: int, width: int) -> list[Para]:
    """Nothing where nothing was kept; one line where it should have been."""
    proof = incident.proof
    if proof is None:
        if incident.run is None or incident.finding.offset is None:
            return []
        words = _("It stood in the log before anybody watched: there are no readings from then.")
        return [para(words, "muted", indent=indent)]
    rows: list[Para] = []
    if proof.curve is not None:
        rows.append(para(curve_title(proof.curve), "muted", indent=indent))
        rows += [
            code((axis, "muted"), (line, "ok"), indent=indent)
            for axis, line in curve_rows(proof.curve, width - indent, look.glyphs)
        ]
        rows = _marked(rows, look)
    if proof.company is not None:
        rows.append(_labelled(_("then on it"), company_words(incident), indent))
    if words := machine_words(proof.machine):
        rows.append(_labelled(_("machine"), words, indent))
    return rows


def _marked(rows: list[Para], look: Look) -> list[Para]:
    """The moment in the colour of trouble, the axis quiet."""
    found = []
    for one in rows:
        axis, line = (one.pieces[0][0], one.pieces[-1][0])
        if one.wrap or len(one.pieces) != 2:
            found.append(one)
        elif line.endswith(look.glyphs.lost):
            pieces: tuple[tuple[str, Role], ...] = (
                (axis + line[: -len(look.glyphs.lost)], "muted"), (look.glyphs.lost, "fatal"),
            )  # fmt: skip
            found.append(code(*pieces, indent=one.indent))
        elif axis.isspace():
            found.append(code((axis + line, "muted"), indent=one.indent))
        else:
            found.append(one)
    return found


def _labelled(label: str, words: str, indent: int) -> Para:
    pieces: tuple[tuple[str, Role], ...] = ((padded(label, LABEL), "muted"), (words, "text"))
    return Para(pieces, indent, LABEL)


def company_words(incident: Incident) -> str:
    """Each process with what it held, the incident's own run named as such."""
    company = () if incident.proof is None else incident.proof.company or ()
    shown = [_holder(one, incident) for one in company[:_MOST_HOLDERS]]
    if len(company) > _MOST_HOLDERS:
        shown.append(_("and {n} more").format(n=len(company) - _MOST_HOLDERS))
    return listed(shown) if shown else _("nobody")


def _holder(one: Holder, incident: Incident) -> str:
    words = f"{safe_line(one.name, 24) or _('process')} {one.pid}"
    if one.used_mib is not None:
        words += f" {size_text(one.used_mib)}"
    if one.run and one.run == incident.run:
        return words + " " + _("(this run)")
    whose = one.run or one.user
    return f"{words} ({safe_line(whose, 32)})" if whose else words


def machine_words(machine: object) -> str:
    """ "NVIDIA A100, driver 550.54, CUDA 12.4, Ubuntu 22.04"."""
    if not isinstance(machine, dict) and not hasattr(machine, "get"):
        return ""
    named = {
        "gpu": "{value}",
        "driver": _("driver {value}"),
        "cuda": "CUDA {value}",
        "os": "{value}",
        "platform": "{value}",
    }
    told = [
        words.format(value=safe_line(str(machine[name]), 48))
        for name, words in named.items()
        if machine.get(name)
    ]
    return listed(told) if told else ""
