"""The curve that is kept with an incident, as rows of text: fixed axis, the moment marked at its end."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.domain.incident_proof import Curve
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, mib_text
from cockpit.i18n import _
from cockpit.i18n.describe import size_text
from cockpit.widgets.chart import area
from cockpit.widgets.drawing import padded_left, width_of
from cockpit.widgets.glyphs import Glyphs
from cockpit.widgets.log_time import clock

ROWS = 5
_AXIS = 6
_LEAST_CELLS = 12


def curve_title(curve: Curve) -> str:
    """ "memory of GPU 0, 18.9 to 22.8 GiB of 24.0 GiB in the 10 min before"."""
    known = [value for value in curve.values if value is not None]
    span = duration_text(int(curve.span_s))
    if not known:
        return curve_name(curve)
    low, last = min(known), known[-1]
    if curve.kind == "util":
        words = _("{name}: {low} to {high} %, {last} % at the end, in the {span} before")
        return words.format(
            name=curve_name(curve), low=f"{low:.0f}", high=f"{max(known):.0f}",
            last=f"{last:.0f}", span=span,
        )  # fmt: skip
    facts = {
        "name": curve_name(curve),
        "low": size_text(low),
        "last": size_text(last),
        "span": span,
    }
    if curve.top:
        words = _("{name}: from {low} to {last} of {total} in the {span} before")
        return words.format(total=size_text(curve.top), **facts)
    return _("{name}: from {low} to {last} in the {span} before").format(**facts)


def curve_name(curve: Curve) -> str:
    names = {
        "gpu": _("memory of GPU {gpu}"),
        "process": _("memory of {name} on GPU {gpu}"),
        "util": _("use of GPU {gpu}"),
        "host": _("memory of the host"),
        "shm": _("shared memory"),
        "disk": _("disk {name}"),
    }
    return names[curve.kind].format(gpu=curve.gpu, name=safe_line(curve.name, 48) or _("a process"))


def curve_rows(curve: Curve, width: int, glyphs: Glyphs, rows: int = ROWS) -> list[tuple[str, str]]:
    """(axis, drawing) of each row from top to bottom; nothing when there is no room or no reading."""
    known = [value for value in curve.values if value is not None]
    cells = width - _AXIS - 2
    top = curve.top or max(known, default=0.0)
    if not known or cells < _LEAST_CELLS or top <= 0:
        return []
    values = spread(curve.values, cells)
    drawn = area(values, top, rows, glyphs, braille=False)
    label = "100%" if curve.kind == "util" else mib_text(top, width=0)
    axes = [label, *("" for _row in drawn[1:])]
    found = [
        (padded_left(axis, _AXIS - 1) + glyphs.axis, line)
        for axis, line in zip(axes, drawn, strict=True)
    ]
    floor = glyphs.horizontal * len(values) + glyphs.lost
    found.append((padded_left("0", _AXIS - 1) + glyphs.axis_corner, floor))
    return [*found, (" " * _AXIS, _times(curve, len(values)))]


def spread(values: Sequence[float | None], cells: int) -> list[float | None]:
    """As many values as there are cells at most: stretches are joined by their highest, never cut off."""
    count = len(values)
    if count <= cells:
        each = max(1, cells // count) if count else 1
        return [value for value in values for _n in range(each)]
    found: list[float | None] = []
    for cell in range(cells):
        part = values[cell * count // cells : max((cell + 1) * count // cells, 1)]
        known = [value for value in part if value is not None]
        found.append(max(known) if known else None)
    return found


def _times(curve: Curve, cells: int) -> str:
    """How long before on the left, the clock at the moment on the right."""
    left = "-" + duration_text(int(curve.span_s))
    right = clock(curve.until_s)
    gap = cells + 1 - width_of(left) - width_of(right)
    return left + " " * gap + right if gap >= 1 else right
