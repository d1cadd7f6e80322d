"""What a run's end says by itself, beside its log: killed for memory, or gone without a word."""

from __future__ import annotations

from cockpit.domain.incidents import FactValue, Finding, Remedy
from cockpit.domain.run_record import RunRecord

SIGKILL = 9


def finding_of_end(record: RunRecord) -> Finding | None:
    """The incident that a final record is, if it is one. A plain exit code is the job's own affair."""
    killed = record.signal == SIGKILL or record.code == 128 + SIGKILL
    if record.reason == "oom_killed" or (killed and record.oom_kills):
        facts: dict[str, FactValue] = {"exitcode": 128 + SIGKILL, "signal": SIGKILL}
        return Finding(
            family="host_oom",
            signature="cgroup-oom-kill",
            severity="fatal",
            facts=facts,
            cause="cgroup_oom_kill",
            remedies=(
                Remedy("fewer_workers"),
                Remedy("stream_data"),
                Remedy("raise_container_limit"),
            ),
        )
    if record.state == "lost":
        return Finding(
            family="crash",
            signature="run-lost",
            severity="fatal",
            facts={"reason": record.reason or "unknown"},
            cause=record.reason or "killed_without_record",
            remedies=(Remedy("restart_run"),),
        )
    return None
