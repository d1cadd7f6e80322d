"""/dev/shm, DataLoader workers and file descriptors."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

SHARED_MEMORY: Final = (
    Signature(
        id="shm-bus",
        family="shm",
        literals=(
            "Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        ),
        pattern=(
            r"ERROR: Unexpected bus error encountered in worker\. This might be caused by insufficient"
            r" shared memory \(shm\)"
        ),
        cause="shm_full",
        remedies=("shm_size", "fewer_workers", "file_system_sharing"),
        source="pytorch torch/csrc/DataLoader.cpp",
        examples=(
            "ERROR: Unexpected bus error encountered in worker. This might be caused by "
            "insufficient shared memory (shm).",
        ),
    ),
    Signature(
        id="dl-signal",
        family="shm",
        role="symptom",
        literals=("is killed by signal:",),
        pattern=(
            r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal:"
            r" (?P<_signal>[^.]+)\.(?P<_shm> It is possible that dataloader's workers are out of"
            r" shared memory)?"
        ),
        cause="worker_killed",
        remedies=("shm_size", "fewer_workers"),
        source="pytorch torch/csrc/DataLoader.cpp",
        examples=(
            "RuntimeError: DataLoader worker (pid 40112) is killed by signal: Killed. ",
            "RuntimeError: DataLoader worker (pid 40112) is killed by signal: Bus error. It is "
            "possible that dataloader's workers are out of shared memory. Please try to raise "
            "your shared memory limit.",
        ),
    ),
    Signature(
        id="dl-exit",
        family="shm",
        role="symptom",
        literals=("exited unexpectedly",),
        pattern=(
            r"DataLoader worker \(pid(?:\(s\))? (?P<_pids>[\d, ]+)\) exited unexpectedly(?: with exit"
            r" code (?P<exitcode>-?\d+))?"
        ),
        cause="worker_vanished",
        remedies=("check_kernel_log", "no_workers_once"),
        source="pytorch utils/data/dataloader.py, DataLoader.cpp",
        examples=("RuntimeError: DataLoader worker (pid(s) 40112, 40113) exited unexpectedly",),
    ),
    Signature(
        id="shm-nospace",
        family="shm",
        literals=(
            "unable to allocate shared memory",
            "unable to open shared memory",
            "unable to write to file",
            "unable to mmap",
        ),
        pattern=(
            r"unable to (?:allocate shared memory\(shm\) for file|open shared memory object|write to"
            r" file|mmap \d+ bytes from file) <(?P<path>[^>]*)>(?:.*?: (?P<_err>[A-Z][a-z].*?)"
            r" \((?P<errno>\d+)\))?"
        ),
        cause="shm_full",
        remedies=("shm_size", "nofile_limit", "file_system_sharing"),
        source="libc errno 28 on /dev/shm, pytorch MapAllocator",
        examples=(
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_3121_88_0>: No "
            "space left on device (28)",
        ),
    ),
    Signature(
        id="nofile",
        family="env",
        literals=("Too many open files", "received 0 items of ancdata"),
        pattern=(r"\[Errno 24\] Too many open files|received 0 items of ancdata"),
        cause="too_many_files",
        remedies=("nofile_limit", "file_system_sharing"),
        source="libc errno 24",
        examples=("RuntimeError: received 0 items of ancdata",),
    ),
)
