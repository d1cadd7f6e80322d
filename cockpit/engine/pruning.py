"""What of NVIDIA's pynvml.py a program needs: its own text without the definitions nobody calls.

The binding has eight thousand lines, and loading them all costs a host four times what Python
itself does. Definitions and constants are kept whole or dropped whole; nothing is rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_NAME: Final = re.compile(rb"[A-Za-z_]\w*")
_DEFINES: Final = re.compile(
    rb"(?:@[^\n]*\n)*(?:def|class)[ \t]+([A-Za-z_]\w*)|([A-Za-z_]\w*)[ \t]*=(?!=)"
)
_IMPORTS: Final = re.compile(rb"(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([\w., \t]+)\n")
_ALWAYS: Final = (b"NVML_ERROR_", b"NVML_SUCCESS")
"""Error classes are made from whatever constants are there by these names."""
_CLOSING: Final = b" \t\r\n)]}"


def pruned(source: bytes, roots: Iterable[str]) -> bytes:
    """The part of `source` that `roots` need; all of it when the part would not compile."""
    blocks = _blocks(source)
    kept = _reachable(blocks, {root.encode() for root in roots})
    text = b"".join(blocks[place] for place in kept)
    used = set(_NAME.findall(_IMPORTS.sub(b"", text)))
    text = b"".join(blocks[place] for place in kept if not _unused_import(blocks[place], used))
    try:
        compile(text, "pynvml", "exec")
    except (SyntaxError, ValueError):
        return source
    return text


def nvml_names(source: bytes) -> set[str]:
    """The names of the binding that a program mentions."""
    return {name.decode() for name in _NAME.findall(source) if name[:4].lower() == b"nvml"}


def _blocks(source: bytes) -> list[bytes]:
    """Top-level statements, each with its decorators and its indented body."""
    blocks: list[list[bytes]] = [[]]
    for line in source.splitlines(keepends=True):
        block = blocks[-1]
        if block and line[:1] not in _CLOSING and block[-1][:1] != b"@":
            blocks.append([line])
        else:
            block.append(line)
    return [b"".join(block) for block in blocks]


def _reachable(blocks: list[bytes], roots: set[bytes]) -> list[int]:
    """Places of the blocks that define what the roots need, and of those that define nothing."""
    kept: set[int] = set()
    defined: dict[bytes, list[int]] = {}
    wanted = list(roots)
    for place, block in enumerate(blocks):
        match = _DEFINES.match(block)
        name = (match[1] or match[2]) if match else None
        if name is None or name.startswith(_ALWAYS):
            kept.add(place)
            wanted += _NAME.findall(block) if block[:1] != b"#" else ()
        else:
            defined.setdefault(name, []).append(place)
    seen: set[bytes] = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for place in defined.get(name, ()):
            kept.add(place)
            wanted += _NAME.findall(blocks[place])
    return sorted(kept)


def _unused_import(block: bytes, used: set[bytes]) -> bool:
    match = _IMPORTS.fullmatch(block.strip() + b"\n")
    if match is None:
        return False
    names = [name.split()[-1].split(b".")[0] for name in match[1].split(b",") if name.strip()]
    return not any(name in used for name in names)
