"""Which algorithms are offered: the quick ones first, and the person's own ssh_config where it says otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import asyncssh
from asyncssh.encryption import get_encryption_algs
from asyncssh.kex import get_kex_algs
from asyncssh.mac import get_mac_algs

from cockpit.transport.endpoints import Endpoint

CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
"""AES-GCM costs a fifth less CPU than asyncssh's first choice, chacha20."""

HOST_KEYS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
"""ED25519 first, so that a first contact shows the fingerprint that `ssh` and the platforms show."""

_KEYWORDS = {
    "ciphers": ("encryption_algs", get_encryption_algs),
    "kexalgorithms": ("kex_algs", get_kex_algs),
    "macs": ("mac_algs", get_mac_algs),
}


def host_key_order(
    trusted: Sequence[asyncssh.SSHKey], authorities: bool, endpoint: Endpoint
) -> list[str]:
    """Known types first: a host with several keys shows the one that we know. Certificates only where one counts.

    A key that a person has trusted stands before any certificate: one that ran out does not shut the host off.
    """
    wanted = list(endpoint.algorithms.get("hostkeyalgorithms", HOST_KEYS))
    plain = [name for name in wanted if "-cert-" not in name and name in _supported_host_keys()]
    known = [name.decode() for key in trusted for name in key.sig_algorithms]
    first = [name for name in plain if name in known]
    first += [name for name in known if name in HOST_KEYS and name not in first]
    rest = [name for name in plain if name not in first]
    certificates = [f"{name}-cert-v01@openssh.com" for name in plain] if authorities else []
    return first + certificates + rest


def accepted(endpoint: Endpoint) -> dict[str, list[str]]:
    """Ciphers, key exchange and MACs for asyncssh; names that it does not know are left out."""
    chosen: dict[str, list[str]] = {"encryption_algs": list(CIPHERS)}
    for keyword, (name, supported) in _KEYWORDS.items():
        known = {algorithm.decode() for algorithm in supported()}
        said = [word for word in endpoint.algorithms.get(keyword, ()) if word in known]
        if said:
            chosen[name] = said
    return chosen


def _supported_host_keys() -> frozenset[str]:
    return frozenset({*HOST_KEYS, "ssh-rsa", "sk-ssh-ed25519@openssh.com"})
