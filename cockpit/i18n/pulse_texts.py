"""Words for a run that hangs, starves, slows down or idles: title, numbers, cause, remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cockpit.i18n import _ as translate
from cockpit.i18n.sentences import N_ as _

SURENESS: Final[dict[str, str]] = {
    "possible": _("possible"),
    "likely": _("likely"),
    "certain": _("certain"),
}

PULSE_TITLES: Final[dict[str, str]] = {
    "hang_spinning": _("Stuck in a collective"),
    "hang_blocked": _("Stuck: nothing computes"),
    "hang_disk": _("Stuck on a disk"),
    "hang_gone": _("Its processes are gone from the GPU"),
    "server_stuck": _("The server makes no tokens"),
    "starved_quota": _("The GPU waits: the container's CPU share is used up"),
    "starved_disk": _("The GPU waits for the disk"),
    "starved_cpu": _("The GPU waits for the CPU"),
    "starved_memory": _("The GPU waits: the host swaps"),
    "starved_network": _("The GPU waits for the network"),
    "starved_python": _("The GPU waits for Python"),
    "starved_workers": _("The GPU waits for its data loader"),
    "slow_throttled": _("Steps take longer: the card slows down"),
    "slow_neighbour": _("Steps take longer: another process is on the card"),
    "slow_waiting": _("Steps take longer: ranks wait for one another"),
    "slow_input": _("Steps take longer: the GPU waits"),
    "slow_unknown": _("Steps take longer than at first"),
    "swings_ranks": _("Ranks wait for one another in every step"),
    "swings_alone": _("The GPU pauses in every step"),
    "idle_server": _("A server without requests"),
    "idle_some": _("Some of the run's GPUs do nothing"),
    "idle_cpu": _("The GPU is idle while the CPU works"),
    "idle_host": _("A host that is paid for and idle"),
}

PULSE_SUMMARIES: Final[dict[str, tuple[str, ...]]] = {
    "hang": (
        _("no step after {step} for {still}, {util_pct} % use at {power_w} W, usually {usual_w} W"),
        _("no step after {step} for {still}, {util_pct} % use at {power_w} W"),
        _("no step after {step} for {still}"),
        _("nothing new for {still}, {util_pct} % use"),
        _("nothing new for {still}"),
        _("{running} requests in work, no token in {reports} reports"),
    ),
    "starved": (
        _("{wait_pct} % of each step waits for data, {util_pct} % use"),
        _("{util_pct} % use, {throttled_pct} % of the CPU quota's periods cut short"),
        _("{util_pct} % use, {workers_blocked} of {workers} workers wait for the disk"),
        _("{util_pct} % use, {iowait_pct} % of the CPU waits for a disk"),
        _("{util_pct} % use, {net_mib_s} MiB/s come in all the time"),
        _("{util_pct} % use, {workers_busy} of {workers} workers at a full core, {cores} cores"),
        _("{util_pct} % use, load {load} on {cores} cores"),
        _("{util_pct} % use, the main process at {main_cpu_pct} % CPU"),
        _("{util_pct} % use, {workers} workers and none at a full core"),
        _("{util_pct} % use at {power_pct} % of the power limit"),
        _("{slower_pct} % slower, {step_ms} ms a step, {usual_ms} ms at first"),
        _("{low_pct} to {high_pct} % use, {share_pct} % of each step of {step_ms} ms low"),
        _("{util_pct} % use"),
    ),
    "idle": (
        _("{unused} of {cards} GPUs for more than {for_min} min"),
        _("{cards} GPUs for {for_min} min, {cost} {currency} at {price_per_h} an hour"),
        _("{cards} GPUs for {for_min} min"),
    ),
}

PULSE_CAUSES: Final[dict[str, str]] = {
    "hang_spinning": _(
        "The step counter stands while the card is fully used at low power: a collective spins and waits for a "
        "rank that does not come."
    ),
    "hang_blocked": _(
        "The step counter stands and neither the card nor the processes do anything: a deadlock, a lock, or a "
        "worker that never answers."
    ),
    "hang_disk": _(
        "Its processes wait in the kernel for a disk or a network volume, and nothing else goes on."
    ),
    "hang_gone": _(
        "The card is idle and no process of the run is on it any more, yet the run has not ended."
    ),
    "server_stuck": _(
        "The server reports requests in work and not one token, again and again: its engine hangs."
    ),
    "starved_quota": _(
        "The container's CPU quota stops its processes in {throttled_pct} % of all periods: few cores for each "
        "GPU are usual on rented hosts."
    ),
    "starved_disk": _(
        "Data loaders wait for the disk: many small files, a network volume, or a disk at its limit."
    ),
    "starved_cpu": _(
        "Decoding, augmenting or tokenising takes more CPU than there is: the loader's workers are at their limit."
    ),
    "starved_memory": _("The host is short of memory and pages out; loaders wait for that."),
    "starved_network": _("Data comes over the network, which gives all that it can."),
    "starved_python": _(
        "The main process is at the limit of one core: it loads data itself, or Python starts kernels one by one, "
        "slower than the card runs them."
    ),
    "starved_workers": _(
        "Nothing is at its limit, yet the card waits: too few loader workers, or they begin too late."
    ),
    "starved_data": _("By its own log, the run waits for data in every step."),
    "starved_unknown": _(
        "The card is little used while steps go on: input that comes too slowly, or very small kernels."
    ),
    "slow_throttled": _("The card reports that it is slowed down, by heat or by its power supply."),
    "slow_neighbour": _("A process that is not the run's came onto its card."),
    "slow_waiting": _(
        "The cards are fully used at less power than at first: they spin in collectives, for a slow rank or a "
        "slow network."
    ),
    "slow_input": _("The card is used less than at first: what it works on comes more slowly."),
    "slow_unknown": _("The last steps take longer than the run's own first ones."),
    "swings_ranks": _(
        "Use falls once in every step, on all cards: gradients are exchanged after the computation, not during it."
    ),
    "swings_alone": _(
        "Use falls once in every step: something on the host is done between steps, with the card waiting."
    ),
    "idle_run": _("The run lives, and none of its cards does anything."),
    "idle_cpu": _("The run computes on the CPU alone, with its cards reserved and paid for."),
    "idle_some": _("The run reserved these cards and uses only some of them."),
    "idle_server": _("The server is up and gets no requests."),
    "idle_host": _("No run of yours is on this host and none of its cards does anything."),
}

PULSE_REMEDIES: Final[dict[str, tuple[str, ...]]] = {
    "restart_from_checkpoint": (_("Stop it, and start it again from its last checkpoint."),),
    "more_workers": (
        _("More loader workers: num_workers = {workers} instead of {workers_before}."),
        _(
            "More loader workers: num_workers 4 to 8 for each GPU, with persistent_workers and pin_memory."
        ),
    ),
    "workers_to_cores": (
        _("As many loader workers as there are cores: num_workers = {workers}."),
        _("As many loader workers as cores for each GPU, and no more."),
    ),
    "fewer_threads": (
        _(
            "One thread for each process: OMP_NUM_THREADS=1, so that workers do not fight for cores."
        ),
    ),
    "more_cpu": (_("A host with more cores for each GPU."),),
    "decode_ahead": (_("Decode or tokenise once, before the run, and read the result."),),
    "decode_on_gpu": (_("Decode and augment on the card (DALI, torchvision's GPU decoders)."),),
    "local_copy": (_("Copy the data to the host's own disk before the run."),),
    "larger_shards": (
        _("Pack small files into large shards (WebDataset, Parquet, memory-mapped arrays)."),
    ),
    "prefetch_more": (_("Let workers run ahead: prefetch_factor = 4, persistent_workers = True."),),
    "more_streams": (
        _("Read from the network in more parallel streams, and cache what was read."),
    ),
    "compile_steps": (_("Fewer, larger kernels: torch.compile, CUDA graphs, a larger batch."),),
    "log_less": (_("Call .item() and log less often: each waits for the card."),),
    "py_spy_top": (
        _("See what the main process does: `py-spy top --pid {pid}`."),
        _("See what the main process does: `py-spy top`."),
    ),
    "compare_rank_times": (
        _("Compare the ranks' own compute times: the slowest one makes the others wait."),
    ),
    "overlap_sync": (
        _("Let gradients be exchanged during the backward pass (DDP buckets, FSDP prefetch)."),
    ),
    "no_sync": (_("With accumulation: exchange only in the last micro-step (no_sync)."),),
    "stop_the_run": (_("Stop it if it is not needed: `cockpit stop`."),),
    "use_all_cards": (_("Start one process for each card (nproc_per_node, num_processes)."),),
    "fewer_cards": (_("Ask for as many cards as it uses ([gpus] count)."),),
    "smaller_host": (_("Move it to a smaller or a cheaper host."),),
    "prepare_elsewhere": (_("Prepare data on a host without a GPU, before the run."),),
    "release_host": (_("Give the host back on the platform's page if nothing follows."),),
    "start_next_run": (_("Start what comes next: `cockpit run PROFILE --host HOST`."),),
}


def sureness_text(facts: Mapping[str, object]) -> str:
    """How sure a detector is, in a word; empty where it does not say."""
    known = SURENESS.get(str(facts.get("confidence", "")))
    return translate(known) if known else ""
