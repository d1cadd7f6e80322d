"""Build the NVML double once, write its scenario, and point a program at both."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = (HERE / "double.c",)
SMI = HERE / "nvidia_smi.py"
MIB = 1 << 20


def compiler() -> str:
    """The C compiler; skips the test where there is none."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("the NVML double needs a C compiler (cc, gcc or clang)")
    return found


def build_library(folder: Path, missing: Sequence[str] = ()) -> Path:
    """A folder that holds libnvidia-ml.so.1, without the symbols in `missing` (an old driver)."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES))
    key.update(" ".join(sorted(missing)).encode())
    target = folder / f"nvml-double-{key.hexdigest()[:16]}"
    library = target / "libnvidia-ml.so.1"
    if library.exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    script = target / "exports"
    hidden = f"local: {'; '.join(missing)};" if missing else ""
    script.write_text(f"{{ global: nvml*; {hidden} }};\n")
    with tempfile.NamedTemporaryFile(dir=target, suffix=".so", delete=False) as made:
        pass
    subprocess.run(
        [
            compiler(), "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
            "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1",
            f"-Wl,--version-script={script}", "-o", made.name, *map(str, SOURCES), "-lpthread",
        ],
        check=True,
        timeout=120,
    )  # fmt: skip
    os.replace(made.name, library)
    return target


def cached_library(missing: Sequence[str] = ()) -> Path:
    """The library in this user's temporary folder: built by the first who asks."""
    folder = Path(tempfile.gettempdir()) / f"cockpit-tests-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return build_library(folder, missing)


@dataclass
class Scenario:
    """Statements for the double; `double.c` says what each of them means."""

    path: Path
    lines: list[str] = field(default_factory=lambda: ["gpus 8"])

    def say(self, *lines: str) -> Scenario:
        """Add statements and write the file."""
        self.lines.extend(lines)
        return self.write()

    def write(self, lines: Sequence[str] | None = None) -> Scenario:
        """Replace the file in one step, so that a running double never reads half of it."""
        if lines is not None:
            self.lines = list(lines)
        fresh = self.path.with_suffix(".new")
        fresh.write_text("\n".join(self.lines) + "\n")
        os.replace(fresh, self.path)
        return self


@dataclass(frozen=True)
class Driver:
    """A double in place: the folder of its library, its scenario, a folder with `nvidia-smi`."""

    library: Path
    scenario: Scenario
    bin: Path

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a program that shall see these cards."""
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.library),
            "NVML_DOUBLE": str(self.scenario.path),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            **more,
        }


def make_driver(
    folder: Path, lines: Sequence[str] = ("gpus 8",), missing: Sequence[str] = ()
) -> Driver:
    """A driver double with a scenario of its own in `folder`."""
    scenario = Scenario(folder / "scenario").write(lines)
    tools = folder / "driver-bin"
    tools.mkdir(exist_ok=True)
    smi = tools / "nvidia-smi"
    if not smi.exists():
        smi.symlink_to(SMI)
    return Driver(cached_library(missing), scenario, tools)


def healthy(count: int = 8) -> list[str]:
    """A scenario of `count` busy H100s with one process each."""
    lines = [f"gpus {count}", "gpu * util 97", "gpu * mem_util 41", "gpu * mem_used 40000",
             "gpu * temp 64", "gpu * power 655.5", "gpu * sm_clock 1980", "gpu * throttle 0x4"]  # fmt: skip
    return lines + [f"gpu {index} proc {os.getpid()} 39000 C" for index in range(count)]
