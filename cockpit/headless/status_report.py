"""What `cockpit status` prints and when: everything once, then only what reads differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from cockpit.config.hosts import HostSpec
from cockpit.domain.cells import cell_len
from cockpit.domain.models import HostName
from cockpit.engine.api import EngineApi
from cockpit.headless.status_json import status_object
from cockpit.headless.status_words import host_lines


class Report:
    """What was printed, so that only what is new is printed again."""

    def __init__(
        self, hosts: Mapping[HostName, HostSpec], out: Callable[[str], None], *, as_json: bool
    ) -> None:
        self._hosts = hosts
        self._out = out
        self._as_json = as_json
        self._version = 0
        self._printed: dict[str, str] = {}

    def all(self, engine: EngineApi) -> None:
        """Every host, once."""
        self._version = engine.fleet.version
        if self._as_json:
            for host in self._hosts:
                self._object(host, engine)
            return
        blocks = [self._lines(host, engine, ages=True) for host in self._hosts]
        for number, lines in enumerate(blocks):
            if number and (len(lines) > 1 or len(blocks[number - 1]) > 1):
                self._out("")
            for line in lines:
                self._out(line)
        for host in self._hosts:
            self._printed.update(self._texts(host, engine))

    def changes(self, engine: EngineApi) -> None:
        """The hosts that changed since they were printed: a JSON object each, or the lines that read differently."""
        changed = [
            host for host in engine.fleet.changed_since(self._version) if host in self._hosts
        ]
        self._version = engine.fleet.version
        for host in changed:
            if self._as_json:
                self._object(host, engine)
                continue
            for label, text in self._texts(host, engine).items():
                if self._printed.get(label) != text:
                    self._printed[label] = text
                    self._out(self._line(label, text))

    def _object(self, host: HostName, engine: EngineApi) -> None:
        state = engine.fleet.hosts[host]
        self._out(json.dumps(status_object(self._hosts[host], state, engine.now_s())))

    def _lines(self, host: HostName, engine: EngineApi, *, ages: bool) -> list[str]:
        now_s = engine.now_s() if ages else None
        state = engine.fleet.hosts[host]
        return [self._line(*pair) for pair in host_lines(self._hosts[host], state, now_s)]

    def _texts(self, host: HostName, engine: EngineApi) -> dict[str, str]:
        return dict(host_lines(self._hosts[host], engine.fleet.hosts[host], None))

    def _line(self, label: str, text: str) -> str:
        wide = max(cell_len(host) for host in self._hosts) + 3
        return f"{label}{' ' * max(1, wide - cell_len(label))} {text}".rstrip()
