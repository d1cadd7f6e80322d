"""What an incident is called and what its numbers say, by family. Sizes are names without `_mib`."""

from __future__ import annotations

from typing import Final

from cockpit.i18n.pulse_texts import PULSE_SUMMARIES, PULSE_TITLES
from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.server_texts import SERVER_SUMMARIES, SERVER_TITLES, SERVER_WHAT

TITLES: Final[dict[str, str]] = {
    "gpu_oom": _("Out of GPU memory"),
    "host_oom": _("Out of host memory"),
    "kv_cache": _("The KV cache does not fit"),
    "shm": _("Shared memory is full"),
    "driver": _("The GPU driver does not work"),
    "hardware": _("A fault of the GPU hardware"),
    "nccl": _("Ranks lost each other"),
    "hang": _("Stuck"),
    "nan": _("Numbers are no longer finite"),
    "disk": _("Trouble with a disk"),
    "env": _("The environment does not fit"),
    "port": _("A port is taken"),
    "crash": _("Crashed"),
    "leak": _("GPU memory keeps growing"),
    "near_full": _("GPU memory is nearly full"),
    "idle": _("Paid for and idle"),
    "starved": _("The GPU waits for data"),
    "cost": _("Over budget"),
}

RECOVERED_TITLES: Final[dict[str, str]] = {
    "gpu_oom": _("Out of GPU memory, and recovered"),
}

TITLES_BY_CAUSE: Final[dict[str, str]] = {
    "budget_near": _("Most of the budget is used"),
    "disk_full": _("The disk is full"),
    "disk_low": _("A disk is nearly full"),
    "quota": _("The disk quota is used up"),
    "checkpoint_truncated": _("A checkpoint is damaged"),
    "gpu_lost": _("A GPU is gone"),
    "driver_mismatch": _("The driver was updated while it ran"),
    "container_lost_gpus": _("The container lost its GPUs"),
    "kv_pressure": _("The KV cache is under pressure"),
    "slot_leak": _("The server loses KV-cache slots"),
    "no_gpu_seen": _("No GPU is seen"),
    "killed": _("Killed, most likely out of host memory"),
    "loss_scale_falling": _("The loss scale keeps falling"),
    "time_limit": _("The scheduler's time limit ended it"),
    "preempted": _("The scheduler took the node for another job"),
    "native_crash": _("Crashed in native code"),
    "server_errors": _("The server answers with errors"),
    "memory_orphaned": _("GPU memory is held by nobody"),
    "fragmented": _("GPU memory lies in pieces"),
    "memory_elsewhere": _("GPU memory is held by someone out of sight"),
    "memory_of_stranger": _("Someone else is on the card"),
    "host_near_full": _("Host memory is nearly full"),
    "shm_near_full": _("Shared memory is nearly full"),
    "inodes_low": _("A disk has hardly any inodes left"),
    "throttle_thermal": _("A card is too hot and slows down"),
    "throttle_power_brake": _("A card is braked by its server"),
    "throttle_slowdown": _("A card slows itself down"),
    "rows_exhausted": _("A card has no spare memory rows left"),
    "row_remap_pending": _("A card wants a reset"),
    "pcie_narrow": _("A card's PCIe link is too narrow"),
    "pcie_slow": _("A card's PCIe link is slow"),
    "nvlink_down": _("An NVLink is down"),
    "clock_drop": _("A card's clock dropped"),
    "allocator_thrash": _("GPU memory is at its limit"),
    **PULSE_TITLES,
    **SERVER_TITLES,
}

