"""What is kept of the code that a run had: where its repository stood, and what was changed against that."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.paths import Home, ensure_private_dir
from cockpit.domain.code_files import CWD_NOTE, CodePlan
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.engine import code_git
from cockpit.engine.mirror import mirror_path
from cockpit.errors import StorageError

DIFF_NAME = "code.diff"


@dataclass(frozen=True, slots=True)
class CodeRecord:
    """Beside the run's mirror lies `diff`, its secrets covered; its hash goes along with the run."""

    notes: Mapping[str, str]
    diff: bytes | None


def record_of(plan: CodePlan, tree_hash: str) -> CodeRecord:
    """Raises LaunchFailed."""
    notes = {"code_hash": tree_hash, "code_files": str(plan.count), CWD_NOTE: plan.cwd}
    git = plan.git
    if git is None:
        return CodeRecord(notes, None)
    notes["git_dirty"] = "yes" if git.is_dirty else "no"
    if git.commit is not None:
        notes["git_commit"] = git.commit
    if git.branch is not None:
        notes["git_branch"] = git.branch
    if not git.is_dirty:
        return CodeRecord(notes, None)
    diff = code_git.diff_of(Path(plan.root), git.commit is not None)
    if diff.is_cut:
        notes["code_diff_cut"] = "yes"
    return CodeRecord(notes, diff.data)


def keep_diff(
    home: Home, host: HostName, run: RunId, record: CodeRecord, masker: Masker
) -> Mapping[str, str]:
    """Write it where it can be found again; returns the notes with its hash. Raises StorageError."""
    if record.diff is None:
        return record.notes
    data = masker.masked(record.diff)
    path = mirror_path(home, host, run).with_name(DIFF_NAME)
    for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
        ensure_private_dir(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise StorageError(path=str(path), why=error.strerror or str(error)) from error
    return {**record.notes, "code_diff": hashlib.sha256(data).hexdigest()}
