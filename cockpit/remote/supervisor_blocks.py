"""The parts of a file that hold bytes: what was never written, or was given back, is passed over at once."""

import errno
import os

SLICE_BYTES = 1 << 20


def next_data(fd: int, at: int, size: int) -> int:
    """The first place from `at` on that may hold bytes; `size` when there is none."""
    try:
        return min(size, max(at, os.lseek(fd, at, os.SEEK_DATA)))
    except OSError as error:
        return size if error.errno == errno.ENXIO else at  # a file system that does not tell


def slice_behind(fd: int, at: int, size: int) -> "tuple[int, int]":
    """The next slice to be read from `at` on; an empty one at the end."""
    start = next_data(fd, at, size)
    return start, min(size, start + SLICE_BYTES)


def slice_before(fd: int, at: int) -> "tuple[int, int]":
    """The last slice before `at` that may hold bytes; an empty one at 0 when there is none.

    Nobody tells where data ends before a place: steps back over nothing grow, and shrink where there is some.
    """
    width = SLICE_BYTES
    while at > 0 and _is_empty(fd, max(0, at - width), at):
        at, width = max(0, at - width), width * 2
    while width > SLICE_BYTES:
        width //= 2
        if _is_empty(fd, max(0, at - width), at):
            at = max(0, at - width)
    return max(0, at - SLICE_BYTES), at


def _is_empty(fd: int, start: int, end: int) -> bool:
    return next_data(fd, start, end) >= end
