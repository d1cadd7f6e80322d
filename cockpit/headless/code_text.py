"""The code of a launch plan, for `--dry-run`: what would be sent, what is large, what stays here."""

from __future__ import annotations

from cockpit.domain.code_files import CodePlan, shown
from cockpit.domain.units import bytes_text

NAMES_IN_TEXT = 200
NAMES_IN_JSON = 20_000


def code_fields(code: CodePlan | None) -> dict[str, object] | None:
    if code is None:
        return None
    git = code.git
    return {
        "folder": code.root,
        "to": code.cwd,
        "files": code.count,
        "bytes": code.total_bytes,
        "largest": [{"path": name, "bytes": size} for name, size in code.largest],
        "names": [shown(file.path) for file in code.files[:NAMES_IN_JSON]],
        "left_out": {
            why: {"count": code.left_out_count.get(why, 0), "names": list(names)}
            for why, names in code.left_out.items()
        },
        "git_commit": None if git is None else git.commit,
        "git_branch": None if git is None else git.branch,
        "git_dirty": None if git is None else git.is_dirty,
        "too_large": code.is_too_large,
    }


def code_rows(code: CodePlan | None) -> list[tuple[str, str]]:
    """Rows of the table that a person reads."""
    if code is None:
        return []
    rows = [
        ("code", f"{code.count} files, {bytes_text(code.total_bytes)}: {code.root} -> {code.cwd}")
    ]
    if (git := code.git) is not None:
        dirty = ", with changes" if git.is_dirty else ""
        rows.append(
            ("git", f"{(git.commit or 'no commit')[:12]} on {git.branch or 'no branch'}{dirty}")
        )
    largest = (f"{name} {bytes_text(size)}" for name, size in code.largest)
    rows.append(("largest", ", ".join(largest)))
    for why, names in code.left_out.items():
        count = code.left_out_count.get(why, 0)
        more = "" if count <= len(names) else f", and {count - len(names)} more"
        rows.append(("not sent", f"{why.replace('_', ' ')}: {', '.join(names)}{more}"))
    return rows


def code_names(code: CodePlan | None) -> list[str]:
    """The files by name, as far as a person reads."""
    if code is None:
        return []
    lines = ["files to send:", *(f"  {shown(file.path)}" for file in code.files[:NAMES_IN_TEXT])]
    if code.count > NAMES_IN_TEXT:
        lines.append(f"  and {code.count - NAMES_IN_TEXT} more")
    return [*lines, ""]
