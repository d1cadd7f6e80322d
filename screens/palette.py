"""One palette for everything: hosts, runs and commands by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.screens.base import services
from cockpit.screens.navigation import open_first_start, open_host, open_run
from cockpit.widgets.theme import PALETTES

Entry = tuple[str, str, IgnoreReturnCallbackType]


class CockpitCommands(Provider):
    """Everything that can be opened or done, in the order in which a person would look for it."""

    def _entries(self) -> Iterator[Entry]:
        app, engine = self.app, services(self.screen).engine
        for host in engine.fleet.hosts:
            yield safe_line(host), _("open the host"), partial(open_host, app, host)
        for run in engine.runs.all():
            what = f"{safe_line(run.profile)} {_('on')} {safe_line(run.host)}"
            yield f"{what} ({run.run})", _("open the run"), partial(open_run, app, run.run)
        yield _("add a host"), _("paste an ssh command"), partial(open_first_start, app)
        for seconds in (0.5, 1.0, 2.0, 5.0, 10.0):
            words = _("rate {seconds:g} s").format(seconds=seconds)
            yield words, _("time between samples"), partial(engine.set_interval, seconds)
        for palette in PALETTES.values():
            words = _("theme {title}").format(title=palette.title)
            yield words, _("colours"), partial(self._use_theme, palette.name)
        yield from self._bound_entries()

    def _bound_entries(self) -> Iterator[Entry]:
        seen = set()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if not binding.id or binding.id in seen or not binding.description:
                continue
            seen.add(binding.id)
            run = partial(self.app.run_action, binding.action, active.node)
            yield binding.description.lower(), binding.tooltip, run

    def _use_theme(self, name: str) -> None:
        self.app.theme = name

    async def discover(self) -> Hits:
        for text, help_text, run in self._entries():
            yield DiscoveryHit(Content(text), run, text=text, help=help_text or None)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, help_text, run in self._entries():
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), run, text=text, help=help_text or None)
