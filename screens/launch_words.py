"""What the Launch screen says of a profile while it is looked at: plan, script, mistakes, the button."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.engine.api import LaunchPlan, ProfileEntry
from cockpit.errors import CockpitError
from cockpit.i18n import _
from cockpit.screens.dialogs import ConfirmDialog
from cockpit.screens.plan_words import (
    check_text,
    code_words,
    error_paras,
    large_lines,
    plan_paras,
    price_words,
    script_paras,
    where_text,
)
from cockpit.widgets.text_pane import Para, para
from cockpit.widgets.toml_text import toml_paras


@dataclass(frozen=True, slots=True)
class Draft:
    """A profile that is looked at, and how far its plan is."""

    entry: ProfileEntry | None
    plan: LaunchPlan | None
    error: CockpitError | None
    busy: str
    toml: str
    show_script: bool


def draft_paras(draft: Draft) -> list[Para]:
    """The plan with the profile, the exact script, or why there is no plan."""
    if draft.entry is None:
        words = _("No profiles. C copies one of the ready ones; a profile is one TOML file.")
        return [para(words, "muted")]
    described = safe_line(draft.entry.description)
    about = [para(described, "muted")] if described else []
    toml = toml_paras(draft.toml, numbers=draft.error is not None)
    if draft.plan is not None:
        if draft.show_script:
            return script_paras(draft.plan)
        return [*about, *plan_paras(draft.plan, toml)]
    if draft.error is not None:
        return [*about, *error_paras(draft.error), *toml]
    return [*about, para(draft.busy, "muted"), *toml]


def foot_words(draft: Draft, host: HostName | None) -> str:
    parts = [_("V script")] if draft.plan is not None and not draft.show_script else []
    if host is not None:
        parts.append(_("only {host}; esc any host").format(host=safe_line(host)))
    return "   ".join(parts)


def go_words(plan: LaunchPlan | None) -> str:
    """The button names where and at what price."""
    if plan is None:
        return _("Go")
    if plan.blocked:
        return _("Go: not as it stands")
    return _("Go: {where}, {price}").format(where=where_text(plan), price=price_words(plan))


def go_dialog(plan: LaunchPlan, name: str) -> ConfirmDialog:
    warnings = [check_text(check) for check in plan.checks if check.verdict == "warning"]
    is_large = plan.code is not None and plan.code.is_too_large
    if plan.code is not None and is_large:
        warnings += large_lines(plan.code)
    elif plan.code is not None:
        warnings.append(code_words(plan.code) + ".")
    runs = _("It runs on {where}, on its own: closing cockpit does not end it.")
    follows = [
        runs.format(where=where_text(plan)),
        _("Price: {price}.").format(price=price_words(plan)),
        *warnings,
    ]
    return ConfirmDialog(
        _("Start {name}?").format(name=name),
        safe_line(" ".join(plan.argv), 300),
        confirm=_("Send all of it, and start") if is_large else _("Start it"),
        cancel=_("Not yet"),
        follows=follows,
        danger=is_large,
    )
