"""What is known of a host besides its cards' curves, as paragraphs: disks, network, driver, link."""

from __future__ import annotations

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import DiskSample, GpuSample, HostFacts, HostSample
from cockpit.domain.text import cut_middle, safe_line
from cockpit.domain.units import bytes_text, duration_text, mib_pair_text, price_text
from cockpit.engine.fleet import HostState
from cockpit.i18n import _
from cockpit.i18n.messages import explain, knows
from cockpit.widgets.drawing import padded
from cockpit.widgets.host_words import LOW_DISK_FRACTION, reason, source_text
from cockpit.widgets.text_pane import BLANK, Para, Role, code, heading, para

_NAME_CELLS = 11


def fact_paras(state: HostState, spec: HostSpec | None, now_s: float) -> list[Para]:
    paras: list[Para] = []
    if words := reason(state, now_s):
        paras.append(_fact(_("state"), words, "warn"))
        paras += [*_trouble(state), BLANK]
    if state.latest is not None:
        paras += [*_load(state.latest), BLANK, *_disks(state.latest), BLANK]
    if state.facts is not None:
        paras += [*_software(state.facts, state.latest), BLANK]
    if state.latest is not None:
        paras += _health(state.latest.gpus)
    paras += _link(state, spec)
    return paras


def _trouble(state: HostState) -> list[Para]:
    """What happened and what to do, in full: the fleet has room for a few words only."""
    if state.code is None or not knows(state.code):
        return []
    told = explain(state.code, {"host": state.host, **state.why})
    paras = [para(safe_line(told.headline, 300))]
    paras += [para(safe_line(text, 300), "muted") for text in (told.body, *told.actions) if text]
    return paras


def _fact(name: str, value: str, role: Role = "text") -> Para:
    shown = cut_middle(safe_line(name, 80), _NAME_CELLS - 1)
    return code((padded(shown, _NAME_CELLS), "muted"), (safe_line(value, 300), role))


def _load(sample: HostSample) -> list[Para]:
    paras = []
    cpu = "n/a" if sample.cpu_pct is None else f"{sample.cpu_pct:.0f}%"
    if sample.steal_pct:
        cpu += ", " + _("stolen {pct:.0f}%").format(pct=sample.steal_pct)
    if sample.load1 is not None:
        cpu += ", " + _("load {load:.1f}").format(load=sample.load1)
    paras.append(_fact(_("cpu"), cpu))
    paras.append(_fact(_("RAM"), mib_pair_text(sample.mem_used_mib, sample.mem_total_mib)))
    if sample.cgroup_limit_mib:
        limit = mib_pair_text(sample.cgroup_used_mib, sample.cgroup_limit_mib)
        paras.append(_fact(_("limit"), _("{limit} in this container").format(limit=limit)))
    if sample.swap_total_mib:
        paras.append(_fact(_("swap"), mib_pair_text(sample.swap_used_mib, sample.swap_total_mib)))
    if sample.shm_total_mib:
        used = sample.shm_total_mib - (sample.shm_free_mib or 0)
        paras.append(_fact("/dev/shm", mib_pair_text(used, sample.shm_total_mib)))
    net = sample.net
    if net.rx_mib_s is not None or net.tx_mib_s is not None:
        words = _("in {rx:.1f}, out {tx:.1f} MiB/s")
        paras.append(_fact(_("network"), words.format(rx=net.rx_mib_s or 0, tx=net.tx_mib_s or 0)))
    return paras


def _disks(sample: HostSample) -> list[Para]:
    return [_disk(disk) for disk in sample.disks[:8]]


def _disk(disk: DiskSample) -> Para:
    if disk.free_mib is None or not disk.total_mib:
        return _fact(disk.mount, "n/a", "muted")
    words = _("{free} free").format(free=mib_pair_text(disk.free_mib, disk.total_mib).strip())
    low = disk.free_mib < LOW_DISK_FRACTION * disk.total_mib
    if disk.inodes_free_pct is not None and disk.inodes_free_pct < 5:
        words += ", " + _("inodes {pct:.0f}% free").format(pct=disk.inodes_free_pct)
        low = True
    if disk.write_mib_s:
        words += ", " + _("writes {rate:.0f} MiB/s").format(rate=disk.write_mib_s)
    return _fact(disk.mount, ("! " if low else "") + words, "warn" if low else "text")


def _software(facts: HostFacts, sample: HostSample | None) -> list[Para]:
    driver = facts.driver or _("none")
    if facts.cuda:
        driver += ", " + _("serves CUDA {cuda}").format(cuda=facts.cuda)
    paras = [_fact(_("driver"), driver)]
    if sample is not None and (source := source_text(sample)):
        paras.append(_fact(_("numbers"), source, "warn"))
    system = ", ".join(part for part in (facts.os_name, facts.kernel) if part)
    paras.append(_fact(_("system"), system or "n/a"))
    paras.append(_fact("python", facts.python or _("none found")))
    if facts.cores:
        kind = ", " + _("container") if facts.container else ""
        paras.append(_fact(_("machine"), _("{n} cores").format(n=facts.cores) + kind))
    if sample is not None and sample.uptime_s is not None:
        paras.append(_fact(_("up for"), duration_text(sample.uptime_s)))
    paras += [_fact(_("topology"), line) for line in facts.topology[:4]]
    return paras


def _health(gpus: tuple[GpuSample, ...]) -> list[Para]:
    """Only what is worth a look: errors counted, rows remapped, clocks held down."""
    paras = []
    for gpu in gpus:
        parts = []
        if gpu.ecc_uncorrected:
            parts.append(_("{n} uncorrected ECC errors").format(n=gpu.ecc_uncorrected))
        if gpu.remapped_rows:
            parts.append(_("{n} rows remapped").format(n=gpu.remapped_rows))
        if gpu.remap_pending:
            parts.append(_("a row waits for a reset"))
        if gpu.throttle:
            parts.append(_("slowed by {why}").format(why=", ".join(gpu.throttle)))
        if gpu.error:
            parts.append(gpu.error)
        if parts:
            paras.append(_fact(f"GPU {gpu.index}", "; ".join(parts), "warn"))
    return [*paras, BLANK] if paras else []


def _link(state: HostState, spec: HostSpec | None) -> list[Para]:
    paras = [heading(_("link"))]
    if state.address:
        paras.append(_fact(_("address"), state.address))
    if spec is not None and spec.jump:
        paras.append(_fact(_("through"), spec.jump))
    if state.fingerprint:
        paras.append(_fact(_("host key"), f"{state.key_type or ''} {state.fingerprint}".strip()))
    if state.latency_s is not None:
        paras.append(_fact(_("latency"), f"{state.latency_s * 1000:.0f} ms"))
    if state.noise:
        words = _("login noise {size} skipped").format(size=bytes_text(len(state.noise)))
        paras.append(_fact(_("noise"), words))
    if spec is not None and (price := price_text(spec.price_per_h, spec.currency)):
        paras.append(_fact(_("price"), price))
    if spec is not None and spec.tags:
        paras.append(_fact(_("tags"), ", ".join(spec.tags)))
    return paras
