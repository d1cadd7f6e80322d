"""A server's numbers as short words: for the header, the list of runs, and the pane beside its log."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.domain.server_sample import ServerSample
from cockpit.domain.text import cut_end, safe_line
from cockpit.domain.units import mib_text
from cockpit.i18n import _, ngettext
from cockpit.widgets.drawing import padded, padded_left
from cockpit.widgets.gauges import bar, spark
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import Para, Role, code

KV_CELLS = 14
SPARK_CELLS = 12
_LABEL, _NUMBER = 12, 9
_KV_WARN, _KV_FULL = 0.85, 0.95
_MOST_MODELS = 5


def speed_text(served: ServerSample) -> str:
    """ "412 tok/s", else requests a second, else the models in memory."""
    if served.gen_tokens_per_s is not None:
        return f"{served.gen_tokens_per_s:.0f} tok/s"
    if served.requests_per_s is not None:
        return f"{served.requests_per_s:.1f} req/s"
    if served.models is not None:
        return ngettext("{n} model", "{n} models", len(served.models)).format(n=len(served.models))
    return ""


def kv_text(served: ServerSample) -> str:
    return "" if served.kv_usage is None else f"{100 * served.kv_usage:.0f}%"


def kv_role(served: ServerSample) -> Role:
    """A full cache is a trouble only while requests wait for it."""
    if served.kv_usage is None or not served.waiting:
        return "ok"
    if served.kv_usage > _KV_FULL:
        return "fatal"
    return "warn" if served.kv_usage > _KV_WARN else "ok"


def time_text(seconds: float | None) -> str:
    """Three digits at most: "45 ms", "1.2 s", "75 s"; "-" while nobody asked."""
    if seconds is None:
        return "-"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def serving_paras(served: ServerSample, look: Look, speeds: Sequence[float]) -> list[Para]:
    """The pane: what is in work, how full the cache is, how fast, and how long a person waits."""
    if served.models is not None:
        return _model_paras(served)
    waiting: Role = "warn" if served.waiting else "text"
    rows = [
        code(
            (padded(_("in work"), _LABEL), "muted"),
            (padded_left(_count(served.running), 4), "strong"),
            (_("   waiting "), "muted"),
            (_count(served.waiting), waiting),
        )
    ]
    if served.kv_usage is not None:
        full, empty = bar(served.kv_usage, KV_CELLS, look.glyphs)
        label = (padded(_("KV cache"), _LABEL), "muted")
        number = (" " + padded_left(kv_text(served), 4), "text")
        rows.append(code(label, (full, kv_role(served)), (empty, "muted"), number))  # type: ignore[arg-type]
    if served.gen_tokens_per_s is not None:
        recent = list(speeds)[-SPARK_CELLS:]
        line = spark(recent, max(recent) * 1.07, look.glyphs) if any(recent) else ""
        rows.append(
            code(
                (padded(_("tokens/s"), _LABEL), "muted"),
                (padded_left(f"{served.gen_tokens_per_s:.0f}", 4), "strong"),
                ("   " + line, "ok"),
            )
        )
    rows.append(
        code(
            (
                padded("", _LABEL) + padded_left("p50", _NUMBER) + padded_left("p95", _NUMBER),
                "muted",
            )
        )
    )
    rows += [
        code(
            (padded(label, _LABEL), "muted"),
            (padded_left(time_text(p50), _NUMBER) + padded_left(time_text(p95), _NUMBER), "text"),
        )
        for label, p50, p95 in (
            (_("first token"), served.ttft_p50_s, served.ttft_p95_s),
            (_("each token"), served.tpot_p50_s, served.tpot_p95_s),
            (_("in the queue"), served.queue_p50_s, served.queue_p95_s),
            (_("request"), served.e2e_p50_s, served.e2e_p95_s),
        )
    ]
    return rows


def _model_paras(served: ServerSample) -> list[Para]:
    models = served.models or ()
    if not models:
        return [code((_("no model in memory; the first request loads one"), "muted"))]
    rows = []
    for one in models[:_MOST_MODELS]:
        size = "" if one.size_mib is None else "  " + mib_text(round(one.size_mib))
        share = one.vram_mib / one.size_mib if one.size_mib and one.vram_mib is not None else 1.0
        on_cpu = (
            _("  {pct}% on the CPU").format(pct=round(100 * (1 - share))) if share < 0.99 else ""
        )
        rows.append(
            code(
                (padded(cut_end(safe_line(one.name), 24), 24), "strong"),
                (size, "text"),
                (on_cpu, "warn"),
            )
        )
    return rows


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
