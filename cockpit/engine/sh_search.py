"""Work on whole logs by the tools of a host without Python: plain text by grep, lines by wc, a block at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final, Protocol

from cockpit.domain.models import HostName
from cockpit.domain.run_spec import Json
from cockpit.engine.sh_link import ShAnswer
from cockpit.errors import ProtocolError, RunError

BLOCK_BYTES: Final = 8 << 20
TEXT_BYTES: Final = 512


class Ask(Protocol):
    def __call__(self, op: str, *words: str) -> Awaitable[ShAnswer]: ...


async def sh_search(ask: Ask, host: HostName, fields: Mapping[str, Json]) -> dict[str, object]:
    """One block, answered as the agent in Python answers. Raises RunUnknown, RunError, LinkLost, ProtocolError."""
    run, offset = str(fields["run"]), fields["offset"]
    assert isinstance(offset, int)
    size = _number(await ask("read", run, "log", "0", "0"), "size", host)
    at = max(0, min(offset, size))
    left = fields.get("lines")
    if isinstance(left, int):
        return await _count(ask, host, run, at, size, left)
    if fields.get("regex") is True:
        raise RunError("pattern_needs_python", host=host, run=run)
    return await _find(ask, host, run, at, size, fields)


async def _find(
    ask: Ask, host: HostName, run: str, at: int, size: int, fields: Mapping[str, Json]
) -> dict[str, object]:
    text = str(fields["text"]).encode("utf-8", "surrogateescape")
    if not 0 < len(text) <= TEXT_BYTES or b"\n" in text or b"\0" in text:
        raise RunError("run", host=host, why="bad_request", op="search", detail=None)
    is_back = fields.get("backward") is True
    start = max(0, at - BLOCK_BYTES) if is_back else at
    end = at if is_back else min(size, at + BLOCK_BYTES)
    length = end - start + len(text) - 1
    words = ("last" if is_back else "first", "any" if fields.get("ignore_case") else "exact")
    octal = "".join(f"\\0{byte:03o}" for byte in text)
    told = await ask("find", run, str(start), str(length), *words, octal)
    answer: dict[str, object] = {"at": start if is_back else end, "size": size}
    if told.last("hit") is not None:
        return {**answer, "hit": _number(told, "hit", host)}
    is_through = start == 0 if is_back else end >= size
    return {**answer, "through": True} if is_through else answer


async def _count(
    ask: Ask, host: HostName, run: str, at: int, size: int, left: int
) -> dict[str, object]:
    if not left:
        return {"at": at, "size": size, "hit": at, "left": 0, "passed": 0}
    end = min(size, at + BLOCK_BYTES)
    told = await ask("lines", run, str(at), str(end - at), str(left))
    answer: dict[str, object] = {"at": end, "size": size, "left": 0, "passed": 0}
    if told.last("hit") is not None:
        return {**answer, "hit": _number(told, "hit", host)}
    answer["left"] = max(0, left - _number(told, "lines", host))
    return {**answer, "through": True} if end >= size else answer


def _number(told: ShAnswer, key: str, host: HostName) -> int:
    text = told.last(key) or ""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ProtocolError(host=host, why="search")
    return int(text)
