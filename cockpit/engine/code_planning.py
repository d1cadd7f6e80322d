"""A launch plan with the code that it would send: listed here, nothing read or sent yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.domain.code_files import CWD_NOTE, CodePlan, LeftOut
from cockpit.domain.globs import is_inside
from cockpit.domain.runs import RunView
from cockpit.domain.units import bytes_text
from cockpit.engine.api import Check, LaunchPlan
from cockpit.engine.bounds import within
from cockpit.engine.code_list import CodeWish, plan_code
from cockpit.engine.run_secrets import env_file_of
from cockpit.errors import CockpitError, Fact, LaunchFailed
from cockpit.transport.own_thread import in_own_thread

if TYPE_CHECKING:
    from cockpit.config.profile import Profile

LIST_LIMIT_S = 90.0
"""Above git's own limit; a network folder may hang."""
NAMED = 3

_LEFT_OUT: dict[LeftOut, str] = {
    "link_outside": "code_links_left_out",
    "special": "code_special_left_out",
    "secret": "code_secret_left_out",
    "empty_submodule": "code_submodule_empty",
}


async def with_code(plan: LaunchPlan, runs: Iterable[RunView]) -> LaunchPlan:
    """The plan with its `code`; what cannot be listed speaks against the launch. `runs` are those of its host."""
    plan = replace(plan, checks=(*plan.checks, *fetch_checks(plan.profile)))
    wish = code_wish(plan.profile, plan.cwd)
    if wish is None:
        return plan
    plan = replace(plan, checks=(*plan.checks, *_shared_folder(plan, runs)))
    try:
        code = await within(LIST_LIMIT_S, in_own_thread(plan_code, wish))
    except asyncio.TimeoutError:
        late = LaunchFailed("code_slow", folder=str(wish.root), limit_s=int(LIST_LIMIT_S))
        return replace(plan, checks=(*plan.checks, _blocked(late)))
    except CockpitError as error:
        return replace(plan, checks=(*plan.checks, _blocked(error)))
    return replace(plan, code=code, checks=(*plan.checks, *code_checks(code)))


def fetch_checks(profile: Profile) -> Iterator[Check]:
    """Results are looked for below the working folder and nowhere else."""
    outside = [
        glob for glob in (profile.fetch.globs if profile.fetch else ()) if not is_inside(glob)
    ]
    if outside:
        yield Check("fetch_glob_outside", "blocked", {"globs": ", ".join(outside)})


def _shared_folder(plan: LaunchPlan, runs: Iterable[RunView]) -> Iterator[Check]:
    """What is sent replaces files that a run reads from there; one that loads them later gets the new ones."""
    names = [
        view.run
        for view in runs
        if view.host == plan.host and not view.ended and dict(view.notes).get(CWD_NOTE) == plan.cwd
    ]
    if names:
        facts = {"runs": ", ".join(names[:NAMED]), "path": plan.cwd}
        yield Check("code_shared_folder", "warning", dict(facts))


def code_wish(profile: Profile, cwd: str) -> CodeWish | None:
    """What the profile says of its code, paths of this computer made whole; None when it sends none."""
    table = profile.code
    if table is None:
        return None
    fetched = () if profile.fetch is None else (local_path(profile, profile.fetch.into),)
    return CodeWish(
        root=local_path(profile, table.path),
        cwd=cwd,
        by_git=table.git,
        skip=fetched,
        secret=env_file_of(profile),
        max_mib=table.max_size_mib,
        max_files=table.max_files,
        replaces=table.on_conflict == "replace",
    )


def local_path(profile: Profile, text: str) -> Path:
    """A path of this computer that a profile names: beside the profile unless it is absolute."""
    return profile.base_dir / Path(text).expanduser()


def code_checks(code: CodePlan) -> Iterator[Check]:
    if code.is_too_large:
        yield too_large(code)
    else:
        size = bytes_text(code.total_bytes)
        facts: dict[str, str | int | float | bool | None] = {"files": code.count, "size": size}
        yield Check("code_listed", "ok", {**facts, "folder": code.root, "path": code.cwd})
    for why, check in _LEFT_OUT.items():
        if count := code.left_out_count.get(why, 0):
            names = ", ".join(code.left_out[why][:NAMED])
            more = "" if count <= NAMED else f" (+{count - NAMED})"
            yield Check(check, "warning", {"count": count, "names": names + more})


def too_large(code: CodePlan) -> Check:
    """A question in the TUI, a refusal without one."""
    largest = (f"{name} {bytes_text(size)}" for name, size in code.largest[:5])
    return Check(
        "code_too_large",
        "warning",
        {
            "files": code.count,
            "size": bytes_text(code.total_bytes),
            "folder": code.root,
            "largest": ", ".join(largest),
            "limit": f"{bytes_text(code.max_bytes)}, {code.max_files} files",
            "needed": f'code.max_size="{_round_up(code)}"'
            if code.total_bytes > code.max_bytes
            else f"code.max_files={code.count}",
        },
    )


def _round_up(code: CodePlan) -> str:
    return f"{code.total_bytes // (1 << 30) + 1} GiB"


def _blocked(error: CockpitError) -> Check:
    return Check(error.code, "blocked", {key: _plain(value) for key, value in error.facts.items()})


def _plain(value: Fact) -> str | int | float | bool | None:
    return ", ".join(value) if isinstance(value, tuple) else value
