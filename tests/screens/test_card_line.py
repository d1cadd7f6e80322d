"""One card in one line: what goes first when space is short, and what is not known."""

from __future__ import annotations

import pytest

from cockpit.domain.models import GpuSample
from cockpit.widgets.card_line import NOBODY, Holder, choose_columns, draw_card
from cockpit.widgets.drawing import Line
from cockpit.widgets.look import Look
from tests.builders.samples import gpu, h100, lost_gpu, process

LOOK = Look()


def drawn(card: GpuSample, width: int = 100, holder: Holder = NOBODY) -> str:
    line = Line(LOOK.text)
    draw_card(line, card, None, holder, choose_columns(width, 0, 10), LOOK, LOOK.fresh)
    return line.plain


def test_columns_leave_in_the_agreed_order() -> None:
    gone = []
    for width in range(140, 40, -1):
        columns = choose_columns(width, 12, 10)
        here = {
            "power": columns.power, "temp": columns.temp, "spark": columns.spark, "user": columns.user,
        }  # fmt: skip
        gone += [name for name, there in here.items() if not there and name not in gone]

    assert gone == ["power", "temp", "spark", "user"]


@pytest.mark.parametrize("width", range(46, 200, 7))
def test_a_line_is_never_wider_than_its_place(width: int) -> None:
    columns = choose_columns(width, 12, 12)
    line = Line(LOOK.text).pad_to(1 + columns.host)
    long = process(1, name="n" * 99, user="u" * 99)
    card = h100(
        0,
        mem_used_mib=140_000,
        mem_total_mib=143_771,
        power_w=1000,
        power_limit_w=1000,
        processes=(long,),
    )
    draw_card(line, card, None, Holder("r" * 90, "fatal"), columns, LOOK, LOOK.fresh)

    assert line.cells <= width


def test_what_is_not_known_is_never_zero() -> None:
    text = drawn(gpu(util_pct=None, mem_used_mib=None, temp_c=None, power_w=None), 140)

    assert text.count("n/a") == 5
    assert "0%" not in text and "0.0/" not in text


def test_a_lost_card_says_so_in_the_place_of_its_numbers() -> None:
    assert "✗ GPU is lost" in drawn(lost_gpu(3)) and "needs a reset" in drawn(lost_gpu(3))
    assert "GPU is lost: needs a reset" in drawn(lost_gpu(3), 60)


def test_who_holds_it() -> None:
    mine = gpu(processes=(process(1, user="root", name="python"), process(2, mem_used_mib=5)))

    assert "qwen-lora ✗" in drawn(mine, holder=Holder("qwen-lora", "fatal"))
    assert "root:python +1" in drawn(mine)
    assert "free" in drawn(gpu(util_pct=0, mem_used_mib=3))
    assert "in use" in drawn(gpu())


def test_heat_is_marked_and_a_power_cap_is_not() -> None:
    assert "!64°C" in drawn(gpu(throttle=("thermal_sw",)), 140)
    assert "!64°C" not in drawn(gpu(throttle=("power_cap",)), 140)


def test_an_error_beside_numbers_is_shown_with_them() -> None:
    text = drawn(gpu(error="Unknown Error", error_code="unknown"), 140)

    assert "97%" in text and "Unknown Error" in text
