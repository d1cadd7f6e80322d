"""One incident of one run, for those who make its remedies: the numbers, the profile, the room on its card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from cockpit.domain.incidents import FactValue, Remedy
from cockpit.domain.profile_options import Option, Profile, ProfileOptions

SERVERS: Final = ("vllm", "sglang", "tgi", "trtllm", "ollama")
_PROGRAMS: Final[dict[str, str]] = {
    "vllm": "vllm", "vllm.entrypoints.openai.api_server": "vllm", "sglang.launch_server": "sglang",
    "text-generation-launcher": "tgi", "trtllm-serve": "trtllm",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Room:
    """The run's card and host, as last seen."""

    total_mib: float | None = None
    others_mib: float | None = None
    """What other processes than the run's hold on the card."""
    cards: int | None = None
    """Of the host."""
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    facts: Mapping[str, FactValue]
    profile: Profile
    room: Room

    def options(self) -> ProfileOptions:
        """The profile, to be changed by one remedy."""
        return ProfileOptions(self.profile)

    def number(self, name: str) -> float | None:
        value = self.facts.get(name)
        return None if isinstance(value, bool | str) or value is None else float(value)

    @property
    def server(self) -> str:
        """Which server the run is, by its kind or by its command; "" for anything else."""
        options = self.options()
        if options.kind in SERVERS:
            return options.kind
        for word in options.words("command.argv")[:4]:
            found = _PROGRAMS.get(PurePosixPath(word).name)
            if found is not None:
                return found
        return ""

    @property
    def total_mib(self) -> float | None:
        return self.room.total_mib or self.number("total_mib")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A remedy for this run."""

    remedy: Remedy
    is_enough: bool | None = None
    """By the numbers: True when it alone mends it, False when it cannot; None when nobody knows."""


Fit: TypeAlias = Callable[[str, Case], "Fitted | None"]
"""Makes the remedy of a code; None when the profile does that already."""


def told(code: str, options: ProfileOptions | None = None, **facts: FactValue) -> Fitted:
    """The remedy with its numbers, and with the changes made to the profile when there are any."""
    patch = dict(options.patch) if options is not None and options.patch else None
    return Fitted(Remedy(code, facts, patch))


def whole_of(option: Option | None) -> int | None:
    """An option's whole number above zero; `32k` is 32 000 and `32K` 32 768, as servers read them."""
    if option is None:
        return None
    if isinstance(option.value, str) and option.value[:-1].isdigit():
        factor = {"k": 1000, "K": 1024}.get(option.value[-1])
        if factor is not None:
            return int(option.value[:-1]) * factor
    whole = option.whole
    return whole if whole is not None and whole > 0 else None
