"""A run's secrets: on stdin and in the job's environment, and in nothing that we show, store or pass as an argument."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.desk import Desk, until

TOKEN = "hf_TOKENvalue12345"
DOTENV = "dotenv-VALUE-9876"
STARS = "*" * len(TOKEN)
MORE = '[env]\nsecrets = ["HF_TOKEN"]\nfile = ".env"\n'


def secretive(desk: Desk, name: str, script: str) -> str:
    desk.file(".env", f"# ours\nDB_PASSWORD={DOTENV}\n")
    return desk.profile(name, script, MORE)


def command_lines() -> str:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                found.append((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
    return "\n".join(found)


def files_with(folder: Path, text: str) -> list[str]:
    mark, found = text.encode(), []
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file() and mark in path.read_bytes():
                found.append(str(path.relative_to(folder)))
    return found


async def test_a_secret_reaches_the_job_and_nothing_else(desk: Desk) -> None:
    split = (
        f"{TOKEN[:6]}''{TOKEN[6:]}"  # the script itself is no secret: it must not hold the value
    )
    check = f'[ "$HF_TOKEN" = {split} ] && echo reached'
    path = secretive(desk, "quiet", f"{check}; touch seen; while [ ! -e go ]; do sleep 0.05; done")
    process = await desk.start("run", path, "--json", env={"HF_TOKEN": TOKEN})
    await until(lambda: (desk.user / "seen").exists(), "the job runs")
    assert TOKEN not in command_lines() and DOTENV not in command_lines()
    assert files_with(desk.user, TOKEN) == files_with(desk.home, TOKEN) == []
    assert files_with(desk.user, DOTENV) == files_with(desk.home, DOTENV) == []
    (desk.user / "go").touch()
    done = await desk.end_of(process)
    assert done.code == 0 and [event["text"] for event in done.named("log")] == ["reached"]


async def test_a_secret_that_the_job_prints_is_covered_wherever_we_show_it(desk: Desk) -> None:
    script = 'printf "a %s b\\n%s\\n" "$HF_TOKEN" "$DB_PASSWORD"; printf %s "$HF_TOKEN" | base64; sleep 0.3'
    path = secretive(desk, "loud", script)
    env = {"HF_TOKEN": TOKEN}
    told, plain = await asyncio.gather(
        desk.call("run", path, "--json", env=env), desk.call("run", path, env=env)
    )
    coded = base64.b64encode(TOKEN.encode()).decode()
    covered = f"a {STARS} b\n{'*' * len(DOTENV)}\n{'*' * len(coded)}\n"
    assert plain.out.decode() == covered
    assert [event["text"] for event in told.named("log")] == covered.splitlines()
    assert [event["offset"] for event in told.named("log")] == [
        0, len(TOKEN) + 5, len(TOKEN) + len(DOTENV) + 6,
    ]  # fmt: skip
    run = told.events[0]["run"]
    raw = (desk.home / "runs" / "here" / run / "log").read_text()
    assert raw == f"a {TOKEN} b\n{DOTENV}\n{coded}\n"
    later = await asyncio.gather(
        desk.call("attach", run, env=env),
        desk.call("attach", run, "--json", env=env),
        desk.call("logs", run, env=env),
        desk.call("ps", "--json", env=env),
    )
    for done in later:
        assert TOKEN not in done.out.decode() + done.err
        assert DOTENV not in done.out.decode() + done.err
        assert coded not in done.out.decode() + done.err
    assert later[0].out.decode() == later[2].out.decode() == covered


async def test_another_computer_that_knows_the_secret_covers_it_too(
    desk: Desk, tmp_path: Path
) -> None:
    path = secretive(desk, "loud", 'echo "$HF_TOKEN"')
    run = (await desk.call("run", path, "--json", env={"HF_TOKEN": TOKEN})).events[0]["run"]
    other = Desk(tmp_path, COCKPIT_HOME=str(tmp_path / "other"))
    os.makedirs(tmp_path / "other")
    (tmp_path / "other" / "hosts.toml").write_text((desk.home / "hosts.toml").read_text())
    done = await other.call("attach", run, env={"HF_TOKEN": TOKEN})
    assert done.out.decode() == STARS + "\n" and done.code == 0


async def test_without_its_secret_nothing_is_started_and_no_keyring_is_waited_for(
    desk: Desk,
) -> None:
    done = await desk.call("run", secretive(desk, "none", "echo never"))
    assert done.code == 69 and "HF_TOKEN" in done.err and "keyring set cockpit HF_TOKEN" in done.err
    assert desk.runs("none") == []


async def test_a_wrong_env_file_names_its_line_and_not_its_text(desk: Desk) -> None:
    path = secretive(desk, "bad", "echo never")
    desk.file(".env", "GOOD=1\nsecret without equals\n")
    done = await desk.call("run", path, env={"HF_TOKEN": TOKEN})
    assert done.code == 78 and "line 2" in done.err and "without equals" not in done.err


KEYRING = f"""
from keyring.backend import KeyringBackend
class Keyring(KeyringBackend):
    priority = 1
    def get_password(self, service, name):
        return {TOKEN!r} if (service, name) == ("cockpit", "HF_TOKEN") else None
    def set_password(self, service, name, password): ...
    def delete_password(self, service, name): ...
