"""Build the NVML double once, write its scenario, and point a program at both."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE, HEADER, SMI_SOURCE = HERE / "double.c", HERE / "scenario.h", HERE / "smi.c"
WARNINGS = ("-O2", "-Wall", "-Wextra", "-Werror")


def compiler() -> str:
    """The C compiler; skips the test where there is none."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("the NVML double needs a C compiler (cc, gcc or clang)")
    return found


def build(folder: Path, missing: Sequence[str] = ()) -> Path:
    """A folder with libnvidia-ml.so.1 and bin/nvidia-smi; `missing` symbols make an old driver."""
    key = hashlib.sha256(b"".join(path.read_bytes() for path in (SOURCE, HEADER, SMI_SOURCE)))
    key.update(" ".join(sorted(missing)).encode())
    target = folder / f"nvml-double-{key.hexdigest()[:16]}"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as made:
        _compile(Path(made), missing)
        with contextlib.suppress(OSError):
            Path(made).rename(target)
        Path(made).mkdir(exist_ok=True)
    return target


def _compile(folder: Path, missing: Sequence[str]) -> None:
    script = folder / "exports"
    hidden = f"local: {'; '.join(missing)};" if missing else ""
    script.write_text(f"{{ global: nvml*; {hidden} }};\n")
    library, tools = folder / "libnvidia-ml.so.1", folder / "bin"
    tools.mkdir()
    run = [compiler(), *WARNINGS]
    subprocess.run(
        [
            *run, "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1",
            f"-Wl,--version-script={script}", "-o", library, SOURCE, "-lpthread",
        ],
        check=True,
        timeout=120,
    )  # fmt: skip
    if not missing:
        smi = tools / "nvidia-smi"
        run += ["-Wl,-rpath,$ORIGIN/..", "-o", str(smi), str(SMI_SOURCE), str(library)]
        subprocess.run(run, check=True, timeout=120)


def cached_build(missing: Sequence[str] = ()) -> Path:
    """The double in pytest's own cache folder: built by the first who asks."""
    folder = HERE.parents[1] / ".pytest_cache" / "nvml-double"
    folder.mkdir(parents=True, exist_ok=True)
    return build(folder, missing)


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
    library = cached_build(missing)
    return Driver(library, scenario, library / "bin")


def own_cards(count: int) -> list[str]:
    """A scenario of idle cards that no other test and no real run locks."""
    uuids = [f"gpu {index} uuid GPU-{uuid.uuid4()}" for index in range(count)]
    return [f"gpus {count}", *uuids]


def drop_locks(folder: Path) -> None:
    """Delete the lock files of the cards of a scenario in `folder`: nobody will ask for them again."""
    for line in (folder / "scenario").read_text().splitlines():
        if " uuid " in line:
            lock = f"gpu-{line.split()[-1]}.lock"
            Path(f"/dev/shm/cockpit-{os.geteuid()}", lock).unlink(missing_ok=True)


def healthy(count: int = 8) -> list[str]:
    """A scenario of `count` busy H100s with one process each."""
    lines = [f"gpus {count}", "gpu * util 97", "gpu * mem_util 41", "gpu * mem_used 40000",
             "gpu * temp 64", "gpu * power 655.5", "gpu * sm_clock 1980", "gpu * throttle 0x4"]  # fmt: skip
    return lines + [f"gpu {index} proc {os.getpid()} 39000 C" for index in range(count)]
