"""From hosts.toml and ssh_config to what will be dialled. StrictHostKeyChecking is not read: we are always strict."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.errors import HostUnreachable
from cockpit.transport.endpoints import DEFAULT_PORT, Endpoint, ResolvedHost
from cockpit.transport.ssh_options import Options, plain_options, read_options

MAX_JUMPS = 8
DEFAULT_IDENTITIES = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")
DEFAULT_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")

_WORD = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:@%+=,/\[\]-]*")
_TOKEN = re.compile(r"%(.)")
_ALGORITHMS = ("ciphers", "kexalgorithms", "macs", "hostkeyalgorithms", "pubkeyacceptedalgorithms")
_METHODS = {
    "pubkeyauthentication": "publickey",
    "kbdinteractiveauthentication": "keyboard-interactive",
    "passwordauthentication": "password",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What hosts.toml or a ProxyJump says of one server. None: not said."""

    name: str
    host: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    weak: frozenset[str] = frozenset()
    """Fields that only `[defaults]` gave: ssh_config wins over them."""


def resolve(
    spec: HostSpec,
    hosts: Mapping[HostName, HostSpec] | None = None,
    *,
    ssh_config: Path | None = None,
) -> ResolvedHost:
    """What `spec` means with ssh_config applied. Blocks for some milliseconds; dials nothing.

    Raises HostUnreachable (`bad_ssh_config`, or `why` = bad_name, jump_loop), with the host's name in it.
    """
    if spec.local or spec.host is None:
        return ResolvedHost(spec.name, None)
    try:
        target, options = _endpoint(_wanted(spec), ssh_config)
        jumps = _jumps(spec, options, hosts or {}, ssh_config)
    except HostUnreachable as error:
        raise HostUnreachable(error.code, **{**error.facts, "host": spec.name}) from error
    if jumps:
        target = replace(target, proxy_command=None)
    return ResolvedHost(spec.name, target, jumps)


def check_word(word: str, host: str) -> str:
    """A name that means nothing to a shell and is no option. Raises HostUnreachable `bad_name`."""
    if not _WORD.fullmatch(word):
        raise HostUnreachable(why="bad_name", host=host, name=safe_line(word))
    return word


def parse_jump(text: str) -> Wanted:
    """One element of a ProxyJump: [user@]host[:port], with brackets round an IPv6 address."""
    bare = text.strip().removeprefix("ssh://").rstrip("/")
    user, at, place = bare.rpartition("@")
    host, port = place, None
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":") or None
    elif place.count(":") == 1:
        host, port = place.split(":")
    if port is not None and not (port.isdecimal() and 0 < int(port) < 65536):
        raise HostUnreachable(why="bad_name", name=safe_line(text))
    return Wanted(text.strip(), host, user if at else None, int(port) if port else None)


def _wanted(spec: HostSpec) -> Wanted:
    assert spec.host is not None
    return Wanted(
        spec.name, spec.host, spec.user, spec.port, spec.identity, frozenset(spec.from_defaults)
    )


def _jumps(
    spec: HostSpec, options: Options, hosts: Mapping[HostName, HostSpec], config: Path | None
) -> tuple[Endpoint, ...]:
    """The chain: what hosts.toml says, else ProxyJump; and before its first hop, that hop's own ProxyJump."""
    listed = _listed_hops(spec, hosts) or _proxy_jump(options)
    chain: list[Endpoint] = []
    first: Options = options
    for at, wanted in enumerate(listed):
        endpoint, said = _endpoint(wanted, config)
        chain.append(endpoint if at == 0 else replace(endpoint, proxy_command=None))
        first = said if at == 0 else first
    seen = {hop.text for hop in chain}
    while chain and (nested := _proxy_jump(first)):
        before = [_endpoint(wanted, config) for wanted in nested]
        first = before[0][1]
        chain[0] = replace(chain[0], proxy_command=None)
        chain[:0] = [endpoint for endpoint, _ in before]
        if len(chain) > MAX_JUMPS or seen & {endpoint.text for endpoint, _ in before}:
            raise HostUnreachable(why="jump_loop", jumps=tuple(hop.name for hop in chain))
        seen |= {endpoint.text for endpoint, _ in before}
    return tuple(chain)


def _listed_hops(spec: HostSpec, hosts: Mapping[HostName, HostSpec]) -> list[Wanted]:
    if spec.hops:
        return [_wanted(hop) for hop in spec.hops if hop.host is not None]
    found: list[Wanted] = []
    for part in (spec.jump or "").split(","):
        known = hosts.get(HostName(part.strip()))
        if known is not None and known.host is not None:
            found += [*_listed_hops(known, {}), _wanted(known)]
        elif part.strip():
            found.append(parse_jump(part))
    return found


def _proxy_jump(options: Options) -> list[Wanted]:
    text = _one(options, "proxyjump")
    return [parse_jump(part) for part in text.split(",")] if text else []


