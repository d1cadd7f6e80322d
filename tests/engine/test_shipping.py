"""Programs arrive on a host by one channel, are kept there by hash, and never run when they were touched."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cockpit.domain.models import HostName, HostSample
from cockpit.domain.wire import Decoded, SampleDecoder
from cockpit.engine.programs import Program, fallback_script, load_program, packed
from cockpit.engine.shipping import RemoteProgram, start_probe, start_program, start_script
from cockpit.errors import NoPython, ProbeError
from cockpit.transport.local import LocalTransport
from tests.nvml.double import healthy, make_driver
from tests.remote.probing import RunningProbe, running

HERE = HostName("here")
OLD_PYTHON = Path.home() / ".pyenv/versions/2.7.18/bin/python"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this machine's Python will keep what it is sent."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("COCKPIT_PYNVML", raising=False)
    return tmp_path / "cache" / f"cockpit-{os.getuid()}"


@pytest.fixture
async def here(cache: Path) -> AsyncIterator[LocalTransport]:
    transport = LocalTransport(HERE)
    await transport.connect()
    yield transport
    await transport.close()


async def decoded(
    program: RemoteProgram, wanted: Callable[[Decoded], bool], limit_s: float = 20.0
) -> Decoded:
    """The first line of a program that was not read yet which decodes to what is wanted."""
    decoder, data = SampleDecoder(HERE), b""

    async def search() -> Decoded:
        nonlocal data
        while True:
            more = await program.channel.read()
            assert more, program.channel.stderr_tail()
            *lines, data = (data + more).split(b"\n")
            for line in lines:
                found = decoder.feed(line)
                if wanted(found):
                    return found

    return await asyncio.wait_for(search(), limit_s)


def is_sample(found: Decoded) -> bool:
    return isinstance(found, HostSample)


def kept(cache: Path) -> list[Path]:
    return sorted(cache.iterdir())


async def test_what_was_sent_once_is_not_sent_again(here: LocalTransport, cache: Path) -> None:
    first = await start_probe(here)
    sample = await decoded(first, is_sample)
    assert isinstance(sample, HostSample) and first.python.startswith(sample.facts.python)
    await first.channel.close()
    (file,) = kept(cache)
    assert (cache.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    second = await start_probe(here)
    assert (first.cached, second.cached) == (False, True)
    assert await decoded(second, is_sample)
    await second.channel.close()
    assert kept(cache) == [file]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:-9] + b"x" + data[-8:],
        lambda data: b"print('mine')\n" * 400,
        lambda data: b"\0" * len(data),
    ],
)
async def test_a_file_that_was_touched_is_replaced(
    here: LocalTransport, cache: Path, spoil: Callable[[bytes], bytes]
) -> None:
    await (await start_probe(here)).channel.close()
    (file,) = kept(cache)
    good = file.read_bytes()
    file.write_bytes(spoil(good))
    again = await start_probe(here)
    assert not again.cached and await decoded(again, is_sample)
    await again.channel.close()
    assert [path.read_bytes() for path in kept(cache)] == [good]


async def test_a_link_in_place_of_the_file_is_not_followed(
    here: LocalTransport, cache: Path, tmp_path: Path
) -> None:
    await (await start_probe(here)).channel.close()
    (file,) = kept(cache)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    again = await start_probe(here)
    assert not again.cached
    await again.channel.close()
    assert not file.is_symlink() and elsewhere.exists()


def confined(program: Program, prelude: str, after: str = "") -> list[str]:
    """The start script where /tmp and /var/tmp are the test's own; needs to be root."""
    private = ["unshare", "-m", "sh", "-c"]
    if subprocess.run([*private, "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    script = start_script(program, ("--count", "2"), sys.executable, "").decode()
    places = "mount -t tmpfs none /var/tmp; mount -t tmpfs none /tmp; "
    return [*private, f"{places}{prelude}; sh -c {shlex.quote(script)}; {after}"]


def first_answer(probe: RunningProbe) -> bytes:
    probe._read(20.0)
    return probe.lines[0].split()[0]


def send(probe: RunningProbe, program: Program) -> None:
    assert probe.process.stdin is not None
    probe.process.stdin.write(packed(program))
    probe.process.stdin.flush()


@pytest.mark.parametrize(
    "trap",
    [
        "ln -s /tmp/elsewhere $DIR",
        "mkdir -m 777 $DIR && chmod 777 $DIR",
        "mkdir -m 755 $DIR",
        "mkdir -m 700 $DIR && chown 65534 $DIR",
        "echo file > $DIR",
    ],
)
def test_a_folder_that_is_not_ours_alone_is_not_used(trap: str) -> None:
    program = load_program("probe")
    ours = f"cockpit-{os.getuid()}"
    prelude = f"mkdir -p /tmp/cache /tmp/elsewhere; DIR=/tmp/cache/{ours}; {trap}"
    look = f"ls -A /tmp/elsewhere /tmp/cache/{ours}/ 2>/dev/null; ls -A /var/tmp/{ours}"
    env = {**os.environ, "XDG_CACHE_HOME": "/tmp/cache"}
    with running(confined(program, prelude, look), env) as probe:
        assert first_answer(probe) == b"need"
        send(probe, program)
        probe.to_the_end()
    listed = [line for line in probe.lines if line.startswith(b"probe-")]
    assert len(probe.samples) == 2
    assert len(listed) == 1, "kept in /var/tmp and nowhere else"


@pytest.mark.parametrize(
    "closed",
    [
        "mount -o remount,ro /tmp; mount -o remount,ro /var/tmp",
        "mount -o remount,size=16k /tmp; mount -o remount,size=16k /var/tmp",
        "mount -o remount,noexec /tmp; mount -o remount,nr_inodes=1 /tmp; mount -o remount,ro /var/tmp",
    ],
)
def test_a_host_that_keeps_nothing_still_works(closed: str) -> None:
    program = load_program("probe")
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    with running(confined(program, closed, "ls -A /tmp/* /var/tmp/*"), env) as probe:
        assert first_answer(probe) == b"need"
        send(probe, program)
        probe.to_the_end()
    assert len(probe.samples) == 2 and probe.samples[-1].mem_total_mib
    assert not [line for line in probe.lines if line.startswith(b"probe-")]


def test_without_a_home_nothing_is_made_but_in_the_places_for_temporary_files() -> None:
    program = load_program("probe")
    before = set(Path("/").iterdir())
    with running(
        confined(program, "true", "ls -A /var/tmp/*"), {"PATH": os.environ["PATH"]}
    ) as probe:
        assert first_answer(probe) == b"need"
        send(probe, program)
        probe.to_the_end()
    assert [line for line in probe.lines if line.startswith(b"probe-")]
    assert set(Path("/").iterdir()) == before


async def test_pythons_that_are_absent_old_or_broken_are_passed_over(
    here: LocalTransport, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no encodings >&2\nexit 1\n")
    broken.chmod(0o755)
    pythons = ["/nonexistent/python3", "no-such-python", str(broken), "/etc/passwd", sys.executable]
    if OLD_PYTHON.exists():
        pythons.insert(0, str(OLD_PYTHON))
    program = await start_probe(here, pythons=pythons)
    assert program.python.endswith(sys.executable) and await decoded(program, is_sample)
    await program.channel.close()


async def test_without_python_a_program_does_not_start(here: LocalTransport) -> None:
    with pytest.raises(NoPython) as caught:
        await start_program(
            here, load_program("supervisor"), pythons=["/no/python"], python="/mine"
        )
    assert caught.value.facts["looked_for"] == "/mine, /no/python"


async def test_a_program_that_dies_at_once_says_why(here: LocalTransport) -> None:
    program = Program("probe", "import sys; sys.exit('the disk is on fire')", (), "0")
    with pytest.raises(NoPython):
        await start_program(here, program)
    program = Program("probe", "import os; print('hm'); os._exit(3)", (), "0")
    with pytest.raises(ProbeError) as caught:
        await start_program(here, program)
    assert (caught.value.code, caught.value.facts["said"]) == ("probe_failed", "hm")


async def test_a_silent_host_is_given_up(here: LocalTransport) -> None:
    program = Program("probe", "import time; time.sleep(60)", (), "0")
    with pytest.raises(ProbeError) as caught:
        await start_program(here, program, timeout_s=0.3)
    assert caught.value.code == "probe_silent"


@pytest.mark.nvml
@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_without_python_the_shell_streams_nvidia_smi(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"no {shell}")
    driver = make_driver(tmp_path, healthy(3))
    program = load_program("probe")
    script = start_script(program, (), None, fallback_script(0.2), ["/no/python"])
    with running([*shell.split(), "-c", script.decode()], driver.environ()) as probe:
        full = probe.until(lambda sample: bool(sample.gpus))
        known = probe.until(lambda sample: bool(sample.gpus[0].processes and sample.disks))
        assert probe.lines[0] == b"none"
        driver.scenario.say("gpu 1 lost")
        lost = probe.until(lambda sample: sample.gpus[1].error is not None)
        driver.scenario.say("init 18")
        for pid in _nvidia_smis(probe.process.pid):
            os.kill(pid, signal.SIGKILL)
        probe.tell("quit")
        probe.to_the_end()
    assert (full.source, full.facts.driver, full.gpu_error_code) == (
        "nvidia-smi",
        "550.54.14",
        None,
    )
    cards = [(gpu.util_pct, gpu.mem_used_mib, gpu.power_w) for gpu in full.gpus]
    assert cards == [(97, 40_000, 655.5)] * 3
    assert full.mem_total_mib and full.facts.hostname == os.uname().nodename
    (process,) = known.gpus[0].processes
    assert (process.pid, process.visible, process.mem_used_mib) == (os.getpid(), True, 39_000)
    assert any(disk.mount == "/" for disk in known.disks)
    assert [gpu.error_code for gpu in lost.gpus] == [None, "gpu_lost", None]


def _nvidia_smis(session: int) -> list[int]:
    """The nvidia-smi processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            name, _, rest = (entry / "stat").read_text().rpartition(")")
        except (OSError, UnicodeDecodeError):
            continue
        if name.endswith("(nvidia-smi") and int(rest.split()[3]) == session:
            found.append(int(entry.name))
    return found


async def test_without_python_and_driver_the_shell_reads_proc(
    here: LocalTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = await start_probe(here, interval_s=0.2, pythons=["/no/python"])
    sample = await decoded(
        program, lambda found: isinstance(found, HostSample) and found.cpu_pct is not None
    )
    assert isinstance(sample, HostSample)
    assert (sample.source, sample.gpu_error_code, sample.gpus) == ("proc", "no_driver", ())
    await program.channel.close()


@pytest.mark.parametrize("name", ["probe", "supervisor"])
def test_a_program_brings_all_that_it_imports(name: str) -> None:
    program = load_program("probe" if name == "probe" else "supervisor")
    modules = [module for module, _ in program.sources]
    assert modules[0] == name and len(program.digest) == 40
    assert ("pynvml" in modules) and len(set(modules)) == len(modules)
    assert program is load_program("probe" if name == "probe" else "supervisor")
    assert len(packed(program)) < 64 * 1024, "what a first contact costs"
    unpacked = packed(program, plain=True).removeprefix(program.fetch.encode())
    assert unpacked.split(b"\n", 1)[0].endswith(b" p")
