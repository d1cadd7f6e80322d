"""One module a launcher: a run profile becomes argv, environment, ports and readiness. Pure."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.config.profile import Profile
from cockpit.errors import ProfileError
from cockpit.launchers import accelerate, command, deepspeed, servers, torchrun, training, vllm
from cockpit.launchers.base import Command, Launch, LaunchFacts, Readiness, complete

__all__ = ["Launch", "LaunchFacts", "Readiness", "build"]

LAUNCHERS: dict[str, Callable[[Profile, LaunchFacts], Command]] = {
    "command": command.command,
    "torchrun": torchrun.command,
    "megatron": torchrun.megatron,
    "accelerate": accelerate.command,
    "deepspeed": deepspeed.command,
    "colossalai": training.colossalai,
    "paddle": training.paddle,
    "yolo": training.yolo,
    "vllm": vllm.command,
    "sglang": servers.sglang,
    "tgi": servers.tgi,
    "trtllm": servers.trtllm,
    "ollama": servers.ollama,
}


def build(profile: Profile, facts: LaunchFacts) -> Launch:
    """The command of a profile on one host. Raises ProfileError for what cannot be launched."""
    launcher = LAUNCHERS.get(profile.kind)
    if launcher is None:
        raise ProfileError("kind_unsupported", kind=profile.kind)
    return complete(profile, facts, launcher(profile, facts))
