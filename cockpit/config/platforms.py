"""Which rental platform an address belongs to, where its name tells."""

from __future__ import annotations

_SUFFIXES: tuple[tuple[str, str], ...] = (
    ("vast.ai", "vast"),
    ("runpod.io", "runpod"),
    ("runpod.net", "runpod"),
    ("seetacloud.com", "autodl"),
    ("autodl.com", "autodl"),
    ("autodl.pro", "autodl"),
    ("lambda.ai", "lambda"),
    ("lambdalabs.com", "lambda"),
    ("tensordock.com", "tensordock"),
    ("paperspacegradient.com", "paperspace"),
    ("paperspace.com", "paperspace"),
    ("hyperstack.cloud", "hyperstack"),
    ("primeintellect.ai", "prime"),
    ("featurize.cn", "featurize"),
    ("gpuhub.com", "gpuhub"),
    ("matpool.com", "matpool"),
)


def platform_of(host: str | None) -> str | None:
    """The platform of a host name; None where it tells nothing."""
    name = (host or "").lower().rstrip(".")
    for suffix, platform in _SUFFIXES:
        if name == suffix or name.endswith("." + suffix):
            return platform
    return None
