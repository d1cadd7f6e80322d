"""A probe of a test: started as it is shipped, on the NVML double, its lines decoded as they come."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.wire import Hello, ProbeFault, SampleDecoder
from cockpit.engine.programs import load_program, packed
from cockpit.engine.shipping import start_script
from tests.nvml.double import Driver

LIMIT_S = 30.0
REMOTE = Path(__file__).resolve().parents[2] / "cockpit" / "remote"


def old_pythons() -> list[str]:
    """Every other Python on this machine that the probe has to run on, besides our own."""
    found = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    return [sys.executable, *map(str, found)]


class RunningProbe:
    """A probe's process, its hello, and its samples so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.decoder = SampleDecoder(HostName("box"))
        self.hello: Hello | None = None
        self.samples: list[HostSample] = []
        self.faults: list[ProbeFault] = []
        self.lines: list[bytes] = []
        self._data = b""
        self._selector = selectors.DefaultSelector()
        assert process.stdout is not None
        self._out = process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self.ended = False

    def until(self, wanted: Callable[[HostSample], bool], limit_s: float = LIMIT_S) -> HostSample:
        """The first sample from now on that is as wanted."""
        deadline_s = time.monotonic() + limit_s
        seen = len(self.samples)
        while True:
            for sample in self.samples[seen:]:
                if wanted(sample):
                    return sample
            seen = len(self.samples)
            assert not self.ended and time.monotonic() < deadline_s, self.lines[-3:]
            self._read(deadline_s - time.monotonic())

    def next(self, count: int = 1) -> HostSample:
        """The sample `count` samples from now."""
        wanted = len(self.samples) + count
        return self.until(lambda _: len(self.samples) >= wanted)

    def first(self) -> HostSample:
        """The probe's first sample."""
        return self.samples[0] if self.samples else self.next()

    def tell(self, words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()

    def to_the_end(self) -> int:
        """Read until stdout ends; the exit code."""
        deadline_s = time.monotonic() + LIMIT_S
        while not self.ended:
            assert time.monotonic() < deadline_s
            self._read(deadline_s - time.monotonic())
        return self.process.wait(LIMIT_S)

    def _read(self, limit_s: float) -> None:
        if not self._selector.select(max(0.0, limit_s)):
            return
        data = os.read(self._out, 1 << 16)
        self.ended = not data
        *lines, self._data = (self._data + data).split(b"\n")
        self.lines += lines
        for line in lines:
            decoded = self.decoder.feed(line)
            if isinstance(decoded, Hello):
                self.hello = decoded
            elif isinstance(decoded, HostSample):
                self.samples.append(decoded)
            elif isinstance(decoded, ProbeFault):
                self.faults.append(decoded)

    def close(self) -> None:
        """Close stdin: the probe has to end by that alone."""
        self._selector.close()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@contextmanager
def running(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[RunningProbe]:
    """A probe by its command; it must be gone at the end."""
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env), start_new_session=True
    )
    probe = RunningProbe(process)
    try:
        yield probe
    finally:
        probe.close()


@contextmanager
def probing(
    driver: Driver, *, python: str = sys.executable, interval: str = "0.2", home: Path | None = None
) -> Iterator[RunningProbe]:
    """A probe as a host runs it: the start script by sh, the program sent when it is asked for."""
    program = load_program("probe")
    script = start_script(program, ("--interval", interval), python, "")
    cache = str(home or driver.scenario.path.parent)
    env = driver.environ(HOME=cache, XDG_CACHE_HOME=f"{cache}/cache")
    env.pop("COCKPIT_PYNVML", None)
    with running(["sh", "-c", script.decode()], env) as probe:
        probe._read(LIMIT_S)
        if probe.lines and probe.lines[0].startswith(b"need"):
            assert probe.process.stdin is not None
            probe.process.stdin.write(packed(program))
            probe.process.stdin.flush()
        probe.faults.clear()
        yield probe


def card(sample: HostSample, index: int = 0) -> GpuSample:
    (found,) = (gpu for gpu in sample.gpus if gpu.index == index)
    return found
