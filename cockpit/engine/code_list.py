"""The files of a run's code: git's own list where there is git, else all that is there, less what is ignored."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cockpit.domain.code_files import SHOWN_AT_MOST, CodeFile, CodePlan, GitState, LeftOut, shown
from cockpit.domain.text import safe_line
from cockpit.engine import code_git
from cockpit.engine.code_ignore import IgnoreRules
from cockpit.errors import LaunchFailed, ProfileError

MOST_FILES = 500_000
"""Beyond it nothing is listed to the end, whatever a profile allows."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class CodeWish:
    """What a profile says of its code."""

    root: Path
    cwd: str
    by_git: bool = True
    skip: tuple[Path, ...] = ()
    """Folders of ours that may lie in it: what was fetched before."""
    secret: Path | None = None
    """A file whose values travel on stdin, and never as a file."""
    max_mib: int = 1024
    max_files: int = 20_000
    replaces: bool = False


def plan_code(wish: CodeWish) -> CodePlan:
    """What would be sent. It reads names and sizes, and takes a while. Raises LaunchFailed, ProfileError."""
    root = _checked(wish.root)
    top = code_git.find_repository(root) if wish.by_git else None
    tally = _Tally()
    paths = _by_git(root, top, tally) if top is not None else _by_walk(root, tally)
    skip = tuple(_below(each, root) for each in wish.skip)
    secret = b"" if wish.secret is None else _below(wish.secret, root)
    if secret and secret in paths:
        tally.add("secret", secret)
    kept = [path for path in paths if path != secret and not _is_in(path, skip)]
    files = tuple(file for path in kept if (file := _look(root, path, tally)) is not None)
    if not files:
        raise ProfileError("code_empty", folder=safe_line(str(root)))
    return CodePlan(
        root=str(root),
        cwd=wish.cwd,
        source=_source(root, top),
        files=files,
        by_git=top is not None,
        git=None if top is None else _state(root),
        left_out={why: tuple(names) for why, names in tally.names.items()},
        left_out_count=dict(tally.counts),
        max_bytes=wish.max_mib * MIB,
        max_files=wish.max_files,
        replaces=wish.replaces,
    )


class _Tally:
    """What is left out, and why: all are counted, some named."""

    def __init__(self) -> None:
        self.counts: Counter[LeftOut] = Counter()
        self.names: dict[LeftOut, list[str]] = {}

    def add(self, why: LeftOut, path: bytes) -> None:
        self.counts[why] += 1
        names = self.names.setdefault(why, [])
        if len(names) < SHOWN_AT_MOST:
            names.append(shown(path))


def _checked(folder: Path) -> Path:
    try:
        root = folder.resolve(strict=True)
    except OSError as error:
        raise ProfileError("code_missing", folder=safe_line(str(folder))) from error
    if not root.is_dir():
        raise ProfileError("code_missing", folder=safe_line(str(folder)))
    if root in (Path(root.anchor), Path.home()):
        raise ProfileError("code_is_home", folder=safe_line(str(root)))
    return root


def _by_git(root: Path, top: Path, tally: _Tally) -> list[bytes]:
    rules = IgnoreRules(root, top=top)
    listed, missing = code_git.list_files(root)
    for path in missing:
        tally.add("empty_submodule", path)
    kept = []
    for path in listed:
        if rules.leaves_out(os.fsdecode(path)):
            tally.add("ignored", path)
        else:
            kept.append(path)
    return kept


def _by_walk(root: Path, tally: _Tally) -> list[bytes]:
    rules = IgnoreRules(root, defaults=True)
    found = []
    for path in _walked(root, (), rules, tally):
        found.append(path)
        if len(found) > MOST_FILES:
            raise LaunchFailed("code_too_many", folder=safe_line(str(root)))
    return sorted(found)


def _walked(
    root: Path, parts: tuple[str, ...], rules: IgnoreRules, tally: _Tally
) -> Iterator[bytes]:
    """Paths of everything that is no folder. Links are not followed."""
    waiting = [parts]
    while waiting:
        parts = waiting.pop()
        try:
            entries = list(os.scandir(root.joinpath(*parts)))
        except OSError as error:
            raise _unreadable(root.joinpath(*parts), error) from error
        for entry in entries:
            path = "/".join((*parts, entry.name))
            if entry.is_dir(follow_symlinks=False):
                if rules.leaves_out_folder((*parts, entry.name)):
                    tally.add("ignored", os.fsencode(path + "/"))
                else:
                    waiting.append((*parts, entry.name))
            elif rules.leaves_out(path):
                tally.add("ignored", os.fsencode(path))
            else:
                yield os.fsencode(path)


def _look(root: Path, path: bytes, tally: _Tally) -> CodeFile | None:
    """None for what is gone, and for what cannot be sent."""
    full = os.path.join(os.fsencode(root), path)
    try:
        about = os.lstat(full)
        link = os.readlink(full) if stat.S_ISLNK(about.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None  # deleted and still tracked
    except OSError as error:
        raise _unreadable(root / os.fsdecode(path), error) from error
    if link is not None:
        if _leads_out(root, path, link):
            tally.add("link_outside", path)
            return None
        return CodeFile(path, 0, 0o777, link)
    if not stat.S_ISREG(about.st_mode):
        tally.add("special", path)
        return None
    return CodeFile(path, about.st_size, stat.S_IMODE(about.st_mode) & 0o777)


def _leads_out(root: Path, path: bytes, link: bytes) -> bool:
    """By its words, and by where it leads here: on the host it would lead to something else."""
    if link.startswith(b"/"):
        return True
    lexical = os.path.normpath(os.path.join(os.path.dirname(path), link))
    if lexical == b".." or lexical.startswith(b"../"):
        return True
    real = os.path.realpath(os.path.join(os.fsencode(root), path))
    inside = os.fsencode(root)
    return real != inside and not real.startswith(inside.rstrip(b"/") + b"/")


def _state(root: Path) -> GitState:
    return code_git.state_of(root)


def _source(root: Path, top: Path | None) -> str:
    """The same for the same project, on whichever computer it is: by its origin, else by its place here."""
    origin = code_git.origin_of(root) if top is not None else b""
    within = os.fsencode(root.relative_to(top)) if top is not None else b""
    place = origin + b"\0" + within if origin else os.fsencode(f"{platform.node()}\0{root}")
    return hashlib.sha256(place).hexdigest()[:24]


def _below(folder: Path, root: Path) -> bytes:
    """The folder as a path below root; empty when it is elsewhere."""
    full = Path(os.path.realpath(folder))
    return os.fsencode(full.relative_to(root)) if full.is_relative_to(root) else b""


def _is_in(path: bytes, folders: Iterable[bytes]) -> bool:
    return any(folder and path.startswith(folder + b"/") for folder in folders)


def _unreadable(path: Path, error: OSError) -> LaunchFailed:
    return LaunchFailed(
        "code_unreadable", path=safe_line(str(path)), text=error.strerror or str(error)
    )
