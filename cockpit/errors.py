"""The exception tree and the exit codes: every failure has a stable code and facts, and no sentence.

    CockpitError                    internal              70
    +- UsageError                   usage                 64
    +- DataError                    bad_data              65
    +- ConfigError                  bad_config            78
    |  +- ProfileError              bad_profile           78
    +- StorageError                 io                    74
    +- TransportError               transport             69
    |  +- HostUnreachable           unreachable           69
    |  +- AuthenticationFailed      auth_failed           69
    |  +- HostKeyUnknown            host_key_unknown      77
    |  +- HostKeyChanged            host_key_changed      77
    |  +- LinkLost                  link_lost             69
    |  +- ProxyWithoutExec          proxy_no_exec         69
    |  +- ProtocolError             protocol              76
    +- ProbeError                   probe                 69
    |  +- NoPython                  no_python             69
    +- RunError                     run                   70
       +- LaunchFailed              launch_failed         69
       +- NotNow                    no_free_gpu           75
       +- RunUnknown                run_unknown           64

Sentences for a person are made from `code` and `facts` by `cockpit.i18n.messages`, in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar, TypeAlias

Fact: TypeAlias = str | int | float | bool | None | tuple[str, ...]


class ExitCode(IntEnum):
    """What our own failures end with (sysexits.h); a run's own code passes through unchanged."""

    OK = 0
    USAGE = 64
    DATA = 65
    UNAVAILABLE = 69
    INTERNAL = 70
    IO = 74
    NOT_NOW = 75
    PROTOCOL = 76
    PERMISSION = 77
    CONFIG = 78


class CockpitError(Exception):
    """The root. `code` is stable and documented; `facts` are values, already harmless to show."""

    default_code: ClassVar[str] = "internal"
    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, code: str = "", /, **facts: Fact) -> None:
        self.code = code or self.default_code
        self.facts: Mapping[str, Fact] = facts
        shown = ", ".join(f"{key}={value!r}" for key, value in facts.items() if value is not None)
        super().__init__(f"{self.code}: {shown}" if shown else self.code)


class UsageError(CockpitError):
    """The command line, a pasted line or an answer cannot be taken."""

    default_code = "usage"
    exit_code = ExitCode.USAGE


class DataError(CockpitError):
    """An input file (a log, a CSV, a recording) is not what it should be."""

    default_code = "bad_data"
    exit_code = ExitCode.DATA


class ConfigError(CockpitError):
    """hosts.toml or settings.toml has mistakes. `problems` holds every one of them."""

    default_code = "bad_config"
    exit_code = ExitCode.CONFIG

    def __init__(
        self, code: str = "", /, problems: tuple[Problem, ...] = (), **facts: Fact
    ) -> None:
        super().__init__(code, **facts)
        self.problems = problems


class ProfileError(ConfigError):
    """A run profile has mistakes; nothing was started."""

    default_code = "bad_profile"


class StorageError(CockpitError):
    """A file of ours could not be read or written."""

    default_code = "io"
    exit_code = ExitCode.IO


class TransportError(CockpitError):
    """Something between us and a host. Facts always hold `host`."""

    default_code = "transport"
    exit_code = ExitCode.UNAVAILABLE


class HostUnreachable(TransportError):
    """No answer, refused, no such name, no route: `why` says which."""

    default_code = "unreachable"


class AuthenticationFailed(TransportError):
    """The host answered and took none of our keys (or the key needs a passphrase)."""

    default_code = "auth_failed"


class HostKeyUnknown(TransportError):
    """First contact: `fingerprint` and `key_type` are what the host offered."""

    default_code = "host_key_unknown"
    exit_code = ExitCode.PERMISSION


class HostKeyChanged(TransportError):
    """Another key than the one we know: `known` and `fingerprint`."""

    default_code = "host_key_changed"
    exit_code = ExitCode.PERMISSION


class LinkLost(TransportError):
    """The connection was there and is gone; says nothing about the runs on the host."""

    default_code = "link_lost"


class ProxyWithoutExec(TransportError):
    """A terminal proxy (ssh.runpod.io) that runs no commands."""

    default_code = "proxy_no_exec"


class ProtocolError(TransportError):
    """What came back was not what we sent for: too long, not framed, not ours."""

    default_code = "protocol"
    exit_code = ExitCode.PROTOCOL


class ProbeError(CockpitError):
    """The host is connected and the probe cannot do its work."""

    default_code = "probe"
    exit_code = ExitCode.UNAVAILABLE


class NoPython(ProbeError):
    """No Python >= 3.6 was found on the host; `looked_for` says where."""

    default_code = "no_python"


class RunError(CockpitError):
    """Something about a run."""

    default_code = "run"


class LaunchFailed(RunError):
    """The run was not started; `why` is the step that failed."""

    default_code = "launch_failed"
    exit_code = ExitCode.UNAVAILABLE


class NotNow(RunError):
    """No card came free, or how the run ended could not be known."""

    default_code = "no_free_gpu"
    exit_code = ExitCode.NOT_NOW


class RunUnknown(RunError):
    """No run has that id, prefix or profile name, or several have."""

    default_code = "run_unknown"
    exit_code = ExitCode.USAGE


class Problem:
    """One mistake in one file: where it is, what it is, what was probably meant."""

    __slots__ = ("code", "column", "facts", "file", "key", "line")

    def __init__(
        self,
        code: str,
        *,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        key: str = "",
        **facts: Fact,
    ) -> None:
        self.code = code
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.facts: Mapping[str, Fact] = facts

    def __repr__(self) -> str:
        return (
            f"Problem({self.code!r}, {self.file}:{self.line}, {self.key!r}, {dict(self.facts)!r})"
        )
