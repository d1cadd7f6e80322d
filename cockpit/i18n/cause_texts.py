"""Why it happened, one sentence a cause."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.pulse_texts import PULSE_CAUSES
from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.server_texts import SERVER_CAUSES

CAUSES: Final[dict[str, str]] = {
    # money
    "budget_near": _("The profile's [budget] is used up to four fifths."),
    "budget_reached": _(
        "The profile's [budget] is used up; it asks to be told, so the run goes on."
    ),
    "budget_stop": _(
        "The profile's [budget] is used up; it asks for a stop, and the run gets its time to save."
    ),
    # GPU memory
    "own_cap": _("The process hit its own memory fraction; the card itself has room."),
    "huge_tensor": _(
        "One tensor is far too large: a wrong shape, attention that "
        "is not fused (it grows with the square of "
        "the sequence), or logits of batch x sequence x vocabulary."
    ),
    "other_tenant": _("Another process holds memory on this card."),
    "fragmentation": _(
        "Memory fragmentation: PyTorch holds enough memory and none of "
        "it in one piece (reserved, not allocated)."
    ),
    "fragmented": _(
        "PyTorch holds {reserved} although never more than {allocated} was in use at once: its memory lies in pieces."
    ),
    "outside_torch": _(
        "Memory outside PyTorch's allocator took the room: NCCL buffers, "
        "cuBLAS and cuDNN workspaces, another framework."
    ),
    "driver_fragmentation": _(
        "More was free than was asked for: the driver's address space "
        "is fragmented, or it reports wrong numbers."
    ),
    "too_big": _("The work does not fit into the card's memory."),
    "too_big_weights": _("The weights do not fit: it failed while they were loaded."),
    "too_big_optimizer": _(
        "The optimizer's state did not fit: Adam keeps two more values for each parameter."
    ),
    "too_big_backward": _("The activations did not fit: it failed in the backward pass."),
    "too_big_evaluation": _(
        "The evaluation needs more than the training step: its batch, or predictions kept on the card."
    ),
    "too_big_saving": _("Gathering the state for a checkpoint did not fit."),
    "too_big_logits": _("The logits (batch x sequence x vocabulary) did not fit."),
    "too_big_attention": _(
        "Attention that is not fused did not fit: it grows with the square of the sequence."
    ),
    "too_big_profiling": _("The server's trial run at start-up did not fit."),
    "too_big_graphs": _("The CUDA graphs did not fit beside the KV cache."),
    "too_big_sampler": _("The sampler's logits did not fit beside the KV cache."),
    "too_big_serving": _(
        "The KV cache is fixed at start-up; what a step needs beside it did not fit."
    ),
    "size_overflow": _(
        "More than 1 EB was asked for: a negative or overflowing size, not a lack of memory."
    ),
    "allocator_retry": _("The allocator had to free its cache and try again, with success."),
    "allocator_thrash": _(
        "The allocator frees its cache again and again: the next larger batch will not fit."
    ),
    "outside_allocator": _(
        "Memory was refused outside PyTorch's allocator: a new context, "
        "NCCL, pinned memory, or a card that is already full."
    ),
    "library_workspace": _("A library found no room for its workspace: the card is full."),
    "library_or_index": _(
        "Either the card is full, or an index (label, token id) is out "
        "of range; free memory at that second decides."
    ),
    "library_or_cudnn": _("Either the card is full, or cuDNN does not fit the driver."),
    "batch_one_does_not_fit": _(
        "The search for a batch size ended at zero: not even one sample fits."
    ),
    "xla_pool": _("XLA takes 75 % of the card at start; that pool is full."),
    "xla_too_big": _("The compiled program needs more than the device has."),
    "ggml_too_big": _("Weights, KV cache or the compute buffer do not fit on the card."),
    "kv_took_all": _("The KV-cache pool took what activations needed."),
    "ort_arena": _("ONNX Runtime's arena could not grow."),
    "graphs_do_not_fit": _("The CUDA graphs do not fit beside the KV cache."),
    "sampler_warmup": _(
        "The KV cache took everything; logits for so many requests at once do not fit."
    ),
    "weights_do_not_fit": _("The weights alone do not fit."),
    "nccl_buffers": _("There was no room for NCCL's own buffers, which lie outside PyTorch."),
    # KV cache
    "card_already_used": _(
        "Somebody else already holds memory on this card, often a server that did not "
        "end; the utilisation is of the whole card, not of what is free."
    ),
    "external_weights": _("Weights of another process count against the budget."),
    "memory_changed_while_profiling": _(
        "Somebody freed memory on this card while the server measured "
        "it, usually the server before, still ending."
    ),
    "kv_one_request": _(
        "One request of the longest allowed length does not fit into the KV cache."
    ),
    "kv_context": _("The context does not fit."),
    "no_room_for_kv": _(
        "Weights and the trial run use up the allowed share; nothing is left for the KV cache."
    ),
    "kv_pressure": _("The KV cache is full at times: requests are put back and computed again."),
    "kv_capacity": _("This is how much the KV cache holds."),
    "request_slots": _("The pool of request slots is empty."),
    "token_pool_empty": _("The pool of tokens is used up and nothing in it can be dropped."),
    "slot_leak": _(
        "The server's book of KV-cache slots does not add up: "
        "capacity shrinks. It is not GPU memory that grows."
    ),
    "sleep_mode": _("The server gave its memory back on purpose."),
    "sleep_grew": _("Another process took memory while the server slept."),
    # host memory
    "kernel_oom_kill": _("The machine was out of memory, and the kernel ended a process."),
    "cgroup_oom_kill": _(
        "The container reached its memory limit, and the kernel ended a process in it."
    ),
    "killed": _(
        "SIGKILL: most likely the kernel, out of host memory; a scheduler or a person can send it too."
    ),
    "slurm_limit": _("The job used more memory than it had asked Slurm for."),
    "ray_memory_monitor": _(
        "Ray's own monitor ended workers because the host's memory was nearly full."
    ),
    "host_allocation": _("The host refused so much memory."),
    "host_fork": _(
        "The host refused to copy a large process (fork), typically when DataLoader workers start."
    ),
    "model_needs_ram": _("The model needs more host memory than is available."),
    "first_rank_failed": _(
        "This rank of the run failed first; the others were stopped, since alone they would wait for it."
    ),
    # memory that grows
    "leak_gpu": _(
        "This process takes more and more of the card and gives nothing back, as fast now as when it "
        "began: tensors that something still holds, or a graph or cache for each new shape."
    ),
    "leak_host": _(
        "The host's memory grows steadily and nothing is given back: objects that are kept, loader "
        "workers, or an allocator that does not return what it freed."
    ),
    "leak_shm": _(
        "Shared memory grows and nothing is given back: workers that leave their files behind."
    ),
    "full_soon": _("At the rate of the last minutes this memory is full within the hour."),
    # the way in
    "door_key_refused": _(
        "New logins are refused: none of your keys is accepted any more. The open connection still "
        "works, and would not come back after a break."
    ),
    "door_key_changed": _(
        "New connections meet another host key: another machine answers at this address by now."
    ),
    "door_closed": _(
        "New connections fail although this one stands: the port or the address is no longer what it was."
    ),
    # shared memory, files
    "shm_full": _("/dev/shm is full; in a container it is 64 MiB by default."),
    "worker_killed": _("A DataLoader worker was ended by a signal."),
    "worker_vanished": _("A DataLoader worker ended without a word."),
    "too_many_files": _("Too many files are open; each shared tensor is one."),
    # ranks
    "collective_timeout": _(
        "A collective operation waited too long. The rank that reports it is "
        "the one that waited; the silent one is at fault."
    ),
    "process_stuck": _("A process is stuck in a CUDA or NCCL call, or in a deadlock."),
    "nccl_cuda_error": _("A CUDA call inside NCCL failed."),
    "nccl_system_error": _(
        "A system call inside NCCL failed: shared memory, a socket, locked memory, a network card."
    ),
    "peer_exited": _("Another rank ended first; this one only noticed."),
    "rendezvous": _(
        "The ranks did not find each other: the master is down, its address is wrong, or a port is closed."
    ),
    "rank_failed": _("A rank failed, and the launcher stopped the others."),
    "worker_group_restarted": _("The launcher starts the ranks again after a failure."),
    "other_rank_died": _("Another rank died or loads very slowly."),
    "told_to_stop": _("It was asked to stop."),
    "stopped": _("Somebody asked it to stop."),
    # engines and processes
    "engine_start": _("The engine did not start; the reason stands above in the log."),
    "start_stuck": _(
        "It is not ready yet, and nothing new comes in its log nor onto its cards "
        "for as long as [ready] no_progress allows."
    ),
    "engine_died": _("The engine died while it served; the reason stands above in the log."),
    "worker_died": _("A worker process is gone without an exception of its own."),
    "worker_exception": _("A worker ended with an exception; its last line is the reason."),
    "worker_stuck": _("A worker does not answer: a collective, a kernel or the card hangs."),
    "server_errors": _("Requests end with errors of the server."),
    "native_crash": _("Native code crashed (a segmentation fault or an abort)."),
    "kernel_limit": _(
        "A GPU kernel wants more on-chip memory than the card has; it is not the card's memory."
    ),
    "scheduler_ended": _("The scheduler ended the job."),
    "time_limit": _("The job reached its time limit."),
    "preempted": _("The scheduler gave the node to another job."),
    "node_failed": _("The node failed."),
    "device_assert": _(
        "An index is out of range (a label or a token id); every later CUDA error follows from it."
    ),
    "illegal_access": _("A kernel read or wrote outside its memory."),
    "kernel_fault": _(
        "A GPU kernel failed; an Xid at the same second tells software from hardware."
    ),
    "host_restarted": _("The host restarted while it ran; how it ended is not known."),
    "killed_without_record": _(
        "It is gone and left no record: something ended it and its supervisor at once."
    ),
    "never_started": _("Its start was cut off; nothing of it ran."),
    "hook_cut_off": _(
        "Its supervisor was killed while its hook `before` ran, and the hook is over: "
        "the job was never started."
    ),
    "killed_at_logout": _(
        "It is gone and left no record, and this host ends what a user runs when the last login "
        "ends (KillUserProcesses=yes): that is the likely cause."
    ),
    "run_dir_gone": _("Its folder on the host is gone; how it ended is not known."),
    # driver and environment
    "driver_mismatch": _(
        "The driver's libraries were updated under a loaded kernel "
        "module; what runs goes on, what starts fails."
    ),
    "driver_too_old": _("The host's driver is older than the CUDA that the program was built for."),
    "driver_not_answering": _("The driver is not loaded, or a card does not answer."),
    "no_driver": _("There is no NVIDIA driver that answers."),
    "driver_hung": _("The driver hangs; whatever asks it hangs too."),
    "compat_libraries": _(
        "CUDA's compatibility libraries hide the driver, or the driver was updated without a restart."
    ),
    "fabric_manager": _(
        "The fabric manager, which NVSwitch machines need, does not run or does not fit."
    ),
    "card_busy": _("The card is in exclusive mode, wrongly split, or wedged."),
    "container_lost_gpus": _(
        "The container lost its GPU devices, usually after the provider reloaded systemd on the host."
    ),
    "no_kernel_image": _("The build has no code for this card."),
    "no_gpu_seen": _(
        "The process sees no GPU: CUDA_VISIBLE_DEVICES, a container without its GPUs, or a lost card."
    ),
    "cpu_wheel": _("PyTorch was installed in its build without CUDA."),
    "missing_library": _("A library that the program needs is not there, or not for this CUDA."),
    "missing_module": _("A Python package is not installed in this environment."),
    "bnb_no_binary": _("bitsandbytes has no binary for this CUDA version."),
    "hub_refused": _("The hub refused it: a token, a licence, or offline mode."),
    "download_stalls": _("A download stops again and again."),
    "port_taken": _("Another process listens on the port, often the server before."),
    # hardware
    "gpu_lost": _("The card is gone from the bus; nothing on it can go on."),
    "xid": _("The driver reports a fault of the card."),
    "link_hardware": _("The link between cards (NVLink) reports an error."),
    "row_remapped": _("The card replaced a bad row of its memory; that was handled."),
    "nvswitch": _("An NVSwitch reports a fault; it can end every job on the board."),
    "gsp_timeout": _("The card's own firmware does not answer."),
    "memory_hardware": _("The card's memory or link has an error that cannot be corrected."),
    "pcie_errors": _("The PCIe link reports errors."),
    "throttle_thermal": _("The card slows itself down because it is too hot."),
    "throttle_power_brake": _(
        "An external signal brakes the card: the server's power supply is at its limit."
    ),
    "throttle_slowdown": _(
        "The card's own protection slows it down: heat, a power spike, or a bad cable."
    ),
    "rows_exhausted": _("The card has no spare rows left for its memory; it should be replaced."),
    "row_remap_pending": _("A bad row of the card's memory is replaced at the next reset."),
    "pcie_narrow": _(
        "The PCIe link has {pcie_width} lanes of {pcie_width_max}, under load: a riser, a slot, or a bad contact."
    ),
    "pcie_slow": _("The PCIe link runs at generation {pcie_gen} of {pcie_gen_max}, under load."),
    "nvlink_down": _("{nvlinks_up} of {nvlinks} NVLinks of the card are up."),
    "clock_drop": _(
        "The card runs at {sm_clock_mhz} MHz where {expected_mhz} are usual; neither heat nor its power limit says why."
    ),
    # disks and files
    "disk_full": _(
        "No space, or no inodes, were left on the disk; the last checkpoint is probably cut off."
    ),
    "disk_low": _(
        "Hardly anything is free where the run writes: the next checkpoint, or its log, may fill it."
    ),
    "inodes_low": _("Hardly any inodes are left: the disk holds too many small files."),
    "disk_too_small": _("The download is larger than what is free."),
    "disk_failing": _("A disk reports read or write errors."),
    "quota": _("The quota of this volume is used up."),
    "save_failed": _("A checkpoint could not be written whole: disk, quota or network storage."),
    "checkpoint_truncated": _("The file is cut off: a download or a save that did not end."),
    "mount_broke": _("A network or local volume broke."),
    "task_blocked": _(
        "A task waits for a disk, a network volume or the driver and cannot be ended."
    ),
    # numbers
    "loss_not_finite": _(
        "The loss or the gradient is NaN or infinite. One may be a "
        "bad batch; three in a row are a diverged run."
    ),
    "nan_gradient": _("A gradient is NaN."),
    "nan_logits": _(
        "The model puts out NaN: an overflow in fp16, a broken quantisation, or damaged weights."
    ),
    "loss_scale_exhausted": _("The loss scale cannot go any lower: the run diverged in fp16."),
    "loss_scale_falling": _("Steps are skipped again and again because of overflows."),
    # memory over time
    "grew_until_full": _(
        "It leaked: its memory had been growing by {slope} an hour before there was none left."
    ),
    "near_full": _("Use stayed above {open_pct} % for {for_s} s."),
    "memory_orphaned": _("Memory is held on the card and no process of it lives."),
    "memory_elsewhere": _(
        "Memory is held on the card and no process of this container has it: "
        "a neighbour on a shared card, or a process that died."
    ),
    "memory_of_stranger": _("A process that is not the run's holds memory on its card."),
    "host_near_full": _(
        "Almost all memory of the host or container is in use; the kernel ends a process when it is full."
    ),
    "shm_near_full": _("Almost all of /dev/shm is in use; data loaders crash when it is full."),
    **PULSE_CAUSES,
    **SERVER_CAUSES,
}
