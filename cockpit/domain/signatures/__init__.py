"""The table of failure signatures: every row with its test lines and its source.

The order is the order of matching: the special before the general.
"""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.allocators import ALLOCATORS
from cockpit.domain.signatures.cuda import CUDA
from cockpit.domain.signatures.distributed import DISTRIBUTED
from cockpit.domain.signatures.driver import DRIVER
from cockpit.domain.signatures.hardware import HARDWARE
from cockpit.domain.signatures.host import HOST
from cockpit.domain.signatures.launchers import LAUNCHERS
from cockpit.domain.signatures.llama_cpp import LLAMA_CPP
from cockpit.domain.signatures.model import Signature
from cockpit.domain.signatures.numeric import NUMERIC
from cockpit.domain.signatures.plain import PLAIN
from cockpit.domain.signatures.sglang import SGLANG
from cockpit.domain.signatures.shared_memory import SHARED_MEMORY
from cockpit.domain.signatures.storage import STORAGE
from cockpit.domain.signatures.torch import TORCH
from cockpit.domain.signatures.torch_libraries import TORCH_LIBRARIES
from cockpit.domain.signatures.vllm import VLLM
from cockpit.domain.signatures.vllm_engine import VLLM_ENGINE

SIGNATURES: Final[tuple[Signature, ...]] = (
    *HARDWARE, *TORCH, *TORCH_LIBRARIES, *ALLOCATORS, *LLAMA_CPP, *VLLM, *VLLM_ENGINE, *SGLANG,
    *SHARED_MEMORY, *HOST, *DISTRIBUTED, *LAUNCHERS, *CUDA, *DRIVER, *STORAGE, *NUMERIC, *PLAIN,
)  # fmt: skip
BY_ID: Final = {signature.id: signature for signature in SIGNATURES}

TRIGGERS: Final[tuple[bytes, ...]] = (
    b"rror", b"iled", b"ut of ", b"ille", b"ected", b"nable to ", b"_FAILED", b"system", b"atchdog ", b"eceived ",
    b" in use", b": inf", b" enough ", b"ed with", b" timed out", b"'grad_norm': '", b"NCCL WARN", b"kill event",
    b" mismatch", b"shared memory", b"_STATUS_NOT_INIT", b" allocate m", b" hit an exception", b"fallen off the bus",
    b" desired GPU memory util", b"y allocat", b"Xid (", b" to process",
)  # fmt: skip
"""Pieces that several literals share. They are looked for in whole blocks of a log before a line is
even cut out; literals without one are looked for themselves. Chosen by cost: a long string is found
faster than a short one, and each one here spares more than it takes."""
