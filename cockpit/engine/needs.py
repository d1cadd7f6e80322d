"""The [needs] of a profile against a host: what is known of it already, and packages that its Python is asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from cockpit.config.profile import Profile
from cockpit.domain.models import HostFacts
from cockpit.domain.needs import meets
from cockpit.domain.placement import Card
from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_text
from cockpit.engine.api import Check
from cockpit.engine.bounds import within
from cockpit.errors import CockpitError
from cockpit.launchers.base import Launch
from cockpit.transport.base import HostTransport

ASK_S: Final = 20.0
"""A Python on a network disk takes seconds to start; a launch is not held up for longer."""
ANSWER_BYTES: Final = 64 * 1024
_VERDICTS: Final[dict[bool | None, Literal["ok", "blocked", "unknown"]]] = {
    True: "ok",
    False: "blocked",
    None: "unknown",
}
_ASK: Final = """\
import json, sys
try:
    from importlib.metadata import version
except ImportError:
    version = None
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = sys.version.split()[0] if name == "python" else version(name)
    except Exception:
        found[name] = None
print(json.dumps(found))
"""


def host_needs(profile: Profile, facts: HostFacts | None, cards: Sequence[Card]) -> Iterator[Check]:
    """Driver, CUDA and memory, as the host's samples tell."""
    needs = profile.needs
    if needs is None:
        return
    if needs.driver is not None:
        yield _version_check("driver", needs.driver, facts.driver if facts else None)
    if needs.cuda is not None:
        yield _version_check("cuda", needs.cuda, facts.cuda if facts else None)
    if needs.vram_mib is not None and cards:
        sizes = [card.total_mib for card in cards]
        least = min((size for size in sizes if size is not None), default=None)
        fits = None if least is None else least >= needs.vram_mib
        needed, found = mib_text(needs.vram_mib).strip(), mib_text(least).strip()
        told = {"needed": needed, "found": found if least is not None else None}
        yield Check(_code("vram", told["found"]), _VERDICTS[fits], dict(told))


async def python_needs(
    profile: Profile, launch: Launch, transport: HostTransport | None
) -> list[Check]:
    """Packages of the environment that the run will use. Nothing is imported there, only looked up."""
    wanted = profile.needs.python if profile.needs is not None else {}
    if not wanted:
        return []
    found = await versions_of(launch, wanted, transport) if transport is not None else {}
    return [_version_check(name, condition, found.get(name)) for name, condition in wanted.items()]


def _version_check(name: str, condition: str, found: str | None) -> Check:
    facts = {"name": name, "needed": condition, "found": found}
    return Check(_code("version", found), _VERDICTS[meets(found, condition)], dict(facts))


def _code(what: str, found: object) -> str:
    return f"needs_{what}" if found is not None else f"needs_{what}_unknown"


async def versions_of(
    launch: Launch, names: Iterable[str], transport: HostTransport
) -> Mapping[str, str | None]:
    """By name; empty when the host's Python gives no answer in time."""
    python = next((f"{folder}/python" for folder in launch.path_first), None)
    words = " ".join(shlex.quote(name) for name in names)
    code = shlex.quote(_ASK)
    if python is not None:
        script = f"exec {shell_path(python)} -c {code} {words}"
    else:
        script = f"command -v python >/dev/null && exec python -c {code} {words}; exec python3 -c {code} {words}"
    try:
        done = await within(
            ASK_S + 1, transport.run(script.encode(), timeout_s=ASK_S, limit=ANSWER_BYTES)
        )
        told = json.loads(done.stdout) if done.exit_code == 0 else {}
    except (CockpitError, TimeoutError, ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    return {
        name: safe_line(version, 40)
        for name, version in told.items()
        if isinstance(name, str) and isinstance(version, str)
    }


def shell_path(path: str) -> str:
    """As one word, with the host's home for a leading `~`."""
    if path == "~":
        return '"$HOME"'
    return f'"$HOME"/{shlex.quote(path[2:])}' if path.startswith("~/") else shlex.quote(path)
