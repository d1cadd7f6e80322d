"""The programs that run on hosts, read as text from the package, with NVIDIA's binding beside them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from cockpit.engine import pruning
from cockpit.errors import ProbeError

ProgramName: TypeAlias = Literal["probe", "supervisor", "courier", "meeting"]

REMOTE: Final = Path(__file__).resolve().parent.parent / "remote"
_OWN_IMPORTS: Final = re.compile(rb"^(?:from|import) (\w+)", re.MULTILINE)
_LATE_IMPORTS: Final = re.compile(rb"^[ \t]+(?:from|import) (\w+)", re.MULTILINE)
_INDENT: Final = re.compile("^ +")
_LISTS: Final = frozenset(
    f"nvmlDeviceGet{kind}RunningProcesses_v{version}"
    for kind in ("Compute", "Graphics")
    for version in (2, 3)
)
"""Functions that the probe asks for by a name it puts together."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program and the modules that it imports, as source text."""

    name: ProgramName
    boot: str
    """What the host's Python is started with: it finds the rest and checks it."""
    sources: tuple[tuple[str, bytes], ...]
    """(module name, source), the main module first."""
    digest: str
    """sha256 over names and sources: the name under which a host keeps it."""
    fetch: str = ""
    """What the boot program reads first, and runs, when the host has to be sent the rest."""


@lru_cache(maxsize=4)
def load_program(name: ProgramName) -> Program:
    """The program as it is shipped with this version. Raises ProbeError without NVIDIA's binding."""
    sources = _own_modules(name)
    if any(module == b"pynvml" for _, text in sources for module in _LATE_IMPORTS.findall(text)):
        sources.append(("pynvml", _binding().read_bytes()))
    sources.append(("boot_run", (REMOTE / "boot_run.py").read_bytes()))
    digest = hashlib.sha256(Path(pruning.__file__).read_bytes())
    for module, text in sources:
        digest.update(f"{module} {len(text)}\n".encode() + text)
    boot, fetch = (_code(REMOTE / name) for name in ("boot.py", "boot_fetch.py"))
    return Program(name, boot, tuple(sources), digest.hexdigest()[:40], fetch)


def _code(path: Path) -> str:
    """A small program without its comments and blank lines: it travels with every start."""
    lines = path.read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.startswith("#")]
    return "\n".join(_INDENT.sub(lambda blanks: " " * (len(blanks[0]) // 4), line) for line in code)


def _own_modules(name: str) -> list[tuple[str, bytes]]:
    """The main module and those beside it that it imports, itself or through them."""
    found: dict[str, bytes] = {}
    wanted = [name]
    while wanted:
        module = wanted.pop(0)
        path = REMOTE / f"{module}.py"
        if module in found or not path.is_file():
            continue
        text = found[module] = path.read_bytes()
        imported = _OWN_IMPORTS.findall(text) + _LATE_IMPORTS.findall(text)
        wanted += [other.decode() for other in imported]
    return list(found.items())


def _binding() -> Path:
    """pynvml.py of NVIDIA's nvidia-ml-py, found without importing it."""
    spec = importlib.util.find_spec("pynvml")
    if spec is not None and spec.origin is not None and spec.origin.endswith("pynvml.py"):
        return Path(spec.origin)
    try:
        path = Path(str(importlib.metadata.distribution("nvidia-ml-py").locate_file("pynvml.py")))
    except importlib.metadata.PackageNotFoundError as error:
        raise ProbeError("no_pynvml") from error
    if not path.is_file():
        raise ProbeError("no_pynvml")
    return path


@lru_cache(maxsize=4)
def packed(program: Program, *, plain: bool = False) -> bytes:
    """What a host without the program is sent: what takes it, checksum and size, then the modules."""
    own = b"".join(text for module, text in program.sources if module != "pynvml")
    frames = []
    for module, text in program.sources:
        if module == "pynvml":
            text = pruning.pruned(text, pruning.nvml_names(own) | _LISTS)
        frames.append(f"{module} {len(text)}\n".encode() + text)
    data = b"".join(frames)
    data = data if plain else zlib.compress(data, 6)
    head = f"{hashlib.blake2b(data).hexdigest()} {len(data)} {'p' if plain else 'z'}\n"
    return program.fetch.encode() + head.encode() + data


def fallback_script(interval_s: float) -> str:
    """The shell's own probe, for a host without Python."""
    text = (REMOTE / "fallback.sh").read_text(encoding="utf-8")
    interval_s = min(60.0, max(0.2, interval_s))
    text = text.replace("@milliseconds@", str(round(interval_s * 1000)))
    return text.replace("@interval@", f"{interval_s:g}")
