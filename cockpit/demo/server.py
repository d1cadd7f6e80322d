"""The demo's hosts, in a child process: SSH servers on loopback that run real shells.

It lives as long as its stdin: when the parent is gone, however it went, every process of the demo
and its folder go too.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from cockpit.demo.hosts import DemoHost, demo_hosts
from cockpit.demo.sweep import end_marked_processes

HOST_FILES = Path(__file__).parent / "host_files"
MARK = "COCKPIT_DEMO"
LOCKS = Path(f"/dev/shm/cockpit-{os.getuid()}")
_PIECE = 256 * 1024


class _Server(asyncssh.SSHServer):
    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        """Ports of the host's own jobs may be reached, and no other."""
        return dest_host in ("127.0.0.1", "localhost")


class Host:
    """One simulated host: a home folder, cards, an SSH port."""

    def __init__(self, host: DemoHost, folder: Path, token: str, pace: float = 1.0) -> None:
        """`pace` is how long a second of the demo's script takes."""
        self.host = host
        self._pace = pace
        self._folder = folder
        self._token = token
        self.port = 0

    def prepare(self) -> None:
        gpus = self._folder / "gpus"
        for path in (gpus, self._folder / "bin", self._folder / "home"):
            path.mkdir(parents=True, mode=0o700)
        (gpus / "cards.json").write_text(json.dumps(self.host.cards(self._token)))
        (gpus / "host.json").write_text(json.dumps(self.host.facts(self._pace)))
        for name, script in (("vllm", "vllm_serve.py"), ("train", "train.py")):
            _executable(self._folder / "bin" / name, HOST_FILES / script)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self._folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._folder / "home"),
            "USER": "root",
            "SHELL": "/bin/sh",
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "COCKPIT_DEMO_GPUS": str(self._folder / "gpus"),
            "COCKPIT_PYNVML": str(HOST_FILES),
            "COCKPIT_DEMO_PACE": str(self._pace),
            "PYTHONDONTWRITEBYTECODE": "1",
            MARK: self._token,
        }

    async def listen(self, authorized: Path) -> asyncssh.SSHKey:
        key = asyncssh.generate_private_key("ssh-ed25519")
        listener = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=_Server,
            server_host_keys=[key],
            authorized_client_keys=str(authorized),
            process_factory=self._serve,
            encoding=None,
            keepalive_interval=0,
            compression_algs=None,
        )
        self.port = listener.get_port()
        return key

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command
        if command is None:
            process.stderr.write(b"the demo's hosts run commands only\n")
            process.exit(1)
            return
        child = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment(),
            cwd=self._folder / "home",
            start_new_session=True,
        )  # fmt: skip
        assert child.stdin and child.stdout and child.stderr
        feeding = asyncio.ensure_future(_feed(process, child.stdin))
        outputs = [
            asyncio.ensure_future(_pump(child.stdout, process.stdout)),
            asyncio.ensure_future(_pump(child.stderr, process.stderr)),
        ]
        try:
            code = await child.wait()
            await asyncio.gather(*outputs)
            process.exit(code if code >= 0 else 128 - code)
        finally:
            for task in (feeding, *outputs):
                task.cancel()
            await asyncio.gather(feeding, *outputs, return_exceptions=True)


async def _feed(process: asyncssh.SSHServerProcess[bytes], stdin: asyncio.StreamWriter) -> None:
    """The client's bytes to the command; its end, or the client's, is the command's end of input."""
    try:
        while data := await process.stdin.read(_PIECE):
            stdin.write(data)
            await stdin.drain()
    except (asyncssh.Error, OSError):
        pass
    finally:
        stdin.close()


async def _pump(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    try:
        while data := await source.read(_PIECE):
            target.write(data)
            await target.drain()
    except (asyncssh.Error, OSError):
        while await source.read(_PIECE):
            """The client is gone; the command must not block on a full pipe."""


def _executable(path: Path, script: Path) -> None:
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    path.chmod(0o700)


async def serve(folder: Path, count: int, token: str, pace: float = 1.0) -> None:
    """Open every host, say where they are, and stay until stdin ends or a signal comes."""
    hosts = [Host(each, folder / "hosts" / each.name, token, pace) for each in demo_hosts(count)]
    keys = []
    for host in hosts:
        host.prepare()
        keys.append(await host.listen(folder / "client.pub"))
    _say(hosts, keys)
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, done.set)
    loop.add_reader(sys.stdin.fileno(), _heard_from_parent, done)
    await done.wait()


def _heard_from_parent(done: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        done.set()


def _say(hosts: Sequence[Host], keys: Sequence[asyncssh.SSHKey]) -> None:
    answer = [
        {
            "name": host.host.name,
            "port": host.port,
            "key": key.export_public_key().decode().strip(),
        }
        for host, key in zip(hosts, keys, strict=True)
    ]
    print(json.dumps(answer), flush=True)


def _forget_locks(count: int, token: str) -> None:
    """The supervisor's lock files of our cards: their uuids are this demo's and nobody else's."""
    for host in demo_hosts(count):
        for card in host.cards(token):
            (LOCKS / f"gpu-{card['uuid']}.lock").unlink(missing_ok=True)


def main() -> None:
    folder, count, pace, token = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5]
    os.umask(0o077)
    client = asyncssh.generate_private_key("ssh-ed25519")
    client.write_private_key(folder / "client")
    client.write_public_key(folder / "client.pub")
    try:
        asyncio.run(serve(folder, count, token, float(pace)))
    finally:
        end_marked_processes(MARK, token)
        _forget_locks(count, token)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
