"""Xid events of the driver: by NVML's event set where it is allowed, and from the kernel log.

Runs on hosts: Python >= 3.6, stdlib and NVIDIA's pynvml only.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_card import Card  # type: ignore[import-not-found] # noqa: F401
    from probe_gpus import GpuReader  # type: ignore[import-not-found]

XID_EVENT = 8
SAME_WITHIN_S = 10.0
RECORDS_MAX = 256


class EventSet:
    """NVML's Xid events of every card that has them. Polled without waiting, on the NVML thread."""

    def __init__(self, reader: "GpuReader") -> None:
        self.nvml = nvml = reader.nvml
        self.set = None  # type: Any
        self.cards = []  # type: list[tuple[int | None, Card]]
        try:
            events = nvml.nvmlEventSetCreate()
        except (nvml.NVMLError, AttributeError):
            return
        for card in reader.cards:
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(card.index)
                nvml.nvmlDeviceRegisterEvents(handle, XID_EVENT, events)
                self.cards.append((_address(handle), card))
            except nvml.NVMLError:
                continue
        if self.cards:
            self.set = events

    def poll(self) -> "list[dict[str, Any]]":
        """The events since the last call."""
        found = []  # type: list[dict[str, Any]]
        while self.set is not None and len(found) < 64:
            try:
                event = self.nvml.nvmlEventSetWait_v2(self.set, 0)
            except self.nvml.NVMLError as error:
                if error.value != 10:
                    self.set = None
                break
            except (AttributeError, ValueError):
                self.set = None
                break
            if not event.eventType & XID_EVENT:
                continue
            found.append(self._event(event))
        return found

    def _event(self, event: "Any") -> "dict[str, Any]":
        address, card = _address(event.device), None  # type: int | None, Card | None
        for known, candidate in self.cards:
            if known == address:
                card = candidate
        return {
            "xid": int(event.eventData),
            "bus_id": card.now.get("bus_id") if card else None,
            "gpu_index": card.index if card else None,
            "text": "NVML event: Xid %d" % event.eventData,
            "at_s": time.time(),
        }


def _address(handle: "Any") -> "int | None":
    """The number behind an opaque pointer, to tell handles apart."""
    from ctypes import c_void_p, cast

    return cast(handle, c_void_p).value


class KernelLog:
    """New lines of /dev/kmsg that speak of an Xid; silent where the log may not be read."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self.fd = None  # type: int | None
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self.fd, 0, os.SEEK_END)
        except (OSError, ValueError):
            self.close()

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def poll(self) -> "list[dict[str, Any]]":
        """The events since the last call."""
        found = []
        for _ in range(RECORDS_MAX):
            if self.fd is None:
                break
            try:
                record = os.read(self.fd, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue
            except OSError:
                self.close()
                break
            if not record:
                break
            event = xid_of(record)
            if event is not None:
                found.append(event)
        return found


def xid_of(record: bytes) -> "dict[str, Any] | None":
    """An event out of a record "6,1234,5678901234,-;NVRM: Xid (PCI:0000:65:00): 79, …", or None."""
    start = record.find(b"NVRM: Xid (PCI:")
    if start < 0:
        return None
    line = record[start:].split(b"\n", 1)[0][:400].decode("utf-8", "replace")
    bus, _, rest = line[len("NVRM: Xid (PCI:") :].partition(")")
    digits = rest.lstrip(": ").split(",", 1)[0].strip()
    if not digits.isdigit() or len(digits) > 4:
        return None
    return {
        "xid": int(digits),
        "bus_id": bus[:32],
        "gpu_index": None,
        "text": line,
        "at_s": time.time(),
    }


def bus_key(bus: "str | None") -> "str | None":
    """0000:65:00 and 00000000:65:00.0 are the same card."""
    parts = (bus or "").split(".")[0].split(":")
    try:
        return "%x:%x:%x" % tuple(int(part, 16) for part in parts)
    except (TypeError, ValueError):
        return None


class XidBook:
    """Events of both sources, each told once and with its card's index."""

    def __init__(self) -> None:
        self.recent = {}  # type: dict[tuple[int, str | None], tuple[float, str]]

    def fresh(
        self, events: "list[dict[str, Any]]", buses: "dict[str | None, int]"
    ) -> "list[dict[str, Any]]":
        """Those not told within the last seconds; `buses` is bus_key -> index."""
        told = []
        for event in events:
            key, now = bus_key(event["bus_id"]), time.monotonic()
            if event["gpu_index"] is None:
                event["gpu_index"] = buses.get(key)
            before = self.recent.get((event["xid"], key))
            if before is None or now - before[0] > SAME_WITHIN_S or before[1] == event["text"][:4]:
                told.append(event)
                self.recent[(event["xid"], key)] = (now, event["text"][:4])
        if len(self.recent) > 512:
            self.recent.clear()
        return told[:64]