def _endpoint(wanted: Wanted, config: Path | None) -> tuple[Endpoint, Options]:
    check_word(wanted.host, wanted.name)
    if wanted.user:
        check_word(wanted.user, wanted.name)
    user = None if "user" in wanted.weak else wanted.user
    port = None if "port" in wanted.weak else wanted.port
    options = read_options(wanted.host, user, port, config)
    endpoint = Endpoint(
        name=wanted.name,
        address=check_word((_one(options, "hostname") or wanted.host).strip("[]"), wanted.name),
        port=_port(wanted, options),
        user=check_word(_user(wanted, options), wanted.name),
        host_key_alias=_one(options, "hostkeyalias"),
        methods=tuple(
            m for key, m in _METHODS.items() if _one(options, key) not in ("no", "false")
        ),
        family=_family(options),
        bind_address=_one(options, "bindaddress"),
        algorithms=_algorithms(options),
    )
    return _with_files(endpoint, wanted, options), options


def _with_files(endpoint: Endpoint, wanted: Wanted, options: Options) -> Endpoint:
    identities, given = _identities(wanted, options)
    known = options.get("userknownhostsfile", DEFAULT_KNOWN_HOSTS)
    if known == plain_options().get("userknownhostsfile"):
        known = DEFAULT_KNOWN_HOSTS

    def paths(texts: tuple[str, ...]) -> tuple[Path, ...]:
        return tuple(_path(_expand(text, endpoint, wanted)) for text in texts if text != "none")

    command = _one(options, "proxycommand")
    return replace(
        endpoint,
        identities=paths(identities),
        identities_given=given,
        identities_only=_one(options, "identitiesonly") == "yes",
        certificates=paths(options.get("certificatefile", ())),
        agent=_agent(options, endpoint, wanted),
        user_known_hosts=paths(known),
        global_known_hosts=paths(options.get("globalknownhostsfile", GLOBAL_KNOWN_HOSTS)),
        proxy_command=_expand(command, endpoint, wanted) if command else None,
    )


def _user(wanted: Wanted, options: Options) -> str:
    said = _one(options, "user") or getpass.getuser()
    if "user" in wanted.weak and wanted.user and said == getpass.getuser():
        return wanted.user
    return said


def _port(wanted: Wanted, options: Options) -> int:
    said = int(_one(options, "port") or DEFAULT_PORT)
    if "port" in wanted.weak and wanted.port and said == DEFAULT_PORT:
        return wanted.port
    return said


def _identities(wanted: Wanted, options: Options) -> tuple[tuple[str, ...], bool]:
    """The key files in order, and whether a person named them."""
    said = options.get("identityfile", ())
    if said == plain_options().get("identityfile", ()):
        said = ()
    if wanted.identity and not ("identity" in wanted.weak and said):
        said = (wanted.identity, *(file for file in said if file != wanted.identity))
    if said:
        return said, True
    return tuple(f"~/.ssh/{name}" for name in DEFAULT_IDENTITIES), False


def _agent(options: Options, endpoint: Endpoint, wanted: Wanted) -> str | None:
    said = options.get("identityagent", ("SSH_AUTH_SOCK",))[0]
    if said in ("none", ""):
        return None
    if said == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if said.startswith("$"):
        return os.environ.get(said[1:].strip("{}")) or None
    return str(_path(_expand(said, endpoint, wanted)))


def _algorithms(options: Options) -> dict[str, tuple[str, ...]]:
    """What the person's config changes; with asyncssh's parser, only whole lists can be followed."""
    plain = plain_options()
    found: dict[str, tuple[str, ...]] = {}
    for name in _ALGORITHMS:
        said = _one(options, name)
        if said and said[0] not in "+-^" and options.get(name) != plain.get(name):
            found[name] = tuple(said.split(","))
    return found


def _family(options: Options) -> int:
    families = {"inet": socket.AF_INET, str(int(socket.AF_INET)): socket.AF_INET}
    families |= {"inet6": socket.AF_INET6, str(int(socket.AF_INET6)): socket.AF_INET6}
    return int(families.get(_one(options, "addressfamily") or "", socket.AF_UNSPEC))


def _one(options: Options, name: str) -> str | None:
    values = options.get(name, ())
    return values[0] if values and values[0] not in ("", "none") else None


def _expand(text: str, endpoint: Endpoint, wanted: Wanted) -> str:
    """ssh_config's tokens. The values were checked: none means anything to a shell."""
    if "%" not in text:
        return text
    local = socket.gethostname()
    values = {
        "%": "%",
        "h": endpoint.address,
        "n": wanted.host,
        "p": str(endpoint.port),
        "r": endpoint.user,
        "u": getpass.getuser(),
        "d": str(Path.home()),
        "i": str(os.getuid()),
        "l": local,
        "L": local.partition(".")[0],
        "k": endpoint.host_key_alias or wanted.host,
    }
    return _TOKEN.sub(lambda match: values.get(match[1], match[0]), text)


def _path(text: str) -> Path:
    """A file as ssh means it: `~` is $HOME for us, and ~/.ssh where the name says no folder."""
    return Path(os.path.expandvars(text) if "${" in text else text).expanduser()
