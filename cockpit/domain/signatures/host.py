"""The host's own memory, and what the kernel or a scheduler ended."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

HOST: Final = (
    Signature(
        id="k-oom-kill",
        family="host_oom",
        literals=("total-vm:",),
        pattern=(
            r"(?:(?P<_scope>Out of memory|Memory cgroup out of memory): )?Kill(?:ed)? process (?P<pid>\d+)"
            r" \((?P<_comm>.+?)\),? (?:.*?)total-vm:(?P<_vm>\d+)kB, anon-rss:(?P<anon_rss_mib>\d+kB),"
            r" file-rss:(?P<_file>\d+)kB(?:, shmem-rss:(?P<_shmem>\d+)kB)?(?:,"
            r" UID:(?P<_uid>\d+))?(?:.*?oom_score_adj:(?P<_adj>-?\d+))?"
        ),
        cause="kernel_oom_kill",
        remedies=("fewer_workers", "stream_data", "raise_container_limit"),
        kernel=True,
        bare_unit="kB",
        source="linux mm/oom_kill.c",
        examples=(
            "[88121.402113] Memory cgroup out of memory: Killed process 31877 (python3) "
            "total-vm:188211004kB, anon-rss:66120012kB, file-rss:40212kB, shmem-rss:8388608kB, "
            "UID:0 pgtables:201344kB oom_score_adj:0",
            "Nov 30 12:01:02 gpu7 kernel: Out of memory: Killed process 901 (pt_data_worker) "
            "total-vm:41222333kB, anon-rss:30122333kB, file-rss:0kB, shmem-rss:0kB, UID:1000 "
            "pgtables:60100kB oom_score_adj:300",
        ),
    ),
    Signature(
        id="k-oom-ctx",
        family="host_oom",
        literals=("oom-kill:constraint=",),
        pattern=(
            r"oom-kill:constraint=(?P<_constraint>CONSTRAINT_\w+),nodemask=(?P<_nm>[^,]*(?:,\d[^,=]*)*),cpuset=(?P<_cpuset>[^,]*),mems_allowed=(?P<_mems>[\d,-]*)(?:,global_oom)?(?:,oom_memcg=(?P<_memcg>[^,]*))?(?:,task_memcg=(?P<_tmemcg>[^,]*))?,task=(?P<_comm>[^,]*),pid=(?P<pid>\d+),uid=(?P<_uid>\d+)"
        ),
        cause="kernel_oom_kill",
        remedies=("fewer_workers", "stream_data", "raise_container_limit"),
        kernel=True,
        source="linux mm/oom_kill.c, memcontrol.c",
        examples=(
            "[88121.401000] "
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-8f1c.scope,mems_allowed=0-1,oom_memcg=/system.slice/docker-8f1c.scope,task_memcg=/system.slice/docker-8f1c.scope,task=python3,pid=31877,uid=0",
        ),
    ),
    Signature(
        id="k-oom-invoked",
        family="host_oom",
        severity="notice",
        role="metric",
        literals=("invoked oom-killer:",),
        pattern=(
            r"(?P<_comm>\S.{0,40}?) invoked oom-killer: gfp_mask=(?P<_gfp>\S+?), (?:nodemask=\S+,"
            r" )?order=(?P<_order>\d+), (?:oom_score_adj|oomkilladj)=(?P<_adj>-?\d+)"
        ),
        cause="kernel_oom_kill",
        kernel=True,
        source="linux mm/oom_kill.c",
        examples=(
            "[88121.400321] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, "
            "oom_score_adj=0",
        ),
    ),
    Signature(
        id="cg-events",
        family="host_oom",
        severity="notice",
        role="metric",
        literals=("oom_kill ",),
        pattern=(r"^oom_kill (?P<_n>\d+)$"),
        cause="cgroup_oom_kill",
        source="cgroup v2 memory.events (polled file, not a log)",
        examples=("oom_kill 3",),
    ),
    Signature(
        id="sh-killed",
        family="host_oom",
        role="symptom",
        literals=("Killed",),
        pattern=(
            r"(?:^|: )line \d+: +(?P<pid>\d+) Killed +(?P<_cmd>.+)$|^(?P<_bare>Killed)$|^\[\d+\][+-]?"
            r" +Killed +(?P<_cmd2>.+)$"
        ),
        cause="killed",
        remedies=("check_kernel_log", "fewer_workers", "raise_container_limit"),
        source="bash/dash job status",
        examples=(
            "run.sh: line 14: 31877 Killed                  python train.py --config a.yaml",
            "Killed",
        ),
    ),
    Signature(
        id="rc137",
        family="host_oom",
        role="symptom",
        literals=("code 137", "code: 137", "status 137", "status: 137", "code (137)", "OOMKilled"),
        pattern=(
            r"(?:[Ee]xit(?:ed)?(?: with)?(?: [Cc]ode| status):? \(?137\b|Reason:"
            r" +OOMKilled|\"OOMKilled\": ?true|exited with code 137)"
        ),
        cause="killed",
        remedies=("check_kernel_log", "fewer_workers", "raise_container_limit"),
        source="exit status (docker/k8s/shell)",
        examples=(
            "trainer-1 exited with code 137",
            "    Reason:       OOMKilled",
        ),
    ),
    Signature(
        id="slurm-oom",
        family="host_oom",
        literals=("oom_kill event", "oom-kill event"),
        pattern=(
            r"error: Detected (?P<_n>\d+) oom[_-]kill event(?:\(s\)|s)? in (?:StepId=|step"
            r" )(?P<step>[\w.]+)"
        ),
        cause="slurm_limit",
        remedies=("slurm_mem", "fewer_workers"),
        source="slurmstepd",
        examples=(
            "slurmstepd: error: Detected 1 oom_kill event in StepId=884123.batch. Some of the "
            "step tasks have been OOM Killed.",
        ),
    ),
    Signature(
        id="slurm-limit",
        family="crash",
        severity="warning",
        literals=("CANCELLED AT",),
        pattern=(
            r"slurmstepd: error: \*\*\* (?:JOB|STEP) (?P<_job>[\w.]+) ON (?P<_node>\S+) CANCELLED AT"
            r" \S+ DUE TO (?P<_why>TIME LIMIT|PREEMPTION|NODE FAILURE)"
        ),
        cause="scheduler_ended",
        remedies=("resume_checkpoint",),
        source="slurmstepd",
        examples=(
            "slurmstepd: error: *** JOB 884123 ON gpu7 CANCELLED AT 2026-11-30T12:00:00 DUE TO "
            "TIME LIMIT ***",
        ),
    ),
    Signature(
        id="ray-oom",
        family="host_oom",
        literals=("killed due to memory pressure (OOM)",),
        pattern=(r"(?P<_n>\d+) Workers \(tasks / actors\) killed due to memory pressure \(OOM\)"),
        cause="ray_memory_monitor",
        remedies=("ray_threshold", "ray_object_store", "fewer_workers"),
        any_level=True,
        source="ray raylet node_manager.cc",
        examples=(
            "(raylet) node_manager.cc:3041: 2 Workers (tasks / actors) killed due to memory "
            "pressure (OOM), 0 Workers crashed due to other reasons at node (ID: ab12, IP: "
            "10.0.0.4) over the last time period.",
        ),
    ),
    Signature(
        id="ray-oom-error",
        family="host_oom",
        literals=(
            "ray.exceptions.OutOfMemoryError",
            "killed due to the node running low on memory",
        ),
        pattern=(
            r"ray\.exceptions\.OutOfMemoryError: (?:Task|Actor|Worker)|killed due to the node running"
            r" low on memory"
        ),
        cause="ray_memory_monitor",
        remedies=("ray_threshold", "ray_object_store", "fewer_workers"),
        source="ray python/ray/exceptions.py, src/ray/common/memory_monitor",
        examples=(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on "
            "memory.",
        ),
    ),
    Signature(
        id="py-memerr",
        family="host_oom",
        literals=("MemoryError",),
        pattern=(
            r"(?:^|[\s\]:])(?P<_cls>(?:numpy\.(?:core|_core)\._exceptions\.)?_?(?:Array)?MemoryError)(?::"
            r" Unable to allocate (?P<tried_mib>[\d.]+ [KMGT]iB) for an array with shape"
            r" (?P<_shape>\([\d, ]*\))|$)"
        ),
        cause="host_allocation",
        remedies=("chunk_arrays", "raise_container_limit"),
        source="CPython / numpy",
        examples=(
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 48.0 GiB for an array "
            "with shape (6442450944,) and data type float64",
            "MemoryError",
        ),
    ),
    Signature(
        id="torch-cpu-oom",
        family="host_oom",
        literals=(
            "DefaultCPUAllocator: can't allocate memory",
            "DefaultCPUAllocator: not enough memory",
        ),
        pattern=(
            r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate"
            r" (?P<tried_mib>\d+) bytes"
        ),
        cause="host_allocation",
        remedies=("load_to_gpu", "shard_checkpoints", "less_offload"),
        source="pytorch c10/core/impl/alloc_cpu.cpp",
        examples=(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: "
            "can't allocate memory: you tried to allocate 51539607552 bytes. Error code 12 "
            "(Cannot allocate memory)",
        ),
    ),
    Signature(
        id="enomem",
        family="host_oom",
        literals=("[Errno 12] Cannot allocate memory",),
        pattern=(r"\[Errno 12\] Cannot allocate memory"),
        cause="host_fork",
        remedies=("spawn_workers", "workers_first", "overcommit"),
        source="libc errno 12",
        examples=("OSError: [Errno 12] Cannot allocate memory",),
    ),
    Signature(
        id="systemd-oom",
        family="host_oom",
        literals=(
            "killed by the OOM killer",
            "sending SIGKILL to process",
            "sending SIGTERM to process",
            "systemd-oomd killed",
        ),
        pattern=(
            r"A process of this unit has been killed by the OOM killer|systemd-oomd killed [1-9]\d* process"
            r"|sending SIG(?:TERM|KILL) to process (?P<pid>\d+)"
        ),
        cause="kernel_oom_kill",
        remedies=("fewer_workers", "stream_data", "raise_container_limit"),
        any_level=True,
        source="systemd, systemd-oomd, earlyoom",
        examples=(
            "Nov 30 12:01:02 gpu7 systemd[1]: docker.service: A process of this unit has been killed "
            "by the OOM killer.",
            'earlyoom[991]: sending SIGKILL to process 4121 uid 1000 "python3": badness 900, VmRSS 61234 MiB',
        ),
    ),
    Signature(
        id="bad-alloc",
        family="host_oom",
        literals=("std::bad_alloc", "memory allocation of"),
        pattern=(
            r"terminate called after throwing an instance of 'std::bad_alloc'|^MemoryError: std::bad_alloc$"
            r"|memory allocation of (?P<tried_mib>\d+ bytes) failed"
        ),
        cause="host_allocation",
        remedies=("chunk_arrays", "raise_container_limit"),
        source="libstdc++, the Rust runtime",
        examples=(
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "memory allocation of 51539607552 bytes failed",
        ),
    ),
)
