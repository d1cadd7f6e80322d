"""Which state a link is in: from what went wrong, or from what a sample says. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cockpit.domain.models import HostSample, LinkState
from cockpit.errors import (
    AuthenticationFailed,
    CockpitError,
    ConfigError,
    Fact,
    HostKeyChanged,
    HostKeyUnknown,
    ProxyWithoutExec,
    UsageError,
)

DISCONNECTED = "disconnected"
"""Code of a link that the person took down."""

PROBE_DIED = "probe_died"
"""Code of a connected host on which no sampler stays alive."""


class Reason(NamedTuple):
    """A link's state, the code that explains it, and the facts for the sentence."""

    link: LinkState
    code: str | None
    why: dict[str, Fact]


_LIVE = Reason("live", None, {})


def reason_of_error(error: CockpitError) -> Reason:
    why = {name: value for name, value in error.facts.items() if name != "host"}
    if isinstance(error, AuthenticationFailed):
        return Reason("auth_failed", error.code, why)
    if isinstance(error, HostKeyUnknown | HostKeyChanged):
        return Reason("host_key", error.code, why)
    return Reason("unreachable", error.code, why)


def waits_for_person(error: CockpitError) -> bool:
    """True when trying again changes nothing until someone changes something."""
    return isinstance(
        error,
        AuthenticationFailed
        | HostKeyUnknown
        | HostKeyChanged
        | ProxyWithoutExec
        | ConfigError
        | UsageError,
    )


def reason_of_sample(sample: HostSample, *, has_python: bool) -> Reason:
    """Live when NVML answers; else degraded, with the driver's own words."""
    if sample.gpu_error_code is not None:
        why: dict[str, Fact] = {"words": sample.gpu_error, "source": sample.source}
        return Reason("degraded", sample.gpu_error_code, why)
    if sample.source == "nvml":
        return _LIVE
    return Reason("degraded", "no_nvml" if has_python else "no_python", {"source": sample.source})


def reason_of_death(words: str) -> Reason:
    """The sampler ends again and again right after its start."""
    return Reason("degraded", PROBE_DIED, {"words": words or None})
