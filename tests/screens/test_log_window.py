"""Following and reading: what is in view, and what stays still while lines arrive and go."""

from __future__ import annotations

from cockpit.widgets.log_index import AllLines
from cockpit.widgets.log_window import LogWindow
from tests.screens.logs import CountingLog


def window_on(log: CountingLog, height: int = 5, rows: dict[int, int] | None = None) -> LogWindow:
    window = LogWindow(AllLines(log), lambda number: (rows or {}).get(number, 1))
    window.height = height
    return window


def numbers(window: LogWindow) -> list[int]:
    return [number for number, _row in window.visible()]


def test_it_opens_at_the_end_and_follows() -> None:
    log = CountingLog(100)
    window = window_on(log)
    assert numbers(window) == [96, 97, 98, 99, 100]
    log.append("more")
    assert numbers(window) == [97, 98, 99, 100, 101]


def test_knowing_what_is_in_view_reads_no_line() -> None:
    log = CountingLog(100)
    window = window_on(log)
    window.scroll(-50)
    window.visible()
    assert log.read == []


def test_scrolling_up_stops_following_and_new_lines_move_nothing() -> None:
    log = CountingLog(100)
    window = window_on(log)
    window.scroll(-1)
    seen = numbers(window)
    for _ in range(50):
        log.append("new")
    assert not window.follow
    assert numbers(window) == seen == [95, 96, 97, 98, 99]


def test_reaching_the_last_line_follows_again() -> None:
    window = window_on(CountingLog(100))
    window.scroll(-3)
    window.scroll(2)
    assert not window.follow
    window.scroll(1)
    assert window.follow


def test_the_anchor_stays_when_older_lines_are_dropped() -> None:
    log = CountingLog(100)
    window = window_on(log)
    window.scroll(-40)
    seen = numbers(window)
    log.drop_oldest(30)
    assert numbers(window) == seen


def test_an_anchor_that_is_dropped_itself_gives_way_to_the_oldest_kept() -> None:
    log = CountingLog(100)
    window = window_on(log)
    window.to_start()
    log.drop_oldest(60)
    assert numbers(window) == [61, 62, 63, 64, 65]


def test_a_jump_lands_a_third_down_and_does_not_follow() -> None:
    log = CountingLog(100)
    window = window_on(log, height=9)
    window.show(50)
    assert numbers(window)[3] == 50
    window.show(100)
    log.append("new")
    assert not window.follow
    assert window.cursor == 100


def test_a_jump_to_a_line_in_view_moves_only_the_cursor() -> None:
    window = window_on(CountingLog(100), height=9)
    window.show(50)
    seen = numbers(window)
    window.show(51)
    assert (numbers(window), window.cursor) == (seen, 51)


def test_the_cursor_walks_through_the_view_and_then_scrolls_it() -> None:
    window = window_on(CountingLog(100), height=3)
    window.move_cursor(-1)
    assert (window.cursor, numbers(window)) == (99, [98, 99, 100])
    window.move_cursor(-2)
    assert (window.cursor, numbers(window)) == (97, [97, 98, 99])
    window.move_cursor(3)
    assert window.follow


def test_wrapped_lines_count_by_their_rows() -> None:
    window = window_on(CountingLog(4), height=3, rows={3: 2, 4: 2})
    assert window.visible() == [(3, 1), (4, 0), (4, 1)]
    window.scroll(-1)
    assert window.visible() == [(3, 0), (3, 1), (4, 0)]
    window.scroll(-1)
    assert window.visible() == [(2, 0), (3, 0), (3, 1)]


def test_a_line_taller_than_the_view_can_be_read_row_by_row() -> None:
    window = window_on(CountingLog(2), height=2, rows={2: 5})
    assert window.visible() == [(2, 3), (2, 4)]
    window.scroll(-2)
    assert window.visible() == [(2, 1), (2, 2)]


def test_a_short_log_fills_from_the_top() -> None:
    window = window_on(CountingLog(2), height=5)
    assert numbers(window) == [1, 2]
    window.scroll(-1)
    assert numbers(window) == [1, 2]


def test_nothing_to_show_is_no_trouble() -> None:
    window = window_on(CountingLog(0))
    window.scroll(-3)
    window.move_cursor(1)
    window.show(7)
    window.to_start()
    assert (window.visible(), window.cursor) == ([], 0)


def test_the_unterminated_last_line_is_a_line_of_its_own() -> None:
    log = CountingLog(3)
    log.open_text = " 41%|"
    window = window_on(log, height=2)
    assert numbers(window) == [3, 4]
