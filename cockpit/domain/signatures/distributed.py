"""NCCL: time-outs, failed calls, vanished peers."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

DISTRIBUTED: Final = (
    Signature(
        id="nccl-shm",
        family="shm",
        literals=("shared memory",),
        pattern=(
            r"NCCL WARN (?:Error(?:: failed to create| while (?:creating|attaching to)) shared memory"
            r" (?:segment|file)) (?P<_path>\S+?),? ?(?:\(size (?P<needed_mib>\d+)\))?,? ?(?:error:?"
            r" (?P<_err>.+?) \((?P<errno>\d+)\))?$"
        ),
        cause="shm_full",
        remedies=("shm_size", "nccl_shm_off"),
        source="nccl src/misc/shmutils.cc -> src/os/linux.cc",
        examples=(
            "gpu7:1201:1290 [0] misc/shmutils.cc:87 NCCL WARN Error while creating shared memory "
            "segment /dev/shm/nccl-a81Xq2 (size 9637888), error: No space left on device (28)",
        ),
    ),
    Signature(
        id="nccl-watchdog",
        family="nccl",
        role="symptom",
        literals=("Watchdog caught collective operation timeout:",),
        pattern=(
            r"\[(?:PG (?:ID (?P<_pgid>\d+) PG GUID [^\]]*?)?[^\]]*)?(?:Rank|rank)"
            r" (?P<rank>\d+)\].*?Watchdog caught collective operation timeout:"
            r" WorkNCCL\((?:SeqNum=(?P<_seq>\d+), )?OpType=(?P<_op>\w+),(?: NumelIn=(?P<_nin>\d+),"
            r" NumelOut=(?P<_nout>\d+),)? Timeout\(ms\)=(?P<_to>\d+)\) ran for (?P<_ran>\d+)"
            r" milliseconds before timing out"
        ),
        cause="collective_timeout",
        remedies=("compare_ranks", "look_at_silent_rank", "flight_recorder"),
        source="pytorch ProcessGroupNCCL.cpp",
        examples=(
            "[rank5]:[E1130 12:10:00.812345678 ProcessGroupNCCL.cpp:685] [Rank 5] Watchdog "
            "caught collective operation timeout: WorkNCCL(SeqNum=48211, OpType=ALLREDUCE, "
            "NumelIn=25165824, NumelOut=25165824, Timeout(ms)=600000) ran for 600044 "
            "milliseconds before timing out.",
            "[rank1]:[E1130 12:10:00.812345678 ProcessGroupNCCL.cpp:685] [PG ID 0 PG GUID "
            "0(default_pg) Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=912, OpType=_ALLGATHER_BASE, NumelIn=4096, NumelOut=32768, "
            "Timeout(ms)=1800000) ran for 1800011 milliseconds before timing out.",
            "[E ProcessGroupNCCL.cpp:737] [Rank 3] Watchdog caught collective operation timeout: "
            "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1804406 milliseconds before "
            "timing out.",
        ),
    ),
    Signature(
        id="nccl-work",
        family="nccl",
        severity="notice",
        role="metric",
        literals=("ast enqueued",),
        pattern=(
            r"[Ll]ast enqueued(?: NCCL)? work: (?P<_enq>-?\d+), last completed(?: NCCL)? work:"
            r" (?P<_done>-?\d+)"
        ),
        cause="collective_timeout",
        source="pytorch ProcessGroupNCCL.cpp",
        examples=(
            "[rank5]:[E1130 12:10:00.812 ProcessGroupNCCL.cpp:2264] [PG ID 0 PG GUID "
            "0(default_pg) Rank 5]  failure detected by watchdog at work sequence id: 48211 PG "
            "status: last enqueued work: 48213, last completed work: 48210",
        ),
    ),
    Signature(
        id="nccl-down",
        family="nccl",
        role="fallout",
        literals=(
            "we are taking the entire process down.",
            "Some NCCL operations have failed or timed out.",
        ),
        pattern=(
            r"To avoid data inconsistency, we are taking the entire process down\.|Some NCCL"
            r" operations have failed or timed out\."
        ),
        cause="collective_timeout",
        remedies=("compare_ranks",),
        source="pytorch ProcessGroupNCCL.cpp",
        examples=(
            "[rank5]:[E1130 12:10:01.001 ProcessGroupNCCL.cpp:741] To avoid data inconsistency, "
            "we are taking the entire process down.",
        ),
    ),
    Signature(
        id="nccl-heartbeat",
        family="hang",
        role="symptom",
        literals=("watchdog got stuck", "Heartbeat monitor timed out"),
        pattern=(
            r"ProcessGroupNCCL's watchdog got stuck for (?P<_s>\d+) seconds without making progress|"
            r"Heartbeat monitor timed out!"
        ),
        cause="process_stuck",
        remedies=("py_spy", "check_xid"),
        source="pytorch ProcessGroupNCCL.cpp HeartbeatMonitor",
        examples=(
            "[rank2]:[F1130 12:20:00.1 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) "
            "Rank 2] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making "
            "progress in monitoring enqueued collectives.",
        ),
    ),
    Signature(
        id="nccl-cuda",
        family="nccl",
        role="symptom",
        literals=("ncclUnhandledCudaError", "unhandled cuda error"),
        pattern=(
            r"NCCL error(?: in: (?P<_file>\S+?), |: )?.*?unhandled cuda error|ncclUnhandledCudaError:"
            r" Call to CUDA function failed"
        ),
        cause="nccl_cuda_error",
        remedies=("leave_room_for_nccl", "check_xid"),
        source="pytorch NCCLUtils.hpp + nccl init.cc",
        examples=(
            "torch.distributed.DistBackendError: NCCL error in: "
            "../torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled cuda error (run with "
            "NCCL_DEBUG=INFO for details), NCCL version 2.27.5",
        ),
    ),
    Signature(
        id="nccl-sys",
        family="nccl",
        role="symptom",
        literals=("ncclSystemError", "unhandled system error"),
        pattern=(
            r"NCCL error(?: in: (?P<_file>\S+?), |: )?.*?unhandled system error|ncclSystemError:"
            r" System call \(e\.g\. socket, malloc\) or external library call failed"
        ),
        cause="nccl_system_error",
        remedies=("nccl_last_error", "shm_size", "nccl_ifname", "memlock"),
        source="pytorch NCCLUtils.hpp + nccl init.cc",
        examples=(
            "torch.distributed.DistBackendError: NCCL error in: "
            "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled system error "
            "(run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5",
        ),
    ),
    Signature(
        id="nccl-remote",
        family="nccl",
        role="fallout",
        literals=(
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            "remote process exited or there was a network error",
        ),
        pattern=(
            r"ncclRemoteError: A call failed possibly|remote process exited or there was a network"
            r" error"
        ),
        cause="peer_exited",
        remedies=("earliest_rank",),
        source="pytorch NCCLUtils.hpp",
        examples=(
            "ncclRemoteError: A call failed possibly due to a network error or a remote process "
            "exiting prematurely.",
        ),
    ),
    Signature(
        id="nccl-last",
        family="nccl",
        role="symptom",
        literals=("NCCL WARN Cuda failure",),
        pattern=(
            r"(?P<_host>\S+?):(?P<pid>\d+):(?P<_tid>\d+) \[(?P<gpu_index>\d+)\]"
            r" (?P<_src>\S+):(?P<_line>\d+) (?:\((?P<_fn>\w+)\) )?NCCL WARN Cuda failure"
            r" (?:(?P<_code>\d+) )?'(?P<_err>[^']+)'"
        ),
        cause="nccl_cuda_error",
        remedies=("leave_room_for_nccl", "check_xid"),
        source="pytorch NCCLUtils / nccl debug.cc",
        examples=("gpu7:1201:1290 [3] enqueue.cc:1420 NCCL WARN Cuda failure 2 'out of memory'",),
    ),
    Signature(
        id="nccl-conn",
        family="nccl",
        severity="warning",
        role="fallout",
        literals=("NCCL WARN",),
        pattern=(
            r"NCCL WARN .*?(?:Connection closed by remote peer|Call to (?:connect|recv|send)\S*"
            r" .*?(?:failed|timed out)|Got completion .*?with (?:error|status)|async fatal event)"
        ),
        cause="peer_exited",
        remedies=("earliest_rank", "check_fabric"),
        source="nccl src/misc/socket.cc, os/linux.cc",
        examples=(
            "gpu7:1201:1299 [3] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by "
            "remote peer gpu8<41022>",
        ),
    ),
    Signature(
        id="gloo-peer",
        family="nccl",
        role="fallout",
        literals=("gloo/transport/tcp/pair.cc",),
        pattern=(
            r"gloo/transport/tcp/pair\.cc:\d+\] (?:Connection closed by peer|Read error|Write error"
            r"|Application timeout caused pair closure|Timed out waiting|recv(?:v|from)?: |send(?:to)?: )"
        ),
        cause="peer_exited",
        remedies=("earliest_rank",),
        source="gloo transport/tcp/pair.cc",
        examples=(
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer "
            "[10.0.0.2]:41022",
            "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:525] Read error "
            "[127.0.0.1]:29500: Connection reset by peer",
        ),
    ),
    Signature(
        id="gloo-timeout",
        family="nccl",
        role="symptom",
        literals=("gloo/transport/tcp/",),
        pattern=(
            r"gloo/transport/tcp/\w+\.cc:\d+\] Timed out waiting (?P<_ms>\d+)ms for (?:send|recv)"
            r" operation to complete"
        ),
        cause="collective_timeout",
        remedies=("compare_ranks", "look_at_silent_rank"),
        source="gloo transport/tcp/unbound_buffer.cc",
        examples=(
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
            "1800000ms for recv operation to complete",
        ),
    ),
    Signature(
        id="gloo-mesh",
        family="nccl",
        role="symptom",
        literals=("Gloo connectFullMesh failed",),
        pattern=(r"Gloo connectFullMesh failed with (?P<_why>.*)"),
        cause="rendezvous",
        remedies=("nccl_ifname", "earliest_rank"),
        source="gloo context and rendezvous",
        examples=(
            "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144]"
            " no error",
        ),
    ),
)
