"""What stands before a message: rank tags, log levels, times, container and kernel prefixes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MOST_LAYERS: Final = 8

_PREFIX: Final = re.compile(
    r"\[(?:rank|default)(?P<rank>\d{1,5})\]:[ ]?"
    r"|\[(?P<glog>[IWEF])(?:\d[\d.: ]*| )[^\]]{0,120}\][ ]?"
    r"|(?P<torch>[IWEF])\d{4} [\d:.]+ +(?:\d+ )?[^\]\s]{1,160}\][ ]?"
    r"|(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL) \d\d-\d\d [\d:]{8}(?:[.,]\d+)? "
    r"\[?[\w./]+:\d+\][ ]?"
    r"|\((?P<who>EngineCore\w*|Engine_?\w*|Worker\w*|VllmWorker\w*|APIServer\w*|ApiServer\w*|"
    r"RayWorker\w*|RayWorkerWrapper|\w{1,40})(?P<tags>(?: rank=\d+)?(?: pid=\d+)?(?:, ip=[\d.]+)?)\)[ ]?"
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?P<sgl>(?: [DTPE]P\d+)*)\](?: \[(?P<bracket>[A-Z]+)\])?"
    r"(?: \[[\w./]+:\d+:\w+\])?(?: \[Rank (?P<dsrank>\d+)\])?[ ]?"
    r"|(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,64} )?(?P<kernel>kernel: )(?:\[ *\d+\.\d+\] )?"
    r"|\[ *(?P<dmesg>\d+\.\d+)\] |\[(?P<dmesgt>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})\] "
    r"|(?P<srun>\d{1,4}): (?=\S)"
    r"|[\w.-]{1,64} +\| (?=\S)"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?:? (?:std(?:out|err) [FP] )?"
    r"(?:(?P<tf>[IWEF]) \S{1,160}\] )?"
    r"|(?:\[[\w.]{1,60}\])?\[(?P<only>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\](?: - | )?"
    r"|- [\w.-]{1,60} - (?P<dash>DEBUG|INFO|WARNING|ERROR|CRITICAL) - "
    r"|\| (?P<pipe>DEBUG|INFO|WARNING|ERROR|CRITICAL) +\| [^|]{1,120}?(?: - | \| )"
    r"|\[[\d/-]{0,10}T? ?\d\d:\d\d:\d\d(?:[.,]\d+)?\](?:\[[\w.]{1,60}\])?(?: |\[)"
    r"(?P<hydra>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    r"(?:\] - | +)"
    r"|(?P<root>ERROR):[\w.]+:"
    r"|\[\d+,(?P<mpi>\d{1,5})\]<std(?:err|out)>:[ ]?"
    r"|(?:\d\d:\d\d:\d\d )?(?P<word>DEBUG|INFO|WARNING|WARN|CRITICAL|FATAL)(?: *\| *| - |: +(?!task )|:[\w.]+:)"
)
_LEVELS: Final = {
    "I": "info", "W": "warning", "E": "error", "F": "error", "DEBUG": "info", "INFO": "info",
    "WARNING": "warning", "WARN": "warning", "ERROR": "error", "CRITICAL": "error", "FATAL": "error",
}  # fmt: skip
_LEVEL_GROUPS: Final = (
    "glog", "torch", "level", "bracket", "tf", "only", "dash", "pipe", "hydra", "root", "word",
)  # fmt: skip
_KEYED_LEVEL: Final = re.compile(r"\blevel=(\w+)")
_RANK_IN_NAME: Final = re.compile(r"(?:rank=|_TP|TP)(\d{1,5})")
_RANK_IN_TEXT: Final = re.compile(r"\b[Rr]ank[ :]+(\d{1,5})\b")
_KERNEL_HEADS: Final = (
    "NVRM: ", "nvidia-nvswitch", "oom-kill:constraint=", "Out of memory: Kill",
    "Memory cgroup out of memory: Kill", "pcieport ", "INFO: task ",
)  # fmt: skip


class Peeled(NamedTuple):
    """A line without what stands before its message."""

    message: str
    level: str = ""
    rank: int | None = None
    process: str = ""
    """Who printed it, where a server says so: EngineCore_DP0, Worker_TP1, …"""
    kernel: bool = False


def peel(line: str) -> Peeled:
    """Take the prefixes off one by one; what they said stays as tags."""
    level, process, kernel, rank, position = "", "", False, None, 0
    for _layer in range(_MOST_LAYERS):
        match = _PREFIX.match(line, position)
        if match is None or match.end() == position:
            break
        position = match.end()
        level = next((_LEVELS.get(match[name], "") for name in _LEVEL_GROUPS if match[name]), level)
        process = match["who"] or process
        kernel = kernel or any(match[name] for name in ("kernel", "dmesg", "dmesgt"))
        rank = _rank_tag(match) if rank is None else rank
    message = line[position:]
    keyed = _KEYED_LEVEL.search(line[:200]) if line.startswith(("time=", "ts=")) else None
    if keyed:
        level = _LEVELS.get(keyed[1].upper(), level)
    if " NCCL INFO " in message:
        level = "info"
    return Peeled(message, level, rank, process, kernel or message.startswith(_KERNEL_HEADS))


def rank_in(message: str) -> int | None:
    """A rank that the message itself names."""
    match = _RANK_IN_TEXT.search(message)
    return int(match[1]) if match else None


def _rank_tag(match: re.Match[str]) -> int | None:
    for name in ("rank", "srun", "dsrank", "mpi"):
        if match[name]:
            return int(match[name])
    named = _RANK_IN_NAME.search(f"{match['who'] or ''}{match['tags'] or ''}{match['sgl'] or ''}")
    return int(named[1]) if named else None
