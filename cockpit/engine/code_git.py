"""What git says of a folder: its list of files, where it stands, what was changed. Bounded in time and size."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cockpit.domain.code_files import GitState
from cockpit.domain.text import safe_line
from cockpit.errors import LaunchFailed

LIST_S = 60.0
ASK_S = 20.0
MAX_LIST_BYTES = 64 << 20
MAX_DIFF_BYTES = 1 << 20
MAX_DEPTH = 8
"""Of repositories inside repositories."""

_CAREFUL = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Output:
    data: bytes
    is_cut: bool


def find_repository(folder: Path) -> Path | None:
    """The working tree that the folder is in, git's help or not."""
    for each in (folder, *folder.parents):
        if (each / ".git").exists():
            return each
    return None


def list_files(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """Git's own list below `folder`, repositories inside it included, and submodules that are not here.

    Raises LaunchFailed.
    """
    found: list[bytes] = []
    missing: list[bytes] = []
    for path, is_there in _listed(folder, b"", 0):
        (found if is_there else missing).append(path)
    return sorted(set(found)), sorted(set(missing))


def _listed(folder: Path, prefix: bytes, depth: int) -> Iterator[tuple[bytes, bool]]:
    """(path, True) of each file; (path, False) of a submodule that was not checked out."""
    told = _git(folder, "ls-files", "-z", "-co", "--exclude-standard", limit=MAX_LIST_BYTES)
    if told.is_cut:
        raise LaunchFailed("code_too_many", folder=safe_line(str(folder)))
    for name in told.data.split(b"\0"):
        inside = folder / os.fsdecode(name)
        if not name or os.path.islink(inside) or not os.path.isdir(inside):
            if name:
                yield prefix + name, True
            continue
        name = name.rstrip(b"/")
        if (inside / ".git").exists() and depth < MAX_DEPTH:
            yield from _listed(inside, prefix + name + b"/", depth + 1)
        else:
            yield prefix + name, False


def state_of(folder: Path) -> GitState:
    """Raises LaunchFailed."""
    head = _git(folder, "rev-parse", "--verify", "-q", "HEAD", may_fail=True).data.strip()
    branch = _git(folder, "symbolic-ref", "--short", "-q", "HEAD", may_fail=True).data.strip()
    changed = _git(folder, "status", "--porcelain", "-z", "--", ".", limit=4096)
    return GitState(
        commit=safe_line(head.decode("ascii", "replace"), 64) or None,
        branch=safe_line(os.fsdecode(branch), 200) or None,
        is_dirty=bool(changed.data),
    )


def diff_of(folder: Path, has_commit: bool) -> Output:
    """What the working tree below `folder` has that its commit has not; new files by name. Raises LaunchFailed."""
    parts = [_git(folder, "status", "--porcelain", "--", ".", limit=MAX_DIFF_BYTES // 8)]
    if has_commit:
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")
        parts.append(_git(folder, "diff", *options, "HEAD", "--", ".", limit=MAX_DIFF_BYTES))
    data = b"\n".join(part.data for part in parts)
    is_cut = any(part.is_cut for part in parts) or len(data) > MAX_DIFF_BYTES
    return Output(data[:MAX_DIFF_BYTES], is_cut)


def origin_of(folder: Path) -> bytes:
    """The address that the repository came from; empty when it has none."""
    return _git(folder, "config", "--get", "remote.origin.url", may_fail=True).data.strip()


def _git(
    folder: Path,
    *args: str,
    limit: int = 64 * 1024,
    may_fail: bool = False,
) -> Output:
    """At most `limit` bytes of what git prints. Raises LaunchFailed."""
    git = shutil.which("git")
    if git is None:
        raise LaunchFailed("code_git_missing", folder=safe_line(str(folder)))
    limit_s = LIST_S if limit > MAX_DIFF_BYTES else ASK_S
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [git, *_CAREFUL, *args], cwd=folder, env=_environ(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        except OSError as error:
            raise _failed(folder, error.strerror or str(error)) from error
        data, is_late = _read(process, limit + 1, limit_s)
        if is_late:
            raise _failed(folder, f"git {args[0]} took more than {limit_s:g} s")
        is_cut = len(data) > limit
        if process.returncode and not is_cut and not may_fail:
            errors.seek(0)
            raise _failed(folder, os.fsdecode(errors.read(2000)))
        return Output(b"" if process.returncode and may_fail else data[:limit], is_cut)


def _read(process: subprocess.Popen[bytes], limit: int, limit_s: float) -> tuple[bytes, bool]:
    """(what was printed, whether it was ended for taking too long)."""
    assert process.stdout is not None
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        data = process.stdout.read(limit)
        if len(data) >= limit:
            process.kill()
    finally:
        timer.cancel()
        process.stdout.close()
        process.wait()
    return data, late.is_set()


def _failed(folder: Path, said: str) -> LaunchFailed:
    lines = [safe_line(line, 200) for line in said.splitlines() if line.strip()]
    why = "dubious" if "dubious ownership" in said else "failed"
    return LaunchFailed(
        "code_git_failed", why=why, folder=safe_line(str(folder)), said=" ".join(lines[:2])
    )


def _environ() -> dict[str, str]:
    """Ours, without what a hook or an alias of git may have left in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
