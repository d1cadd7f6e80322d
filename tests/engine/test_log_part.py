"""Parts of a log follow each other without a gap or a repeat, from the host and from the copy here."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from cockpit.domain.masking import Masker
from cockpit.engine.agent_replies import LogBytes
from cockpit.engine.api import LogPart
from cockpit.engine.log_part import PAGE_BYTES, CopySource, Gap, read_part

SECRET = "sekret-ABCDEFGHIJ"


class Bytes:
    """A source over bytes in memory, which notes how much is read of it."""

    def __init__(self, data: bytes, gaps: Sequence[Gap] = ()) -> None:
        self.data = data
        self.read_bytes = 0
        self._gaps = gaps

    async def gaps(self) -> Sequence[Gap]:
        return self._gaps

    async def read(self, offset: int, length: int) -> LogBytes:
        piece = self.data[offset : offset + length]
        self.read_bytes += len(piece)
        return LogBytes(offset, piece, len(self.data))


def mixed(seed: int) -> bytes:
    """Short lines, long ones, one longer than a page, and no newline at the end."""
    dice = random.Random(seed)
    lines = [b"x" * dice.choice((0, 5, 80, 3000)) + b"%d" % n for n in range(300)]
    lines[150] = b"L" * (PAGE_BYTES * 2 + 17)
    return b"\n".join(lines)


def covered(parts: Sequence[LogPart]) -> bool:
    return all(one.end == other.start for one, other in zip(parts, parts[1:], strict=False))


async def pages(
    source: Bytes, at: int, *, older: bool, masker: Masker | None = None
) -> list[LogPart]:
    masker = masker or Masker()
    found: list[LogPart] = []
    while True:
        part = await read_part(source, at, "older" if older else "newer", masker)
        if not part.lines:
            return found
        found.append(part)
        at = part.start if older else part.end
        if at == (0 if older else len(source.data)):
            return found


@pytest.mark.parametrize("seed", range(3))
async def test_pages_from_both_ends_are_the_whole_log(seed: int) -> None:
    source = Bytes(mixed(seed))
    size = len(source.data)
    forth = await pages(source, 0, older=False)
    back = (await pages(source, size, older=True))[::-1]
    for parts in (forth, back):
        assert parts[0].start == 0 and parts[-1].end == size and covered(parts)
        assert all(0 < part.end - part.start <= PAGE_BYTES for part in parts)
        offsets = [line.offset for part in parts for line in part.lines]
        assert offsets == sorted(set(offsets))
        starts = {0, *(n + 1 for n, byte in enumerate(source.data) if byte == 10)}
        long = source.data.index(b"L")
        odd = [at for at in offsets if at not in starts]
        assert all(long < at < long + PAGE_BYTES * 2 + 17 for at in odd), (
            "only a line too long is cut"
        )
        assert starts - set(offsets) <= {size}


@pytest.mark.parametrize("seed", range(3))
async def test_around_any_place_is_its_line_and_the_pages_go_on_from_there(seed: int) -> None:
    source = Bytes(mixed(seed))
    dice = random.Random(seed)
    for _ in range(40):
        offset = dice.randrange(len(source.data))
        part = await read_part(source, offset, "around", Masker())
        assert part.start <= offset < part.end
        line = [one for one in part.lines if one.offset <= offset][-1]
        assert b"\n" not in source.data[line.offset : offset]
        if part.start:
            assert (await read_part(source, part.start, "older", Masker())).end == part.start
        if part.end < len(source.data):
            assert (await read_part(source, part.end, "newer", Masker())).start == part.end


async def test_the_end_of_a_log_is_what_is_around_a_byte_behind_it() -> None:
    source = Bytes(b"one\ntwo")
    part = await read_part(source, 1 << 61, "around", Masker())
    assert [line.text for line in part.lines] == ["one", "two"] and part.end == 7
    assert (await read_part(source, 7, "newer", Masker())).lines == ()
    assert (await read_part(Bytes(b""), 1 << 61, "around", Masker())).lines == ()


async def test_a_gap_is_a_part_of_one_line_and_its_zeros_are_never_shown() -> None:
    head, tail = b"head\n" * 1000, b"st of a line\n" + b"tail\n" * 1000
    size = 40 << 20
    source = Bytes(head + bytes(size) + tail, ((len(head), len(head) + size, "dropped"),))
    forth = await pages(source, 0, older=False)
    back = (await pages(source, len(source.data), older=True))[::-1]
    for parts in (forth, back):
        assert covered(parts) and parts[0].start == 0 and parts[-1].end == len(source.data)
        (gap,) = [part for part in parts if part.start == len(head)]
        assert gap.end == len(head) + size and "40.0 MiB are not on the host" in gap.lines[0].text
        assert not any(
            "\0" in line.text or "." * 9 in line.text for part in parts for line in part.lines
        )
    within = await read_part(source, len(head) + 5000, "around", Masker())
    assert (within.start, within.end) == (len(head), len(head) + size)
    assert source.read_bytes < 400_000, "nothing of it is fetched"


async def test_a_secret_across_an_edge_of_a_page_is_covered() -> None:
    """A log without newlines, full of one secret: whatever pages it is cut into, they show none of it."""
    source, masker = Bytes(SECRET.encode() * 12_000), Masker([SECRET])
    for older in (False, True):
        start = len(source.data) if older else 0
        parts = await pages(source, start, older=older, masker=masker)
        assert len(parts) > 3
        assert all(
            set(line.text.split(" ")[0]) <= set("*.") for part in parts for line in part.lines
        )


async def test_the_copy_here_says_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "log"
    data = b"".join(b"%07d\n" % n for n in range(30_000))
    with path.open("wb") as file:
        file.write(data[:100_000])
        file.seek(160_000)
        file.write(data[160_000:])
    (tmp_path / "gaps").write_text("\n100000 160000 skipped\n")
    copy = CopySource(path)
    assert copy.holds(0, 100_000) and copy.holds(160_000, len(data))
    assert not copy.holds(99_000, 101_000) and not copy.holds(0, len(data) + 1)
    part = await read_part(copy, 99_999, "around", Masker())
    assert part.end == 100_000 and part.lines[-1].text == "0012499"
    assert "skipped to keep up" in (await read_part(copy, 100_000, "newer", Masker())).lines[0].text
    with pytest.raises(OSError):
        CopySource(tmp_path / "none")
    os.symlink(path, tmp_path / "link")
    with pytest.raises(OSError):
        await CopySource(tmp_path / "link").read(0, 1)
