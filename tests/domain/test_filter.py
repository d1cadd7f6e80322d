"""The filter language: what it reads, what it means, where it says it is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.filter import FilterError, parse_filter
from cockpit.domain.filter_fields import FIELDS, FLAGS, FilterRow
from cockpit.domain.filter_nodes import Filter, shown
from tests.builders.samples import gpu, host_sample, lost_gpu, process


def row(**changes: object) -> FilterRow:
    """A busy 4090 on a live, priced and tagged host."""
    card = gpu(0, mem_used_mib=4_096, processes=(process(4121, user="me"),))
    base = FilterRow(
        host="h100-eu-2",
        link="live",
        sample=host_sample("h100-eu-2", gpus=[card]),
        gpu=card,
        tags=("4090", "spot"),
        platform="vast",
        price_per_h=0.42,
        age_s=0.3,
        run="qwen-lora",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "h100", "HOST:H100", "host=h100-eu-2", "host:a100,h100", "tag:4090", "-tag:a100",
        "free>19GiB", "free > 19 GiB", "free>19", "free>19000MiB", "free>0.01T", "used<=4GiB",
        "free%>80", "util=97", "util>90%", "temp<80C", "power>0.3kW", "power%>85", "user:me",
        "state:live", "age<5s", "age<0.1m", "price<1", "driver>=550", "driver:550.54", "cuda>=12.1",
        "busy", "mine", "!incident", "not stale", "idle or busy", "free>100GiB | util>50",
        "(busy & mine) | lost", "host~^h1.*2$", "host!~zz", '"eu-2"', "qwen", "pid:4121",
        "（free>19ＧiB）", "！incident", "host：h100", "procs=1", "ram.free>10G", "disk.free>10G",
    ],
)  # fmt: skip
def test_what_passes(text: str) -> None:
    assert parse_filter(text).truth(row()) is True


@pytest.mark.parametrize(
    "text",
    [
        "a100", "host=h100", "-tag:spot", "free>20.1GiB", "util<97", "incident", "stale", "idle",
        "driver>=550.90", "busy & lost", "!(busy | lost)", "host~^100", "user:root", "!qwen",
    ],
)  # fmt: skip
def test_what_does_not(text: str) -> None:
    assert parse_filter(text).truth(row()) is False


def test_what_is_not_known_is_neither_true_nor_false() -> None:
    lost = row(gpu=lost_gpu(0))

    assert parse_filter("temp>80").truth(lost) is None
    assert parse_filter("!(temp>80)").truth(lost) is None
    assert parse_filter("temp=?").truth(lost) is True
    assert parse_filter("temp>80 | lost").truth(lost) is True
    assert parse_filter("temp>80 & a100").truth(lost) is False


@pytest.mark.parametrize(
    ("text", "code", "start", "fix"),
    [
        ("free>20GB & tmp>80", "no_field", 12, "temp"),
        ("free>twenty", "not_a_number", 5, ""),
        ("(free>20GiB", "unclosed", 0, ")"),
        ("host~[", "not_a_pattern", 5, ""),
        ("host~'(a+)+'", "pattern_too_hard", 5, ""),
        ("util:5", "not_for_numbers", 4, ""),
        ("free>", "no_value", 4, ""),
        ("busy &", "unfinished", 6, ""),
        (")", "unexpected", 0, ""),
        ("a" * 513, "too_long", 512, ""),
        ("!" * 30 + "a", "too_deep", 20, ""),
        ("(" * 30 + "a", "too_deep", 20, ""),
    ],
)
def test_a_mistake_has_a_place_and_a_way_out(text: str, code: str, start: int, fix: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)

    assert (caught.value.code, caught.value.start, caught.value.fix) == (code, start, fix)
    assert caught.value.end > caught.value.start


@pytest.mark.parametrize(
    "text",
    [
        "", "h100", "free>20GiB & tag:4090 & !incident host:h100", "a or not b and c",
        "(a | b) c", "a (b c)", "!(a b)", "temp=?", "host:'two words',x", '"free"', "age>=15m",
        "price<=0.42", "'it\"s'", "power%>12.5", "-a", "cuda~12",
    ],
)  # fmt: skip
def test_what_is_printed_reads_back_the_same(text: str) -> None:
    found = parse_filter(text)

    assert parse_filter(str(found)) == found


def test_chips_say_what_was_understood() -> None:
    found = parse_filter("free>20g tag:4090 !incident age>15m")

    assert [shown(term) for term in found.terms] == [
        "free > 20.0 GiB", "tag has 4090", "not incident", "age > 15 m",
    ]  # fmt: skip
    assert [shown(term) for term in found.without(1).terms][1] == "not incident"
    assert Filter() == parse_filter("a").without(0)


def test_every_field_and_flag_can_be_asked_of_any_row() -> None:
    rows = [
        row(),
        row(gpu=None),
        row(gpu=None, sample=None, link="unreachable"),
        row(gpu=lost_gpu(0)),
    ]

    for each in rows:
        for field in FIELDS.values():
            value = "1" if field.kind != "text" else "x"
            assert parse_filter(f"{field.name}={value}").truth(each) in (True, False, None)
        for name in FLAGS:
            assert parse_filter(name).truth(each) in (True, False, None)
