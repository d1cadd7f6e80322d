"""What `jump` means: hosts of this file, ssh aliases and addresses, in the order in which they are passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cockpit.config.address import parse_destination
from cockpit.config.document import Document
from cockpit.config.spec import HostSpec
from cockpit.domain.models import HostName

MAX_HOPS = 8


def attach_hops(document: Document, specs: Mapping[HostName, HostSpec]) -> dict[HostName, HostSpec]:
    """The specs with their hops; a circle, a hop that is this machine or too many are reported."""
    chains = _Chains(document, specs)
    return {name: replace(spec, hops=chains.of(name)) for name, spec in specs.items()}


class _Chains:
    def __init__(self, document: Document, specs: Mapping[HostName, HostSpec]) -> None:
        self._document = document
        self._specs = specs
        self._done: dict[HostName, tuple[HostSpec, ...]] = {}

    def of(self, name: HostName, above: tuple[HostName, ...] = ()) -> tuple[HostSpec, ...]:
        """The hops on the way to a host; `above` are the hosts whose way leads through it."""
        if name in self._done:
            return self._done[name]
        spec = self._specs[name]
        hops: list[HostSpec] = []
        for position, text in enumerate(_parts(spec)):
            hops += self._hop(spec, text, first=position == 0, above=(*above, name))
        if len(hops) > MAX_HOPS:
            self._report(name, "too_many_hops", limit=MAX_HOPS)
            hops = []
        self._done[name] = tuple(hops)
        return self._done[name]

    def _hop(
        self, spec: HostSpec, text: str, *, first: bool, above: tuple[HostName, ...]
    ) -> tuple[HostSpec, ...]:
        target = self._specs.get(HostName(text))
        if target is None:
            return (_outside(text),)
        if target.name in above:
            if "jump" not in spec.from_defaults:
                circle = (*above[above.index(target.name) :], target.name)
                self._report(spec.name, "jump_circle", circle=" -> ".join(circle))
            return ()
        if target.local:
            self._report(spec.name, "jump_is_local", hop=text)
            return ()
        before = self.of(target.name, above) if first else ()
        return (*before, replace(target, jump=None, hops=()))

    def _report(self, host: HostName, code: str, **facts: str | int) -> None:
        self._document.report(("hosts", host, "jump"), code, **facts)


def _parts(spec: HostSpec) -> list[str]:
    """The hops as written. A jump of `[defaults]` does not apply to the jump host itself."""
    if spec.jump is None or spec.jump.lower() == "none" or spec.local:
        return []
    parts = [part.strip() for part in spec.jump.split(",")]
    return [] if "jump" in spec.from_defaults and spec.name in parts else parts


def _outside(text: str) -> HostSpec:
    """A hop that this file does not describe: an alias of ssh_config or an address."""
    found = parse_destination(text)
    return HostSpec(HostName(text), host=found.host, port=found.port, user=found.user)
