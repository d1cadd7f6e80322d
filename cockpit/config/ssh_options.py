"""ssh's own options as cockpit takes them from a pasted line: honoured elsewhere, dropped or refused here."""

from __future__ import annotations

FLAGS = frozenset("1246aACfgGkKMnNqstTvVxXyY")
WITH_VALUE = frozenset("bBcDeEFIiJlLmoOpPQRSWw")

DROPPED_LETTERS: dict[str, str] = {
    "A": "agent_forwarding", "X": "x11", "Y": "x11", "x": "x11", "R": "remote_forward",
    "t": "terminal", "T": "terminal", "N": "no_command", "f": "no_command", "n": "no_command",
    "D": "other_forward", "W": "other_forward", "w": "other_forward", "g": "bind_address",
}  # fmt: skip
DROPPED_OPTIONS: dict[str, str] = {
    "stricthostkeychecking": "host_key_check", "userknownhostsfile": "host_key_check",
    "globalknownhostsfile": "host_key_check", "checkhostip": "host_key_check",
    "updatehostkeys": "host_key_check", "verifyhostkeydns": "host_key_check",
    "forwardagent": "agent_forwarding", "forwardx11": "x11", "forwardx11trusted": "x11",
    "remoteforward": "remote_forward", "dynamicforward": "other_forward",
    "gatewayports": "bind_address", "requesttty": "terminal", "sessiontype": "no_command",
    "remotecommand": "remote_command",
}  # fmt: skip
REFUSED_OPTIONS = frozenset(
    {
        "proxycommand", "proxyusefdpass", "localcommand", "permitlocalcommand",
        "knownhostscommand", "pkcs11provider", "smartcarddevice", "securitykeyprovider",
        "xauthlocation", "include", "match", "host",
    }
)  # fmt: skip
REFUSED_LETTERS = {"F": "-F", "I": "-I"}
