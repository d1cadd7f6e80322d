"""The remedies of an incident for the run that has it: what its profile is, says, and already does.

What was found in a log or a sample names what helps in general. Here the order becomes that of the run's
kind, each remedy gets the numbers of its profile, and a change of the profile where it can be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from cockpit.domain import remedies_models, remedies_serving, remedies_training
from cockpit.domain.incidents import Finding, Remedy
from cockpit.domain.profile_options import Profile
from cockpit.domain.remedies import BY_PHASE, BY_SERVING_PHASE, ladder
from cockpit.domain.remedy_case import Case, Fit, Fitted, Room, told

_NO_ROOM: Final = Room()
_VARIABLES: Final[dict[str, tuple[str, str]]] = {
    "launch_blocking": ("CUDA_LAUNCH_BLOCKING", "1"),
    "flight_recorder": ("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"),
    "hf_xet": ("HF_HUB_DISABLE_XET", "1"),
    "cublas_workspace": ("CUBLAS_WORKSPACE_CONFIG", ":16:8"),
    "tf_growth": ("TF_FORCE_GPU_ALLOW_GROWTH", "true"),
    "nccl_shm_off": ("NCCL_SHM_DISABLE", "1"),
    "fewer_threads": ("OMP_NUM_THREADS", "1"),
}
_WHILE_IT_GOES_ON: Final = frozenset({"flight_recorder"})
"""What tells more the next time, in a run that goes on where this one stood."""
_FITS: Final[dict[str, Fit]] = {
    **remedies_training.FITS,
    **remedies_serving.FITS,
    **remedies_models.FITS,
}
_SERVING_ONLY: Final = frozenset(remedies_serving.FITS) - {"free_port"}

_INSTEAD: Final[dict[str, str]] = {
    "smaller_batch": "max_num_seqs_down", "shorter_sequences": "shorter_model_len",
    "shard": "tensor_parallel", "quantise_weights": "quantise_or_tp",
    "detach_what_is_kept": "upgrade_server", "offload": "cpu_offload",
}  # fmt: skip
"""What a server has in place of what a training run does."""
_NO_SERVER_DOES: Final = frozenset(
    {"gradient_checkpointing", "lean_optimizer", "empty_cache", "smaller_eval_batch"}
)
_SERVERS_TOO: Final[dict[str, tuple[str, ...]]] = {
    "leak": ("upgrade_server", "restart_server", "lower_utilisation", "snapshot_memory"),
    "near_full": ("lower_utilisation", "max_num_seqs_down", "watch_memory"),
}
"""By family, for a server."""


def fitted(finding: Finding, profile: Profile, room: Room = _NO_ROOM) -> Finding:
    """The finding with the remedies of this run. Pure: a patch holds only what is computed here."""
    case = Case(finding.facts, profile, room)
    made = _made(_codes(finding, case), finding.remedies, case)
    return replace(finding, remedies=made) if made != finding.remedies else finding


def _codes(finding: Finding, case: Case) -> Iterable[str]:
    """What to try, in the order of the run's kind."""
    codes = tuple(remedy.code for remedy in finding.remedies)
    phase = finding.cause.removeprefix("too_big").removeprefix("_")
    is_too_big = finding.family == "gpu_oom" and finding.cause.startswith("too_big")
    if not case.server:
        if is_too_big and phase in ("", *BY_PHASE):
            return ladder("too_big", phase, "")
        return codes
    if is_too_big and phase in ("", "serving", *BY_PHASE, *BY_SERVING_PHASE):
        return ladder("too_big", phase, case.server)
    if finding.family in _SERVERS_TOO and "gpu_index" in finding.facts:
        return _SERVERS_TOO[finding.family]
    swapped = (_INSTEAD.get(code, code) for code in codes if code not in _NO_SERVER_DOES)
    return tuple(dict.fromkeys(swapped))


def _made(codes: Iterable[str], before: tuple[Remedy, ...], case: Case) -> tuple[Remedy, ...]:
    general = {remedy.code: remedy for remedy in before}
    found = [_one(code, general.get(code), case) for code in codes]
    kept = [one for one in found if one is not None]
    kept.sort(key=lambda one: one.is_enough is False)
    raised = next((one for one in kept if one.remedy.code == "raise_utilisation"), None)
    if raised is not None and raised.is_enough:  # it costs nothing: length and requests stay
        kept.remove(raised)
        kept.insert(0, raised)
    return tuple(_never_in_vain(one) for one in kept) or before


def _never_in_vain(one: Fitted) -> Remedy:
    """What cannot be enough is told, and not applied."""
    return replace(one.remedy, patch=None) if one.is_enough is False else one.remedy


def _one(code: str, general: Remedy | None, case: Case) -> Fitted | None:
    if code in _SERVING_ONLY and not case.server:
        facts = {} if general is None else general.facts
        return Fitted(Remedy(code, facts))
    if code in _VARIABLES:
        return _variable(code, case)
    fit = _FITS.get(code)
    if fit is not None:
        return fit(code, case)
    return told(code) if general is None else Fitted(general)


def _variable(code: str, case: Case) -> Fitted | None:
    """A variable of the run's environment; None when it is set so."""
    name, value = _VARIABLES[code]
    options = case.options()
    key = f"env.set.{name}"
    if str(options.value(key)) == value:
        return None
    options.put(key, value)
    if code in _WHILE_IT_GOES_ON:
        remedies_training.resume(options)
    return told(code, options)
