"""kind = "colossalai", "paddle" and "yolo": the plainer launchers of training."""

from __future__ import annotations

from cockpit.config.profile import Profile
from cockpit.errors import Problem, ProfileError
from cockpit.launchers.base import Command, LaunchFacts, number_text, options, process_count
from cockpit.launchers.torchrun import DEFAULT_PORT

_YOLO_WORDS = ("task", "mode", "args")


def colossalai(profile: Profile, facts: LaunchFacts) -> Command:
    table = profile.colossalai
    assert table is not None  # the profile's checks hold for its kind
    _one_host(profile, facts)
    words = ["colossalai", "run", "--nproc_per_node", process_count(table.nproc_per_node, facts)]
    words += ["--master_port", str(facts.free_port or DEFAULT_PORT), *table.launcher_args]
    words += ["-m", table.module] if table.module is not None else [table.script or ""]
    return Command((*words, *table.args))


def paddle(profile: Profile, facts: LaunchFacts) -> Command:
    table = profile.paddle
    assert table is not None  # the profile's checks hold for its kind
    words = ["python3", "-m", "paddle.distributed.launch"]
    if facts.nodes > 1:
        master = facts.meeting_point(DEFAULT_PORT)
        words += ["--master", master, "--nnodes", str(facts.nodes), "--rank", str(facts.node_rank)]
    words += [*options(table, ("script", "module"), "underscore"), *table.launcher_args]
    words += ["-m", table.module] if table.module is not None else [table.script or ""]
    return Command((*words, *table.args))


def yolo(profile: Profile, facts: LaunchFacts) -> Command:
    """`yolo TASK MODE key=value`; it overwrites CUDA_VISIBLE_DEVICES, so `device` names the real cards."""
    table = profile.yolo
    assert table is not None  # the profile's checks hold for its kind
    _one_host(profile, facts)
    words = ["yolo", *([] if table.task is None else [table.task]), table.mode]
    for key, value in table.model_dump(by_alias=True, exclude_none=True).items():
        if key not in _YOLO_WORDS:
            words.append(f"{key}={number_text(value)}")
    if facts.gpus:
        words.append("device=" + ",".join(map(str, facts.gpus)))
    return Command((*words, *table.args))


def _one_host(profile: Profile, facts: LaunchFacts) -> None:
    if facts.nodes > 1:
        raise ProfileError(problems=(Problem("one_host_only", key="nodes", kind=profile.kind),))