"""


@contextmanager
def watched_command_lines(*secrets: str) -> Iterator[set[str]]:
    """What any process of this machine showed of these meanwhile: looked at without a pause, beside the test."""
    shown: set[str] = set()
    looks, done = threading.Semaphore(0), threading.Event()

    def look() -> None:
        while not done.wait(0.002):
            lines = command_lines().split("\n")
            shown.update(line for line in lines if any(each in line for each in secrets))
            looks.release()

    watching = threading.Thread(target=look)
    watching.start()
    try:
        assert looks.acquire(timeout=30.0)
        yield shown
    finally:
        done.set()
        watching.join()


def test_the_watch_sees_a_secret_in_a_command_line() -> None:
    with watched_command_lines(TOKEN) as shown:
        asyncio.run(_show(TOKEN, shown))
    assert any(TOKEN in line for line in shown)


async def _show(text: str, shown: set[str]) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("sh", "-c", "read x", text, stdin=pipe)
    try:
        await until(lambda: bool(shown), "it is seen")
    finally:
        process.kill()
        await process.wait()


async def test_no_secret_is_in_a_command_line_from_start_over_restart_and_hooks_to_stop(
    desk: Desk,
) -> None:
    desk.file("test_backend.py", KEYRING)
    env = {
        "PYTHON_KEYRING_BACKEND": "test_backend.Keyring",
        "PYTHONPATH": str(desk.folder),
    }
    script = (
        "trap 'exit 5' INT; echo $HF_TOKEN >&2; [ $COCKPIT_ATTEMPT = 2 ] || exit 3;"
        " touch seen; while :; do sleep 0.05; done"
    )
    hook = '[ -n "$HF_TOKEN" ] && [ -n "$DB_PASSWORD" ] && echo'
    more = (
        f"[hooks]\nbefore = '{hook} before >>hooks'\nafter = '{hook} after >>hooks'\n"
        '[restart]\non = "on-failure"\nmax = 2\nbackoff = "0s"\n'
    )
    desk.file(".env", f"DB_PASSWORD={DOTENV}\n")
    path = desk.profile("held", script, MORE + more)
    with watched_command_lines(TOKEN, DOTENV) as shown:
        run = (await desk.end_of(await desk.start("run", path, "--detach", env=env))).out.decode()
        await until(lambda: (desk.user / "seen").exists(), "the second attempt runs")
        stopped = await desk.call("stop", run.strip(), env=env)
    assert stopped.code == 0 and shown == set()
    assert (desk.user / "hooks").read_text() == "before\nafter\n"
    assert TOKEN not in stopped.out.decode() + stopped.err
    assert {Path(name).name for name in files_with(desk.user, TOKEN)} == {"log"}
    assert {Path(name).name for name in files_with(desk.home, TOKEN)} <= {"log"}
    assert files_with(desk.home, DOTENV) == files_with(desk.user, DOTENV) == []


CRASH = """
import sys
from cockpit.cli import main
from cockpit.engine.starting import Starter

async def start(self, plan, spec, *more):
    assert spec.secrets["HF_TOKEN"]
    raise RuntimeError(f"{plan!r} {spec!r} {more!r}")

Starter.start = start
sys.exit(main(sys.argv[1:]))
"""


async def test_a_crash_with_secrets_in_memory_tells_none_of_them(desk: Desk) -> None:
    path = secretive(desk, "crash", "echo never")
    crash = desk.file("crash.py", CRASH)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-X", "dev", crash, "run", path,
        cwd=desk.folder, env={**desk.environ, "HF_TOKEN": TOKEN, "PYTHONASYNCIODEBUG": "1"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    done = await desk.end_of(process)
    assert done.code == 70 and "internal" in done.err
    report = (desk.home / "cockpit.log").read_text()
    assert "RuntimeError" in report
    for text in (TOKEN, DOTENV):
        assert text not in report + done.err + done.out.decode()
        assert files_with(desk.home, text) == []
