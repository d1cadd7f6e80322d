from __future__ import annotations

import pytest

from cockpit.domain.units import (
    UnitError,
    bytes_text,
    duration_text,
    mib_pair_text,
    mib_text,
    parse_duration,
    parse_money,
    parse_price,
    parse_size,
    price_text,
)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("20 GiB", 20480),
        ("20GiB", 20480),
        ("20G", 20480),
        ("1.5 gib", 1536),
        ("512 MiB", 512),
        ("24 GB", 22889),
        ("2 TiB", 2 * 1024 * 1024),
        ("1 B", 1),
        ("0 B", 0),
        ("  8 GiB ", 8192),
    ],
)
def test_a_size_is_mib_rounded_up(text: str, mib: int) -> None:
    assert parse_size(text) == mib


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("20", "size_needs_unit"),
        ("20 Gb/s", "not_a_size"),
        ("-1 GiB", "not_a_size"),
        ("1e3 MiB", "not_a_size"),
        ("GiB", "not_a_size"),
        ("", "not_a_size"),
        ("٢٠ GiB", "not_a_size"),
        ("9" * 400 + " GiB", "not_a_size"),
    ],
)
def test_what_is_no_size_says_why(text: str, code: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    assert caught.value.code == code


def test_a_bare_number_is_shown_with_a_unit() -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration("15")
    assert caught.value.code == "time_needs_unit"
    assert caught.value.facts == {"given": "15", "example": "15s"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("15m", 900.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("1 h 30 min", 5400.0),
        ("2 d", 172800.0),
        ("0.5s", 0.5),
        ("250ms", 0.25),
        ("0s", 0.0),
    ],
)
def test_a_duration_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "15 parsecs", "-5s", "1:30", "5s later"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration(text)
    assert caught.value.code == "not_a_time"


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("0.42 USD/h", (0.42, "USD")),
        ("0.42 USD / hour", (0.42, "USD")),
        ("0.42 usd/hr", (0.42, "USD")),
        ("$0.42/h", (0.42, "USD")),
        ("¥2.78/时", (2.78, "CNY")),
        ("2.78元/小时", (2.78, "CNY")),
        ("€1/h", (1.0, "EUR")),
        ("$1.50 CAD/h", (1.5, "CAD")),
    ],
)
def test_a_price_is_an_amount_for_an_hour(text: str, price: tuple[float, str]) -> None:
    assert parse_price(text) == price


@pytest.mark.parametrize(
    ("text", "code", "example"),
    [
        ("0.42", "price_needs_hour", "0.42 USD/h"),
        ("cheap", "not_a_price", "0.42 USD/h"),
        ("", "not_a_price", "0.42 USD/h"),
        ("0.42 USD", "price_needs_hour", "0.42 USD/h"),
        ("0.42/h", "price_needs_currency", "0.42 USD/h"),
        ("cheap/h", "not_a_price", "0.42 USD/h"),
        ("€1 USD/h", "not_a_price", "0.42 USD/h"),
    ],
)
def test_what_is_no_price_shows_one(text: str, code: str, example: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_price(text)
    assert (caught.value.code, caught.value.facts["example"]) == (code, example)


def test_money_has_no_hour() -> None:
    assert parse_money("5 USD") == (5.0, "USD")
    with pytest.raises(UnitError):
        parse_money("5 USD/h")


@pytest.mark.parametrize(
    ("mib", "text"),
    [(0, " 0.0G"), (23347, "22.8G"), (81559, "79.6G"), (144384, "141.0G"), (None, "  n/a")],
)
def test_memory_has_a_stable_width(mib: int | None, text: str) -> None:
    assert mib_text(mib) == text


def test_the_unit_of_a_pair_is_the_total_s() -> None:
    assert mib_pair_text(23347, 24576) == "22.8/24.0G"
    assert mib_pair_text(0, 24576) == " 0.0/24.0G"
    assert mib_pair_text(400_000, 2_097_152) == "0.4/2.0T"
    assert mib_pair_text(None, 24576) == " n/a/24.0G"
    assert mib_pair_text(None, None) == "  n/a"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (412, "412 B"),
        (1229, "1.2 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (20.8 * 1024**3, "20.8 GiB"),
        (5 * 1024**5, "5120.0 TiB"),
        (None, "n/a"),
    ],
)
def test_bytes_for_a_sentence(count: float | None, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (0.42, "0.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 m"),
        (2460, "41 m"),
        (3599, "1 h"),
        (7800, "2 h 10 m"),
        (86400 * 3 + 4 * 3600, "3 d 4 h"),
        (86399, "1 d"),
        (-14.0, "-14 s"),
        (None, "n/a"),
        (float("inf"), "n/a"),
    ],
)
def test_a_span_for_the_eye(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_price_text_is_empty_when_nothing_is_known() -> None:
    assert price_text(0.42, "USD") == "0.42 USD/h"
    assert price_text(None, None) == ""
