"""Whether this computer has an NVIDIA card, without waking it up."""

from __future__ import annotations

import ctypes
from pathlib import Path

NAME = "here"
"""What this machine is called while hosts.toml names no host."""
_DEVICES = (
    "dev/nvidia0",
    "dev/nvidiactl",
    "dev/dxg",
    "dev/nvhost-gpu",
    "proc/driver/nvidia/version",
)
_LIBRARY = "libnvidia-ml.so.1"


def has_gpu(root: Path = Path("/")) -> bool:
    """By device files (WSL's and Jetson's too), else by whether the driver's library can be loaded.

    Loading the library touches no card; starting it would (a sleeping laptop card wakes for a second).
    """
    if any((root / device).exists() for device in _DEVICES):
        return True
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True
