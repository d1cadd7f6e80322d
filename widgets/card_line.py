"""One card in one line, for both densities: fixed columns, right-aligned numbers, state by word and sign."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.domain.cells import cut_end, cut_middle
from cockpit.domain.incidents import Severity
from cockpit.domain.models import GpuSample
from cockpit.domain.occupancy import card_use, main_process
from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_pair_text
from cockpit.engine.fleet import GpuHistory
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.gauges import bar, recent, spark
from cockpit.widgets.host_words import temp_is_throttled
from cockpit.widgets.look import Look, Tone

SPARK_BIN_S = 5.0
_INDEX, _UTIL, _TEMP, _POWER = 3, 5, 7, 10
_LEAST_BAR, _LEAST_SPARK, _LEAST_USER = 8, 8, 12


@dataclass(frozen=True, slots=True)
class Holder:
    """Who uses a card as far as our own runs tell, and the worst open incident on it."""

    run: str = ""
    severity: Severity | None = None


NOBODY = Holder()


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells of each column; 0 or False: it is not there."""

    host: int
    spark: int
    bar: int
    memory: int
    temp: bool
    power: bool
    user: int


def memory_cells(largest_mib: int | None) -> int:
    """Cells that "22.8/24.0G" needs on the largest card, so that the column never moves."""
    return max(10, len(mib_pair_text(largest_mib, largest_mib)))


def choose_columns(width: int, host: int, memory: int) -> Columns:
    """Give up power, temperature, sparkline and user, in this order; memory and state never."""
    room = width - 1 - host - _INDEX - _UTIL - (memory + 2) - (_LEAST_BAR + 2)
    user = spark_cells = 0
    temp = power = False
    if room >= _LEAST_USER + 2:
        user, room = _LEAST_USER, room - _LEAST_USER - 2
    if user and room >= _LEAST_SPARK + 2:
        spark_cells, room = _LEAST_SPARK, room - _LEAST_SPARK - 2
    if spark_cells and room >= _TEMP:
        temp, room = True, room - _TEMP
    if temp and room >= _POWER:
        power, room = True, room - _POWER
    bar_cells = _LEAST_BAR
    for limit_user, limit_spark, limit_bar in ((18, 12, 14), (24, 20, 32), (40, 40, 64)):
        bar_cells, room = _grow(bar_cells, limit_bar, room)
        if spark_cells:
            spark_cells, room = _grow(spark_cells, limit_spark, room)
        if user:
            user, room = _grow(user, limit_user, room)
    return Columns(host, spark_cells, bar_cells, memory, temp, power, user)


def column_at(columns: Columns, cell: int) -> str | None:
    """The name of the column that a cell of a card's line belongs to; `cell` counts from its index."""
    widths = [
        ("index", _INDEX),
        ("spark", columns.spark + 1 if columns.spark else 0),
        ("util", _UTIL + 1),
        ("memory", columns.bar + columns.memory + 2),
        ("temp", _TEMP if columns.temp else 0),
        ("power", _POWER if columns.power else 0),
        ("user", columns.user + 2 if columns.user else 0),
    ]
    for name, width in widths:
        if 0 <= cell < width:
            return name
        cell -= width
    return None


def _grow(cells: int, limit: int, room: int) -> tuple[int, int]:
    more = max(0, min(room, limit - cells))
    return cells + more, room - more


def draw_card(
    line: Line,
    gpu: GpuSample,
    history: GpuHistory | None,
    holder: Holder,
    columns: Columns,
    look: Look,
    tone: Tone,
) -> None:
    """Append the columns of one card. A card that does not answer says so in the place of its numbers."""
    line.add(f"{gpu.index:>2} ", tone.muted)
    start = line.cells
    if gpu.error is not None and gpu.util_pct is None and gpu.mem_used_mib is None:
        _draw_error(line, gpu, columns, look, tone)
        return
    if columns.spark:
        cells = recent(history, columns.spark, SPARK_BIN_S)
        line.add(spark(cells, 100.0, look.glyphs), tone.graph).pad_to(start + columns.spark)
        line.add(" ")
    util = "n/a" if gpu.util_pct is None else f"{gpu.util_pct}%"
    line.add(f"{util:>4}  ", tone.text if gpu.util_pct is not None else tone.muted)
    _draw_memory(line, gpu, holder, columns, look, tone)
    if columns.temp:
        _draw_temp(line, gpu, look, tone)
    if columns.power:
        line.add(f"  {power_text(gpu):>8}", tone.muted)
    if columns.user:
        _draw_user(line, gpu, holder, columns.user, look, tone)


