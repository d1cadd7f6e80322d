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
    b" memory", b"emory ", b"MemoryError", b"rror", b"ailed", b" not ", b"NVIDIA driver", b"ALLOC", b"CUFFT_NO_WORK",
    b"_STATUS_NOT_IN", b" time", b" file", b"nexpecte", b"device", b"process", b" version ",
    b"LIB_RM_VERSION", b"hit an exception", b" failure", b"already ", b"request", b"ed with",
    b" batch size", b"kill event", b"oom-kill", b"oom_kill", b"there are ", b"to find a", b"number of",
    b" allo", b"illed", b"availabl", b"Cannot a", b"attempt", b"NVRM: ", b"SXid (", b"AER:", b"GSP!",
    b"fallen off", b"is lost", b"for more than", b"code 137", b"code: 137", b"status 137", b"status: 137",
    b"code (137)", b"nan", b"NaN in local", b"grad_norm': in", b"grad_norm': 'in",
    b"loss=inf", b"loss: inf", b"loss': inf",
    b"loss': 'inf", b"Skipping step", b"Connection was likely", b"Disk quota", b"EngineCore enc",
    b"Leak Detected", b"OfflineMode", b"has a total capac", b"illegal instr", b"misaligned",
    b"not enough KV", b"0 items of ancdata", b"watchdog got", b"CANCELLED AT", b"HTTP/1.0\" 50",
    b"HTTP/1.1\" 50", b"of resource:", b"warming up pooler", b"RPC call to", b"got 0 bytes",
    b"KeyboardInterrupt", b"Received Signals",
    b"EADDRINUSE", b"buffer of size", b"NCCL WARN", b"total-vm:", b"exitcode", b"unable to mmap",
)  # fmt: skip
"""Short strings, one of which is in every literal. They are looked for in whole blocks of a log
before a line is even cut out; an ordinary log holds few of them, and there the speed comes from."""
