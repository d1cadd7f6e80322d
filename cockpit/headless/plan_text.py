"""A launch plan for `--dry-run`: where, with what, at what price, and the exact script."""

from __future__ import annotations

from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_text
from cockpit.engine.api import LaunchPlan
from cockpit.headless.code_text import code_fields, code_names, code_rows
from cockpit.headless.run_report import words_for

_NEWS = (
    "cards_queued", "binds_everywhere", "pipe_hides_code", "code_links_left_out", "code_special_left_out",
    "code_submodule_empty", "code_secret_left_out", "code_shared_folder", "budget_no_price",
    "budget_other_currency", "budget_stop_needs_us",
    "notify_missing", "notify_bad_url", "notify_not_kept",
)  # fmt: skip
"""Checks that are told before a start; the others are for `--dry-run`."""

_TOLD_LATER = ("sh_only_run",)
"""Told when the host has answered, which is sure."""


def plan_warnings(plan: LaunchPlan) -> list[str]:
    return [
        words_for(check.code, check.facts)
        for check in plan.all_checks
        if check.verdict == "warning"
        and (check.code in _NEWS or plan.cards)
        and check.code not in _TOLD_LATER
    ]


def plan_fields(plan: LaunchPlan) -> dict[str, object]:
    return {
        "profile": plan.profile.name,
        "kind": plan.profile.kind,
        "host": plan.host,
        "gpus": [card.index for card in plan.cards],
        "acceptable": list(plan.acceptable),
        "candidates": [
            {
                "host": card.host,
                "index": card.index,
                "name": card.name,
                "free_mib": card.free_mib,
                "total_mib": card.total_mib,
                "holder": card.holder,
            }
            for card in plan.candidates
        ],
        "queued": plan.queued,
        "argv": list(plan.argv),
        "cwd": plan.cwd,
        "env": sorted(plan.env_set),
        "secrets": list(plan.env_secret_names),
        "forwards": [list(pair) for pair in plan.forwards],
        "price_per_h": plan.price_per_h,
        "currency": plan.currency,
        "checks": [
            {"code": check.code, "verdict": check.verdict, "facts": check.facts}
            for check in plan.checks
        ],
        "code": code_fields(plan.code),
        "script": plan.script,
        "nodes": [plan_fields(node) for node in plan.nodes],
    }


def plan_text(plan: LaunchPlan) -> str:
    cards = ", ".join(
        f"GPU {card.index} {card.name} ({_free(card.free_mib)} free)" for card in plan.cards
    )
    if plan.queued:
        indices = ", ".join(map(str, sorted(plan.acceptable)))
        cards = f"{len(plan.cards)} of GPU {indices}, as soon as they come free"
    busy = "; ".join(
        f"{card.host}:{card.index} {card.holder}" for card in plan.candidates if card.holder
    )
    price = "" if plan.price_per_h is None else f"{plan.price_per_h:.2f} {plan.currency or ''}/h"
    rows = [
        ("profile", f"{plan.profile.name} ({plan.profile.kind})"),
        ("host", plan.host),
        ("cards", cards or "none reserved"),
        *([("held", safe_line(busy, 400))] if busy else []),
        ("price", price or "not known"),
        ("env", " ".join(sorted(plan.env_set)) or "-"),
        ("secrets", " ".join(plan.env_secret_names) or "-"),
        ("forwards", " ".join(f"{local}->{remote}" for local, remote in plan.forwards) or "-"),
        *code_rows(plan.code),
    ]
    for rank, node in enumerate(plan.nodes, 1):
        cards = ", ".join(f"GPU {card.index} {card.name}" for card in node.cards)
        rows.append((f"rank {rank}", f"{node.host}  {cards or 'no card reserved'}"))
    lines = [f"{name:9} {value}" for name, value in rows]
    for check in plan.all_checks:
        lines.append(f"{check.verdict:9} {words_for(check.code, check.facts)}")
    lines += ["", *code_names(plan.code)]
    scripts = [
        plan.script,
        *(f"# rank {rank}, {node.host}\n{node.script}" for rank, node in enumerate(plan.nodes, 1)),
    ]
    return "\n".join(lines) + "\n" + "\n\n".join(script.rstrip() for script in scripts)


def _free(mib: int | None) -> str:
    return "?" if mib is None else mib_text(mib).strip()