def _draw_memory(
    line: Line, gpu: GpuSample, holder: Holder, columns: Columns, look: Look, tone: Tone
) -> None:
    known = gpu.mem_used_mib is not None and bool(gpu.mem_total_mib)
    fraction = (gpu.mem_used_mib or 0) / (gpu.mem_total_mib or 1) if known else None
    full, empty = bar(fraction, columns.bar, look.glyphs)
    fills = {"fatal": tone.fill_fatal, "warning": tone.fill_warn}
    line.add(full, fills.get(holder.severity or "", tone.fill))
    line.add(empty, tone.faint)
    text = mib_pair_text(gpu.mem_used_mib, gpu.mem_total_mib)
    line.add(f"  {text:>{columns.memory}}", tone.text if known else tone.muted)


def _draw_temp(line: Line, gpu: GpuSample, look: Look, tone: Tone) -> None:
    if gpu.temp_c is None:
        line.add(f"{'n/a':>{_TEMP}}", tone.muted)
        return
    text = f"{gpu.temp_c}{look.glyphs.degree}C"
    if temp_is_throttled(gpu):
        line.add(f"{look.glyphs.warning + text:>{_TEMP}}", tone.warn)
    else:
        line.add(f"{text:>{_TEMP}}", tone.muted)


def power_text(gpu: GpuSample) -> str:
    if gpu.power_w is None:
        return "n/a"
    if gpu.power_limit_w is None:
        return f"{gpu.power_w:.0f}W"
    return f"{gpu.power_w:.0f}/{gpu.power_limit_w:.0f}W"


def _draw_user(
    line: Line, gpu: GpuSample, holder: Holder, cells: int, look: Look, tone: Tone
) -> None:
    line.add("  ")
    sign = "" if holder.severity is None else " " + look.glyphs.severity(holder.severity)
    if gpu.error is not None:
        line.add(cut_end(safe_line(gpu.error), cells, look.glyphs.cut), tone.fatal)
        return
    name = holder_text(gpu, holder)
    style = tone.muted if card_use(gpu) != "busy" else tone.text
    line.add(cut_middle(name, cells - len(sign), look.glyphs.cut), style)
    if holder.severity is not None:
        line.add(sign, {"fatal": tone.fatal, "warning": tone.warn}.get(holder.severity, tone.muted))


def holder_text(gpu: GpuSample, holder: Holder) -> str:
    """Our run's name, else user and program of the largest process, else free."""
    if holder.run:
        return safe_line(holder.run, 80)
    process = main_process(gpu)
    if process is None:
        return {"free": _("free"), "busy": _("in use")}.get(card_use(gpu), _("n/a"))
    name = safe_line(process.name or f"pid {process.pid}", 60)
    if process.user:
        name = f"{safe_line(process.user, 20)}:{name}"
    more = len(gpu.processes) - 1
    return f"{name} +{more}" if more else name


def _draw_error(line: Line, gpu: GpuSample, columns: Columns, look: Look, tone: Tone) -> None:
    """The driver's words across the place of the numbers, what to do where the user would be."""
    words = safe_line(gpu.error or "", 200)
    need = _("needs a reset") if gpu.error_code == "gpu_lost" else ""
    numbers = columns.spark + (1 if columns.spark else 0) + _UTIL + 1 + columns.bar
    numbers += (
        columns.memory + 2 + (_TEMP if columns.temp else 0) + (_POWER if columns.power else 0)
    )
    line.add(look.glyphs.lost + " ", tone.fatal)
    if need and width_of(need) > columns.user:
        words, need = f"{words}: {need}", ""
    line.add(cut_end(words, numbers - 2, look.glyphs.cut), tone.fatal)
    if need:
        line.pad_to(line.cells + max(0, numbers - 2 - width_of(words)) + 2)
        line.add(cut_end(need, columns.user, look.glyphs.cut), tone.fatal)
