"""What the driver's Xid numbers mean, for Ampere and newer: how bad, and what helps.

Source: NVIDIA's Xid catalogue and nverror.h of the open kernel modules.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from cockpit.domain.incidents import Severity

Weight: TypeAlias = Literal["cause", "symptom", "fallout"]


class Xid(NamedTuple):
    """`advice` are remedy codes; a fallout is printed because something else failed."""

    severity: Severity
    advice: tuple[str, ...]
    weight: Weight = "cause"


_APP: Final = ("restart_run", "check_indices", "other_card")
_RESET: Final = ("restart_instance", "report_card")
_TICKET: Final = ("report_card",)
_LINK: Final = ("leave_card", "restart_instance", "report_card")
_WATCH: Final = ("reset_at_next_stop",)
_NOTHING: Final = ("nothing_to_do",)

XIDS: Final[dict[int, Xid]] = {
    8: Xid("warning", _APP, "symptom"),
    11: Xid("warning", _APP, "symptom"),
    13: Xid("fatal", _APP, "symptom"),
    31: Xid("fatal", _APP, "symptom"),
    32: Xid("warning", ("restart_run", "report_card")),
    37: Xid("notice", _NOTHING),
    38: Xid("warning", _TICKET),
    39: Xid("warning", _APP, "symptom"),
    43: Xid("notice", _NOTHING, "fallout"),
    44: Xid("notice", _NOTHING),
    45: Xid("notice", _NOTHING, "fallout"),
    46: Xid("fatal", _RESET),
    48: Xid("fatal", _RESET),
    60: Xid("warning", _APP, "symptom"),
    61: Xid("warning", _TICKET),
    62: Xid("fatal", _RESET),
    63: Xid("notice", _WATCH),
    64: Xid("fatal", _RESET),
    66: Xid("warning", ("update_driver",)),
    68: Xid("warning", _APP, "symptom"),
    69: Xid("warning", _APP, "symptom"),
    74: Xid("fatal", _LINK),
    79: Xid("fatal", _RESET),
    80: Xid("warning", ("restart_run", "report_card")),
    92: Xid("warning", _TICKET),
    93: Xid("notice", _NOTHING),
    94: Xid("fatal", ("restart_run", "reset_at_next_stop")),
    95: Xid("fatal", _RESET),
    109: Xid("fatal", _RESET),
    110: Xid("fatal", _RESET),
    119: Xid("fatal", ("restart_instance", "update_driver")),
    120: Xid("fatal", ("restart_instance", "update_driver")),
    121: Xid("notice", _NOTHING),
    136: Xid("fatal", _LINK),
    137: Xid("notice", ("look_at_other_ranks",), "fallout"),
    140: Xid("fatal", _RESET),
    141: Xid("notice", _NOTHING),
    143: Xid("fatal", _RESET),
    151: Xid("warning", ("restart_instance",)),
    154: Xid("warning", ("recovery_action",)),
    155: Xid("warning", _RESET),
    156: Xid("notice", _WATCH),
    157: Xid("fatal", _TICKET),
    158: Xid("fatal", _RESET),
    160: Xid("notice", _WATCH),
    161: Xid("fatal", _TICKET),
    167: Xid("fatal", _RESET),
    168: Xid("fatal", _TICKET),
    171: Xid("fatal", _RESET),
    172: Xid("fatal", _RESET),
    **{code: Xid("fatal", _LINK) for code in range(144, 151)},
}
UNKNOWN: Final = Xid("warning", _TICKET)


def meaning(code: int) -> Xid:
    """What is known of an Xid; an unknown one is shown and worth a warning."""
    return XIDS.get(code, UNKNOWN)


def nvlink_severity(code: int, text: str) -> Severity | None:
    """NVLink 5 errors carry their own severity in the text."""
    if 144 <= code <= 150 and "nonfatal" in text.replace("-", "").lower():
        return "warning"
    return None


_CAUSES: Final[dict[int, str]] = {
    13: "kernel_fault", 31: "illegal_access", 48: "memory_hardware", 63: "row_remapped", 64: "memory_hardware",
    74: "link_hardware", 79: "gpu_lost", 92: "memory_hardware", 94: "memory_hardware", 95: "memory_hardware",
    119: "gsp_timeout", 120: "gsp_timeout", 136: "link_hardware", 140: "memory_hardware", 167: "gpu_lost",
    168: "memory_hardware", 171: "memory_hardware", 172: "memory_hardware",
    **dict.fromkeys(range(144, 151), "link_hardware"),
}  # fmt: skip


def cause_of(code: int) -> str:
    """The cause that stands behind an Xid, where it has a name."""
    return _CAUSES.get(code, "xid")
