"""A run's code to a host without Python: the same promises by its shell, `tar` and `sha256sum`, with less comfort.

Every file is hashed there each time, one launch does not wait for another, and names that a shell reads as several
lines are refused. What is new is staged as a whole before the first file is touched.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cockpit.domain.code_files import CodePlan, shown
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import within
from cockpit.engine.code_pack import Hashed, Piece, changed, gathered, read_file
from cockpit.engine.code_sync import CodeSent, OnProgress, conflict_of
from cockpit.errors import LaunchFailed, LinkLost, ProtocolError
from cockpit.transport.base import HostTransport

LOOK_S: Final = 600.0
PLACE_S: Final = 600.0
WRITE_S: Final = 90.0
MAX_NOTES_BYTES: Final = 16 << 20
_NOTE: Final = re.compile(r"([0-9a-f]{64}|link) (.+)")
_HASHED: Final = re.compile(rb"([0-9a-f]{64}) [ *]\./(.*)")
_OURS: Final = ".cockpit-code"

_ENTER = """cd 2>/dev/null
mkdir -p -- {cwd} && cd -- {cwd} || exit 21
[ ! -L {ours} ] || exit 22
mkdir -m 700 {ours} 2>/dev/null
[ -d {ours} ] && [ -O {ours} ] && cd {ours} || exit 22
[ -f .gitignore ] || echo '*' > .gitignore
"""
_NOTES = "cat sent-{source}.txt placing-{source}.txt 2>/dev/null; exit 0"
_LOOK = """cd .. || exit 21
: > {ours}/list || exit 23
while IFS= read -r p; do
if [ -L "./$p" ]; then echo l
elif [ -d "./$p" ]; then echo d
elif [ -f "./$p" ]; then echo f; printf './%s\\000' "$p" >> {ours}/list
elif [ -e "./$p" ]; then echo o
else echo n
fi
done
echo hashes
[ -s {ours}/list ] || exit 0
xargs -0 sha256sum < {ours}/list
"""
_STAGE = "rm -rf stage && mkdir -m 700 stage && cd stage && umask 022 && exec tar -xof -"
_CHECK = "cd stage || exit 24\nfind . -type f -print0 | xargs -0 sha256sum"
_PLACING = "cat > placing-{source}.txt"
_PLACE = """kept={ours}/kept/$(date +%Y%m%d-%H%M%S)-$$
cd .. || exit 21
above() {{ case $1 in */*) up=${{1%/*}};; *) up=.;; esac; }}
while IFS= read -r line; do
p=${{line#??}}
case $line in
'K '*) above "$p"; mkdir -p -- "$kept/$up" && mv -- "./$p" "$kept/$p" || exit 25;;
'R '*) rm -f -- "./$p"; above "$p"
while [ "$up" != . ] && rmdir -- "./$up" 2>/dev/null; do above "$up"; done;;
'M '*) above "$p"; [ ! -L "./$p" ] || rm -f -- "./$p"
mkdir -p -- "./$up" && mv -f -- "{ours}/stage/$p" "./$p" || exit 25;;
esac
done
cd {ours} && mv -f placing-{source}.txt sent-{source}.txt && rm -rf stage list
"""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a path is there: n nothing, f a file with its hash, d a folder, l a link, o something else."""

    kind: str
    sha: str = ""


class PlainCode:
    def __init__(self, transport: HostTransport, plan: CodePlan) -> None:
        self._transport = transport
        self._plan = plan
        self._host = str(transport.host)

    async def send(self, files: Sequence[Hashed], progress: OnProgress) -> CodeSent:
        """Raises LaunchFailed, TransportError."""
        names = {_name(one): one for one in files}
        notes = await self._notes()
        seen = await self._look(names, set(notes))
        needed = [one for name, one in names.items() if not _is_there(one, seen[name], notes)]
        gone = [
            name
            for name in notes.keys() - names.keys()
            if seen[name].sha in notes[name] or (seen[name].kind == "l" and "link" in notes[name])
        ]
        kept = self._conflicts(needed, seen, notes, set(gone))
        total_bytes = sum(one.file.size for one in needed)
        progress(0, total_bytes)
        sent_bytes = await self._stage(needed, progress, total_bytes)
        await self._place(names, needed, gone, kept)
        return CodeSent(
            len(files), len(needed), total_bytes, sent_bytes, "tar" if needed else "",
            removed=len(gone), kept=len(kept),
        )  # fmt: skip

    # -- what is there --------------------------------------------------------------------

    async def _notes(self) -> dict[str, set[str]]:
        """What we put there, by name; a file may be as it was or as it was just being sent."""
        told = await self._run(_NOTES, b"", LOOK_S, MAX_NOTES_BYTES)
        notes: dict[str, set[str]] = {}
        for line in told.decode("utf-8", "surrogateescape").splitlines():
            if (found := _NOTE.fullmatch(line)) and _is_plain(found[2]):
                notes.setdefault(found[2], set()).add(found[1])
        return notes

    async def _look(self, names: dict[str, Hashed], noted: set[str]) -> dict[str, _Seen]:
        asked = sorted({each for name in names.keys() | noted for each in _with_parents(name)})
        lines = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
        most_bytes = 4096 + 200 * len(asked) + len(lines)
        told = await self._run(_LOOK, lines, LOOK_S, most_bytes)
        kinds, _mark, hashes = told.partition(b"hashes\n")
        shas = _shas(hashes)
        found_kinds = kinds.decode("ascii", "replace").split()
        if len(found_kinds) != len(asked):
            raise ProtocolError(host=self._host, why="code")
        return {
            name: _Seen(kind, shas.get(name.encode("utf-8", "surrogateescape"), ""))
            for name, kind in zip(asked, found_kinds, strict=True)
        }

    def _conflicts(
        self,
        needed: Sequence[Hashed],
        seen: dict[str, _Seen],
        notes: dict[str, set[str]],
        gone: set[str],
    ) -> list[str]:
        """Names that give way, where the profile lets them. Raises LaunchFailed where it does not."""
        found: dict[str, tuple[Hashed, str]] = {}
        for one in needed:
            name = _name(one)
            for parent in _with_parents(name)[:-1]:
                if seen[parent].kind not in "nd" and parent not in gone:
                    found.setdefault(parent, (one, "through"))
            here, known = seen[name], notes.get(name, set())
            if here.kind == "d":
                found.setdefault(name, (one, "folder"))
            elif here.kind != "n" and not (
                here.sha in known or (here.kind == "l" and "link" in known)
            ):
                found.setdefault(name, (one, "changed" if known else "not_ours"))
        if found and not self._plan.replaces:
            raise conflict_of(self._plan, self._host, list(found.values()), len(found))
        return sorted(found)

    # -- what goes there ------------------------------------------------------------------

    async def _stage(self, needed: Sequence[Hashed], progress: OnProgress, total_bytes: int) -> int:
        """All of it under its names; returns how many bytes went over."""
        if not needed:
            return 0
        channel = await self._transport.open(self._script(_STAGE))
        sent_bytes = 0
        try:
            pieces = _archive(Path(self._plan.root), needed)
            while (piece := await asyncio.to_thread(gathered, pieces)) is not None:
                await within(WRITE_S, channel.write(piece.data))
                sent_bytes += len(piece.data)
                progress(piece.done_bytes, total_bytes)
            await channel.write_eof()
            code = await within(LOOK_S, channel.wait())
            said = channel.stderr_tail()[-300:]
        except asyncio.TimeoutError:
            raise LinkLost(host=self._host, why="timeout") from None
        finally:
            await channel.close()
        if code != 0:
            raise self._failed(code, said)
        await self._check(needed)
        return sent_bytes

    async def _check(self, needed: Sequence[Hashed]) -> None:
        told = await self._run(_CHECK, b"", LOOK_S, 4096 + 5000 * len(needed))
        shas = _shas(told)
        for one in needed:
            if one.sha is not None and shas.get(one.file.path) != one.sha:
                raise changed(one.file)

    async def _place(
        self,
        names: dict[str, Hashed],
        needed: Sequence[Hashed],
        gone: Sequence[str],
        kept: Sequence[str],
    ) -> None:
        notes = "".join(f"{one.sha or 'link'} {name}\n" for name, one in names.items())
        await self._run(_PLACING, notes.encode("utf-8", "surrogateescape"), LOOK_S, 4096)
        steps = [f"R {name}" for name in gone] + [f"K {name}" for name in kept]
        steps += [f"M {_name(one)}" for one in needed]
        lines = "".join(f"{step}\n" for step in steps).encode("utf-8", "surrogateescape")
        await self._run(_PLACE, lines, PLACE_S, 4096)

    async def _run(self, part: str, stdin: bytes, limit_s: float, most_bytes: int) -> bytes:
        done = await self._transport.run(
            self._script(part), stdin=stdin, timeout_s=limit_s, limit=most_bytes
        )
        if done.truncated:
            raise ProtocolError(host=self._host, why="body")
        if done.exit_code != 0:
            raise self._failed(done.exit_code, done.stderr[-300:])
        return done.stdout

    def _script(self, part: str) -> bytes:
        given = self._plan.cwd
        cwd = "." if given == "~" else shlex.quote(given.removeprefix("~/"))
        words = {"cwd": cwd, "ours": _OURS, "source": self._plan.source}
        text = _ENTER.format(**words) + part.format(**words)
        return text.encode("utf-8", "surrogateescape")

    def _failed(self, code: int | None, said: bytes) -> LaunchFailed:
        text = safe_line(said.decode("utf-8", "replace"), 300)
        if "No space left" in text:
            return LaunchFailed("code_host_full", host=self._host, path=safe_line(self._plan.cwd))
        text = text or {22: f"{_OURS} is not ours alone"}.get(code or 0, f"exit code {code}")
        return LaunchFailed(
            "code_host_failed", host=self._host, path=safe_line(self._plan.cwd), text=text
        )


def _is_there(one: Hashed, here: _Seen, notes: dict[str, set[str]]) -> bool:
    """A link is not read there: one of ours is put anew."""
    return one.sha is not None and here.kind == "f" and here.sha == one.sha


def _shas(told: bytes) -> dict[bytes, str]:
    """What sha256sum said, by name."""
    lines = (_HASHED.fullmatch(line) for line in told.split(b"\n"))
    return {found[2]: found[1].decode() for found in lines if found}


def _name(one: Hashed) -> str:
    """Raises LaunchFailed for a name that cannot be told to a shell as a line, or that sha256sum spells otherwise."""
    name = one.file.path.decode("utf-8", "surrogateescape")
    if re.search(r"[\n\r\\]", name) or not _is_plain(name):
        raise LaunchFailed("code_name_odd", path=shown(one.file.path))
    return name


def _is_plain(name: str) -> bool:
    parts = name.split("/")
    return not {"", ".", ".."} & set(parts) and parts[0] != _OURS


def _with_parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _archive(root: Path, needed: Sequence[Hashed]) -> Iterator[Piece]:
    """A plain tar of the files under their own names."""
    done_bytes = 0
    for one in needed:
        info = tarfile.TarInfo(_name(one))
        info.mode = one.file.mode
        if one.file.link is not None:
            info.type = tarfile.SYMTYPE
            info.linkname = one.file.link.decode("utf-8", "surrogateescape")
        else:
            info.size = one.file.size
        yield Piece(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"), done_bytes)
        if one.file.link is None:
            for data in read_file(root, one.file, 0, info.size):
                done_bytes += len(data)
                yield Piece(data, done_bytes)
            yield Piece(b"\0" * (-info.size % tarfile.BLOCKSIZE), done_bytes)
    yield Piece(b"\0" * 2 * tarfile.BLOCKSIZE, done_bytes)
