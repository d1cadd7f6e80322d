"""Rendezvous and the launchers that start ranks."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

LAUNCHERS: Final = (
    Signature(
        id="tcpstore",
        family="nccl",
        role="symptom",
        literals=(
            "client socket has timed out",
            "server socket has failed to listen",
            "got 0 bytes",
            "Connection was likely closed",
        ),
        pattern=(
            r"The client socket has timed out after (?P<_ms>\d+)(?:ms|s) while trying to connect to"
            r" \((?P<_host>[^)]+)\)|The server socket has failed to listen on any local network"
            r" address|failed to recv, got 0 bytes|Connection was likely closed"
        ),
        cause="rendezvous",
        remedies=("master_reachable", "other_master_port"),
        source="pytorch c10d TCPStore/socket",
        examples=(
            "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms "
            "while trying to connect to (10.0.0.4, 29500).",
        ),
    ),
    Signature(
        id="elastic-fail",
        family="crash",
        role="wrapper",
        literals=("failed (exitcode:",),
        pattern=(
            r"failed \(exitcode: (?P<exitcode>-?\d+)\) local_rank: (?P<_local_rank>\d+) \(pid:"
            r" (?P<pid>\d+)\) of (?:binary|fn): (?P<_bin>\S+)"
        ),
        cause="rank_failed",
        remedies=("earliest_rank",),
        source="pytorch distributed/elastic/multiprocessing/api.py",
        examples=(
            "E1130 12:11:03.410000 1180 torch/distributed/elastic/multiprocessing/api.py:1003] "
            "failed (exitcode: -9) local_rank: 2 (pid: 31877) of binary: /opt/venv/bin/python3",
        ),
    ),
    Signature(
        id="elastic-root",
        family="crash",
        role="wrapper",
        literals=("Root Cause (first observed failure):",),
        pattern=(r"Root Cause \(first observed failure\):"),
        cause="rank_failed",
        remedies=("earliest_rank", "record_main"),
        source="pytorch distributed/elastic/multiprocessing/errors",
        examples=("Root Cause (first observed failure):",),
    ),
    Signature(
        id="elastic-rc",
        family="crash",
        role="wrapper",
        literals=("exitcode",),
        pattern=(
            r"^ *exitcode +: (?P<exitcode>-?\d+) \(pid: (?P<pid>\d+)\)(?: \((?P<signal>SIG\w+)\))?"
        ),
        cause="rank_failed",
        remedies=("earliest_rank",),
        source="same",
        examples=("  exitcode  : -9 (pid: 31877) (SIGKILL)",),
    ),
    Signature(
        id="elastic-restart",
        family="crash",
        severity="warning",
        role="wrapper",
        literals=("attempts left; will restart worker group",),
        pattern=(
            r"Worker group (?P<_state>FAILED|UNHEALTHY)\. (?P<_left>\d+)/(?P<_max>\d+) attempts left;"
            r" *will restart worker group"
        ),
        cause="worker_group_restarted",
        remedies=("read_first_error",),
        source="pytorch elastic/agent/server/api.py",
        examples=("[default] Worker group FAILED. 2/3 attempts left; will restart worker group",),
    ),
    Signature(
        id="mp-spawn",
        family="crash",
        role="wrapper",
        literals=("terminated with",),
        pattern=(
            r"[Pp]rocess (?P<_i>\d+) terminated with (?:signal (?P<signal>SIG\w+)|exit code"
            r" (?P<exitcode>\d+)|the following error)"
        ),
        cause="rank_failed",
        remedies=("check_kernel_log", "read_first_error"),
        source="pytorch torch/multiprocessing/spawn.py",
        examples=(
            "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with "
            "signal SIGKILL",
        ),
    ),
    Signature(
        id="elastic-signal",
        family="crash",
        role="wrapper",
        literals=("received by PID", "died with <Signals."),
        pattern=(
            r"Signal \d+ \((?P<signal>SIG[A-Z]+)\) received by PID (?P<pid>\d+)"
            r"|died with <Signals\.(?P<_signal>SIG[A-Z]+): \d+>"
        ),
        cause="rank_failed",
        remedies=("check_kernel_log", "read_first_error"),
        source="torch/distributed/elastic/multiprocessing/errors, Python subprocess",
        examples=(
            "  traceback : Signal 9 (SIGKILL) received by PID 31877",
            "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.",
        ),
    ),
    Signature(
        id="stopped",
        family="crash",
        severity="notice",
        role="stop",
        literals=("KeyboardInterrupt", "Received Signals.SIG"),
        pattern=(r"^\s*KeyboardInterrupt\b|Received Signals\.(?P<_signal>SIG[A-Z]+) death signal"),
        cause="stopped",
        any_level=True,
        source="Python, torch/distributed/elastic/agent/server/api.py",
        examples=(
            "[rank0]: KeyboardInterrupt",
            "W1130 12:11:02.1 1180 torch/distributed/elastic/agent/server/api.py:753] Received "
            "Signals.SIGTERM death signal, shutting down workers",
        ),
    ),
)