SUMMARIES: Final[dict[str, tuple[str, ...]]] = {
    "cost": (
        _("{cost} of {max_cost} {currency}, {hours} of {max_hours} h"),
        _("{cost} of {max_cost} {currency} in {hours} h"),
        _("{hours} of {max_hours} h"),
    ),
    "gpu_oom": (
        _("tried {tried} with {free} free of {total}"),
        _("tried {tried}, {allocated} held"),
        _("tried {tried}"),
        _("{in_use} of {total} used"),
    ),
    "kv_cache": (
        _("{max_model_len} tokens need {needed}, {available} are there, {tokens} would fit"),
        _("{max_model_len} tokens need {needed}, {available} are there"),
        _("{max_model_len} tokens wanted, {tokens} fit"),
        _("{free} free of {total}, {needed} wanted ({gpu_memory_utilization} of the card)"),
        _("{in_use} of {total} held by others"),
        _("{tokens} tokens fit"),
        *SERVER_SUMMARIES["kv_cache"],
    ),
    "host_oom": (
        _("the kernel ended pid {pid}, which held {anon_rss}; the limit is {limit}"),
        _("the kernel ended pid {pid}, which held {anon_rss}"),
        _("{host_used} of {host_total} used"),
        _("{needed} needed, {available} available"),
        _("tried {tried}"),
        _("pid {pid} ended with code {exitcode}"),
        _("pid {pid}, signal {signal}"),
        _("ended with code {exitcode}"),
        _("pid {pid}"),
    ),
    "shm": (
        _("{path}: {needed} did not fit"),
        _("{path}: {in_use} of {total} used"),
        _("{path}"),
        _("pid {pid}, signal {signal}"),
        _("pid {pid}"),
    ),
    "hardware": (
        _("Xid {xid} on {bus_id}: {xid_name}"),
        _("Xid {xid}: {xid_name}"),
        _("{sm_clock_mhz} of {sm_clock_max_mhz} MHz at {temp_c} °C, GPU {gpu_index}"),
        _("{new_errors} errors that ECC could not correct, GPU {gpu_index}"),
        _("{new_rows} rows replaced, GPU {gpu_index}"),
        _("x{pcie_width} of x{pcie_width_max}, GPU {gpu_index}"),
        _("generation {pcie_gen} of {pcie_gen_max}, GPU {gpu_index}"),
        _("{nvlinks_up} of {nvlinks} NVLinks up, GPU {gpu_index}"),
        _("{bus_id}"),
        _("GPU {gpu_index}"),
    ),
    "driver": (_("{words}"), _("{bus_id}")),
    "disk": (
        _("{path}: {needed} needed, {available} free"),
        _("{path}: {free} of {total} free"),
        _("{path}"),
        _("pid {pid} waits for a disk"),
    ),
    "port": (_("port {port}"),),
    "crash": (
        _("pid {pid} ended with code {exitcode}"),
        _("ended with code {exitcode}"),
        _("pid {pid}, signal {signal}"),
        _("{path}"),
        *SERVER_SUMMARIES["crash"],
    ),
    "nan": (_("at step {step} of {total_steps}"), _("at step {step}")),
    "near_full": (
        _("{in_use} of {total} used for {for_s} s"),
        _("{in_use} of {total} used"),
        _("{held} of {total} held"),
        _("{reserved} held, {allocated} needed at most"),
        _("process {holder_pid} holds {holder} of {total}"),
    ),
    **PULSE_SUMMARIES,
    "hang": (*PULSE_SUMMARIES["hang"], *SERVER_SUMMARIES["hang"]),
    "starved": (*PULSE_SUMMARIES["starved"], *SERVER_SUMMARIES["starved"]),
    "leak": (
        _("+{slope}/h, {per_1000_requests} per 1000 requests, full in about {eta}"),
        _("+{slope}/h, {per_1000_requests} per 1000 requests"),
        _("+{slope}/h, full in about {eta}"),
        _("+{slope}/h"),
    ),
}

RANKS: Final = _("rank {rank}")
GPU: Final = _("GPU {gpu_index}")
HELD_BY: Final = _("Process {holder_pid} held {holder} of it.")
FREE_LINE: Final = _(
    "The card was full: {in_use} of {total} held by this process, {tried} asked for, {free} left."
)
WHAT: Final[dict[str, tuple[str, ...]]] = {
    "gpu_oom": (
        FREE_LINE,
        _("The card was full: {tried} asked for, {free} left of {total}."),
        _("{tried} did not fit."),
    ),
    "kv_cache": (
        _(
            "One request of {max_model_len} tokens needs {needed} of KV cache; {available} are left for it."
        ),
        _("The server wants {needed} of {total}; {free} are free."),
        _("The server could not set up its KV cache."),
    ),
    "host_oom": (
        _("The kernel ended process {pid}, which held {anon_rss}."),
        _("A process was ended by SIGKILL."),
    ),
    "hardware": (
        _("The driver reports Xid {xid} on {bus_id}. It is not a fault of your program."),
    ),
    "near_full": (_("{in_use} of {total} are in use; the next larger allocation fails."),),
}
WHAT_BY_CAUSE: Final[dict[str, tuple[str, ...]]] = {
    "host_near_full": (_("{host_used} of {host_total} are in use."),),
    **SERVER_WHAT,
}
"""In place of the family's words, for conditions that have not ended anything."""
WHAT_APP_XID: Final = _(
    "The driver reports Xid {xid} on {bus_id}; usually the program's own fault."
)
