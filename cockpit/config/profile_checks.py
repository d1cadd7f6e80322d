"""What no single key can tell: tables that do not go together, keys that need or exclude each other.

These look at the raw file, so that their findings stand beside those about single keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.config.document import Document
from cockpit.config.kinds import KIND_TABLES, SERVER_KINDS
from cockpit.config.toml_lines import KeyPath

_SCRIPT_KINDS = ("torchrun", "accelerate", "deepspeed", "megatron", "colossalai", "paddle")
_PYTHON_ENVS = ("conda", "venv", "uv")


def prepare_document(document: Document) -> None:
    """Spell the keys of servers with `_`, as the schema does."""
    for kind in SERVER_KINDS:
        table = document.data.get(kind)
        if isinstance(table, dict):
            document.data[kind] = _underscored(document, kind, table)


def _underscored(document: Document, kind: str, table: dict[str, object]) -> dict[str, object]:
    renamed: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        place = document.lines.find((kind, key))
        if place is not None:
            document.lines.places.setdefault((kind, name), place)
        if name in renamed:
            document.report((kind, key), "not_both", other=f"{kind}.{name}")
        renamed[name] = value
    return renamed


def check_document(document: Document) -> None:
    """Report what does not go together."""
    _check_kind(document)
    _check_hosts(document)
    _exclusive(document, ("gpus",), ("count", "index"))
    _exclusive(document, ("env",), _PYTHON_ENVS)
    _check_ready(document)


def _check_kind(document: Document) -> None:
    kind = document.data.get("kind")
    if not isinstance(kind, str) or kind not in KIND_TABLES:
        return
    if kind not in document.data:
        document.report(("kind",), "missing_table", kind=kind)
    for other in KIND_TABLES:
        if other != kind and other in document.data:
            document.report((other,), "other_kind", other=other, kind=kind)
    if kind == "command":
        _exactly_one(document, (kind,), ("argv", "script"))
    elif kind in _SCRIPT_KINDS:
        _exactly_one(document, (kind,), ("script", "module"))


def _check_hosts(document: Document) -> None:
    data = document.data
    if "from" in data and "nodes" not in data:
        document.report(("from",), "needs_key", other="nodes")
    if "nodes" in data and "from" not in data:
        document.report(("nodes",), "needs_key", other="from")
    if "from" in data and "hosts" in data:
        document.report(("from",), "not_both", other="hosts")
    nodes, hosts = data.get("nodes"), data.get("from")
    if isinstance(nodes, int) and isinstance(hosts, list) and len(set(map(str, hosts))) < nodes:
        document.report(("from",), "too_few_hosts", count=len(hosts), needed=nodes)


def _check_ready(document: Document) -> None:
    """A path needs a port: the server's own, one that is named, the only forwarded one, that of [metrics]."""
    for name, key in (("ready", "http"), ("metrics", "url")):
        table = document.data.get(name)
        if not isinstance(table, dict) or document.data.get("kind") in SERVER_KINDS:
            continue
        path = table.get(key, "/metrics" if name == "metrics" else "")
        forward = document.data.get("forward")
        one_forward = isinstance(forward, dict) and len(forward) == 1
        metrics = document.data.get("metrics")
        has_metrics = isinstance(metrics, dict) and "port" in metrics
        if str(path).startswith("/") and not ("port" in table or one_forward or has_metrics):
            document.report((name, key) if key in table else (name,), "needs_key", other="port")


def _exclusive(document: Document, path: KeyPath, keys: tuple[str, ...]) -> list[str]:
    """Report all but the first of `keys`; returns those that are there."""
    table = _table(document, path)
    present = [key for key in keys if key in table]
    for key in present[1:]:
        document.report((*path, key), "not_both", other=present[0])
    return present


def _exactly_one(document: Document, path: KeyPath, keys: tuple[str, ...]) -> None:
    if isinstance(document.data.get(str(path[0])), dict) and not _exclusive(document, path, keys):
        document.report(path, "one_of_keys", keys=keys)


def _table(document: Document, path: KeyPath) -> Mapping[str, object]:
    table = document.data.get(str(path[0]))
    return table if isinstance(table, dict) else {}
