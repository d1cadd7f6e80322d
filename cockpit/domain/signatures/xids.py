"""What the driver's Xid numbers mean, for Ampere and newer: how bad, and what helps.

Source: NVIDIA's Xid catalogue and nverror.h of the open kernel modules.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from cockpit.domain.incidents import Severity

Weight: TypeAlias = Literal["cause", "symptom", "fallout"]


class Xid(NamedTuple):
    """`advice` are remedy codes; a fallout is printed because something else failed."""

    name: str
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
    8: Xid("GPU stopped processing", "warning", _APP, "symptom"),
    11: Xid("corrupted push buffer", "warning", _APP, "symptom"),
    13: Xid("engine exception", "fatal", _APP, "symptom"),
    31: Xid("GPU memory page fault", "fatal", _APP, "symptom"),
    32: Xid("PBDMA error", "warning", ("restart_run", "report_card")),
    37: Xid("driver firmware error", "notice", _NOTHING),
    38: Xid("driver firmware watchdog", "warning", _TICKET),
    39: Xid("copy engine exception", "warning", _APP, "symptom"),
    43: Xid("GPU channel reset", "notice", _NOTHING, "fallout"),
    44: Xid("fault during context switch", "notice", _NOTHING),
    45: Xid("preemptive cleanup", "notice", _NOTHING, "fallout"),
    46: Xid("GPU timeout", "fatal", _RESET),
    48: Xid("double-bit ECC error", "fatal", _RESET),
    60: Xid("video processor exception", "warning", _APP, "symptom"),
    61: Xid("internal micro-controller warning", "warning", _TICKET),
    62: Xid("internal micro-controller halt", "fatal", _RESET),
    63: Xid("row remapping recorded", "notice", _WATCH),
    64: Xid("row remapping failed", "fatal", _RESET),
    66: Xid("illegal access by the driver", "warning", ("update_driver",)),
    68: Xid("video decoder exception", "warning", _APP, "symptom"),
    69: Xid("graphics engine class error", "warning", _APP, "symptom"),
    74: Xid("NVLink error", "fatal", _LINK),
    79: Xid("GPU has fallen off the bus", "fatal", _RESET),
    80: Xid("corrupted data sent to the GPU", "warning", ("restart_run", "report_card")),
    92: Xid("high single-bit ECC error rate", "warning", _TICKET),
    93: Xid("InfoROM worn", "notice", _NOTHING),
    94: Xid("contained memory error", "fatal", ("restart_run", "reset_at_next_stop")),
    95: Xid("uncontained memory error", "fatal", _RESET),
    109: Xid("context switch timeout", "fatal", _RESET),
    110: Xid("security fault", "fatal", _RESET),
    119: Xid("GSP firmware does not answer", "fatal", ("restart_instance", "update_driver")),
    120: Xid("GSP firmware error", "fatal", ("restart_instance", "update_driver")),
    121: Xid("corrected error on the chip-to-chip link", "notice", _NOTHING),
    136: Xid("NVLink training failed", "fatal", _LINK),
    137: Xid("NVLink privilege error", "notice", ("look_at_other_ranks",), "fallout"),
    140: Xid("unrecovered ECC error", "fatal", _RESET),
    141: Xid("CUDA fast path", "notice", _NOTHING),
    143: Xid("GPU initialisation error", "fatal", _RESET),
    151: Xid("key rotation error", "warning", ("restart_instance",)),
    154: Xid("GPU recovery action changed", "warning", ("recovery_action",)),
    155: Xid("NVLink error in software", "warning", _RESET),
    156: Xid("resource retirement", "notice", _WATCH),
    157: Xid("resource retirement failed", "fatal", _TICKET),
    158: Xid("GPU fatal timeout", "fatal", _RESET),
    160: Xid("channel retirement", "notice", _WATCH),
    161: Xid("channel retirement failed", "fatal", _TICKET),
    167: Xid("PCIe fatal timeout", "fatal", _RESET),
    168: Xid("reduced memory capacity", "fatal", _TICKET),
    171: Xid("uncorrectable DRAM error", "fatal", _RESET),
    172: Xid("uncorrectable SRAM error", "fatal", _RESET),
    **{
        code: Xid(f"NVLink error ({unit})", "fatal", _LINK)
        for code, unit in zip(
            range(144, 151),
            ("SAW", "RLW", "TLW", "TREX", "NVLPW_CTRL", "NETIR", "MSE"),
            strict=True,
        )
    },
}
UNKNOWN: Final = Xid("unknown Xid", "warning", _TICKET)


def meaning(code: int) -> Xid:
    """What is known of an Xid; an unknown one is shown and worth a warning."""
    return XIDS.get(code, UNKNOWN)


def nvlink_severity(code: int, text: str) -> Severity | None:
    """NVLink 5 errors carry their own severity in the text."""
    if 144 <= code <= 150 and "nonfatal" in text.replace("-", "").lower():
        return "warning"
    return None
