"""The demo's fine-tune: its end is read as fragmentation, and the remedy that can be applied helps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cockpit.demo
from cockpit.domain.scan import Scanner

JOB = Path(cockpit.demo.__file__).parent / "host_files" / "train.py"
PATCH = {"env.set.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def ended(folder: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    """A short run on one simulated card, out of memory at its first step."""
    (folder / "cards.json").write_text(json.dumps([{"total_mib": 24_564}]), encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(JOB), "--steps", "3", "--step-s", "0.01", "--oom-after", "1e-9"],
        capture_output=True,
        env={**os.environ, "COCKPIT_DEMO_GPUS": str(folder), **env},
        timeout=60,
        check=False,
    )


def test_its_first_remedy_is_a_change_of_the_profile(tmp_path: Path) -> None:
    job = ended(tmp_path)
    assert job.returncode == 1
    scanner = Scanner(settled=True)
    found = [*scanner.feed(job.stderr), *scanner.finish()]
    assert [(one.family, one.remedies[0].patch) for one in found] == [("gpu_oom", PATCH)]


def test_with_the_remedy_applied_it_goes_on_to_its_end(tmp_path: Path) -> None:
    job = ended(tmp_path, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert job.returncode == 0
    assert b"OutOfMemoryError" not in job.stderr
