"""Sizes, times and prices: from the text that a person writes, and back to text of stable width."""

from __future__ import annotations

import math
import re

from cockpit.errors import Fact

LATEST_S = 2e11
"""A later moment, as a host may tell one, is in no calendar: none shows the year 10000."""
_MIB = 1024.0 * 1024.0
_SIZE_BYTES: dict[str, float] = {
    "b": 1.0,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "k": 1024.0, "m": _MIB, "g": 1024.0 * _MIB, "t": _MIB * _MIB,
    "kib": 1024.0, "mib": _MIB, "gib": 1024.0 * _MIB, "tib": _MIB * _MIB,
}  # fmt: skip
_SECONDS: dict[str, float] = {
    "ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_CURRENCY_SIGNS = {
    "$": "USD",
    "US$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "CNY",
    "￥": "CNY",
    "元": "CNY",
}
_NUMBER = r"(?:[0-9]{1,15}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"
_SIZE = re.compile(rf"({_NUMBER})\s*([A-Za-z]*)")
_DURATION = re.compile(rf"(?:{_NUMBER}\s*[a-zA-Z]+\s*)+")
_DURATION_PART = re.compile(rf"({_NUMBER})\s*([a-zA-Z]+)\s*")
_MONEY = re.compile(
    rf"(?:(?P<sign>US\$|[$€£¥￥])\s*)?(?P<amount>{_NUMBER})(?:\s*(?P<code>[A-Za-z]{{3}}|元))?"
)
_PER_HOUR = re.compile(r"\s*(?:/|per)\s*(?:h|hr|hour|时|小时)\s*$", re.IGNORECASE)


class UnitError(ValueError):
    """Text that is not the quantity it should be. `code` is stable; `facts` hold what was given and an example."""

    def __init__(self, code: str, **facts: Fact) -> None:
        self.code = code
        self.facts = facts
        super().__init__(f"{code}: {facts}")


def parse_size(text: str) -> int:
    """MiB of "20 GiB", rounded up; "GB" is 10^9 bytes, a bare "G" is a GiB."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UnitError("not_a_size", given=text, example="20 GiB")
    number, unit = match.groups()
    if not unit:
        raise UnitError("size_needs_unit", given=text, example=f"{number} GiB")
    factor = _SIZE_BYTES.get(unit.lower())
    if factor is None:
        raise UnitError("not_a_size", given=text, example="20 GiB")
    return math.ceil(round(float(number) * factor / _MIB, 6))


def parse_duration(text: str) -> float:
    """Seconds of "15s", "10m", "1h30m" or "2 d"."""
    stripped = text.strip()
    if re.fullmatch(_NUMBER, stripped):
        raise UnitError("time_needs_unit", given=text, example=f"{stripped}s")
    if _DURATION.fullmatch(stripped) is None:
        raise UnitError("not_a_time", given=text, example="15s")
    total = 0.0
    for number, unit in _DURATION_PART.findall(stripped):
        factor = _SECONDS.get(unit.lower())
        if factor is None:
            raise UnitError("not_a_time", given=text, example="15s")
        total += float(number) * factor
    return total


def parse_money(text: str) -> tuple[float, str]:
    """Amount and currency of "5 USD" or "$5"."""
    match = _MONEY.fullmatch(text.strip())
    if match is None:
        raise UnitError("not_a_price", given=text, example="5 USD")
    sign, code = match["sign"], match["code"]
    if sign and code and _CURRENCY_SIGNS[sign] != code.upper() and sign != "$":
        raise UnitError("not_a_price", given=text, example="5 USD")
    currency = code or sign
    if currency is None:
        raise UnitError("price_needs_currency", given=text, example=f"{match['amount']} USD")
    return float(match["amount"]), _CURRENCY_SIGNS.get(currency, currency.upper())


def parse_price(text: str) -> tuple[float, str]:
    """Amount for an hour and currency of "0.42 USD/h" or "$0.42/hr"."""
    stripped = text.strip()
    per_hour = _PER_HOUR.search(stripped)
    if per_hour is None:
        code, example = _without_hour(stripped)
        raise UnitError(code, given=text, example=example)
    try:
        return parse_money(stripped[: per_hour.start()])
    except UnitError as error:
        example = f"{error.facts['example']}/h" if error.code != "not_a_price" else "0.42 USD/h"
        raise UnitError(error.code, given=text, example=example) from error


def _without_hour(text: str) -> tuple[str, str]:
    """What is wrong with a price that names no hour, and how it would be right."""
    money = text.split("/")[0]
    try:
        parse_money(money)
    except UnitError as error:
        if error.code == "price_needs_currency":
            return "price_needs_hour", f"{error.facts['example']}/h"
        return "not_a_price", "0.42 USD/h"
    return "price_needs_hour", f"{money}/h"


def mib_text(mib: float | None, *, of_mib: float | None = None, width: int = 5) -> str:
    """Memory as "22.8G" or "2.0T", right-aligned. The unit follows `of_mib` where given, so that it does not flip."""
    if mib is None:
        return "n/a".rjust(width)
    gib, scale = mib / 1024, (mib if of_mib is None else of_mib) / 1024
    text = f"{gib / 1024:.1f}T" if scale >= 1000 else f"{gib:.1f}G"
    return text.rjust(width)


def mib_pair_text(used_mib: float | None, total_mib: float | None) -> str:
    """Used of total in one unit: "22.8/24.0G", with the used part as wide as the total."""
    if total_mib is None:
        return mib_text(used_mib)
    total = mib_text(total_mib, width=0)
    used = "n/a" if used_mib is None else mib_text(used_mib, of_mib=total_mib, width=0)[:-1]
    return f"{used.rjust(len(total) - 1)}/{total}"


def bytes_text(count: float | None) -> str:
    """A number of bytes for a sentence: "412 B", "1.2 KiB", "20.8 GiB"."""
    if count is None:
        return "n/a"
    if abs(count) < 1024:
        return f"{count:.0f} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):  # noqa: B007 - the last one is the answer
        value /= 1024
        if abs(value) < 1023.95:
            break
    return f"{value:.1f} {unit}"


def duration_text(seconds: float | None) -> str:
    """A span for the eye: "0.4 s", "14 s", "41 m", "2 h 10 m", "3 d 4 h"."""
    if seconds is None or not math.isfinite(seconds):
        return "n/a"
    sign, left = ("-", -seconds) if seconds < 0 else ("", seconds)
    if left < 9.95:
        return f"{sign}{left:.1f} s"
    if left < 59.5:
        return f"{sign}{left:.0f} s"
    minutes = round(left / 60)
    if minutes < 60:
        return f"{sign}{minutes} m"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{sign}{hours} h {minutes} m" if minutes else f"{sign}{hours} h"
    days, hours = divmod(round(left / 3600), 24)
    return f"{sign}{days} d {hours} h" if hours else f"{sign}{days} d"


def price_text(amount: float | None, currency: str | None) -> str:
    """A price for an hour: "0.42 USD/h"; empty when it is not known."""
    return "" if amount is None else f"{amount:.2f} {currency or ''}".rstrip() + "/h"
