"""What a person should know before a start of what goes along with the run: money, messages."""

from __future__ import annotations

from cockpit.config.profile import Profile
from cockpit.config.spec import HostSpec
from cockpit.domain.budget import Price, unmeasured
from cockpit.engine.api import Check
from cockpit.engine.around_words import limits_of
from cockpit.engine.notify import is_installed, schemes


def around_checks(profile: Profile, host: HostSpec) -> tuple[Check, ...]:
    return (*_budget(profile, host), *_notify(profile))


def _budget(profile: Profile, host: HostSpec) -> list[Check]:
    limits = limits_of(profile)
    checks = []
    if (code := unmeasured(limits, Price(host.price_per_h, host.currency))) is not None:
        facts = {"host": host.name, "currency": host.currency, "wanted": limits.currency}
        checks.append(Check(code, "warning", dict(facts)))
    if limits.stops:
        checks.append(Check("budget_stop_needs_us", "warning"))
    return checks


def _notify(profile: Profile) -> list[Check]:
    urls = profile.notify.urls
    if not urls:
        return []
    checks = [] if is_installed() else [Check("notify_missing", "warning")]
    for number, scheme in enumerate(schemes(urls), 1):
        if scheme == "?":
            checks.append(Check("notify_bad_url", "warning", {"number": number}))
    return checks
