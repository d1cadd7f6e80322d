"""`cockpit run` as its own process, on this machine as the host: output, events, exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path

from tests.desk import Desk


async def test_the_jobs_own_code_is_ours_and_its_output_stays_apart_from_our_words(
    desk: Desk,
) -> None:
    path = desk.profile("e42", "echo hello; echo err >&2; printf 'no newline'; exit 42")
    done = await desk.call("run", path)
    assert (done.code, done.out) == (42, b"hello\nerr\nno newline")
    assert done.err.splitlines()[0].startswith("Starting e42 on here, run e42-"), done.err
    assert done.err.splitlines()[-1] == "e42 on here ended with code 42."


async def test_json_tells_everything_in_the_order_in_which_it_happened(desk: Desk) -> None:
    path = desk.profile("j", "echo one; printf '50%%\\r100%%\\n'; printf last; exit 3")
    done = await desk.call("run", path, "--json")
    assert done.code == 3
    names = done.names
    assert names == ["run.starting", "run.started", "log", "log", "log", "run.exited"]
    assert len({event["run"] for event in done.events}) == 1
    assert {event["host"] for event in done.events} == {"here"}
    assert all(isinstance(event["at_s"], float) for event in done.events)
    logged = [(event["offset"], event["text"]) for event in done.named("log")]
    assert logged == [(0, "one"), (4, "100%"), (13, "last")]
    ended = done.events[-1]
    assert (ended["code"], ended["signal"], ended["reason"], ended["by"]) == (
        3, None, "exited", "job",
    )  # fmt: skip


async def test_a_signal_ends_the_command_with_128_and_its_number(desk: Desk) -> None:
    done = await desk.call("run", desk.profile("sig", "echo on; kill -TERM $$"), "--json")
    assert done.code == 143
    ended = done.events[-1]
    assert (ended["code"], ended["signal"], ended["by"]) == (None, 15, "job")


async def test_a_program_that_is_not_there_ends_with_127(desk: Desk) -> None:
    text = 'name = "x"\nkind = "command"\n[command]\nargv = ["/no/such/program"]\n'
    done = await desk.call("run", desk.file("x.toml", text))
    assert done.code == 127 and b"/no/such/program" in done.out


def odd_bytes(seed: int) -> bytes:
    """Everything that a log may be made of."""
    source = random.Random(seed)
    parts = [b"\r 41%|####      | 812/2000" * 40, "显存不足，请减小批量\n".encode() * 50]
    parts += [
        source.randbytes(200_000),
        b"x" * 2_000_000 + b"\n",
        b"\x1b[31mred\x1b[0m\x1b]0;t\x07\n",
    ]
    parts += [b"\0" * 9000, b"\xff\xfe\n", b"\n" * 100, b"the end, without a newline"]
    return b"".join(parts)


async def test_into_a_pipe_the_output_is_the_jobs_to_the_byte(desk: Desk) -> None:
    data = odd_bytes(1)
    source = desk.folder / "bytes"
    source.write_bytes(data)
    path = desk.profile("bytes", f"cat {source}; cat {source} >&2")
    done = await desk.call("run", path)
    assert done.code == 0
    assert hashlib.sha256(done.out).digest() == hashlib.sha256(data + data).digest()
    (mirror,) = desk.home.glob("runs/here/bytes-*/log")
    assert mirror.read_bytes() == data + data
    printed = await desk.call("logs", "bytes")
    assert printed.out == data + data and printed.code == 0
    part = await desk.call("logs", "bytes", "--from", "1000")
    assert part.out == (data + data)[1000:]
    last = await desk.call("logs", "bytes", "--from", "-1000")
    assert last.out == (data + data)[-1000:]
    attached = await desk.call("attach", "bytes")
    assert attached.out == data + data and attached.code == 0


async def test_detached_it_prints_its_id_once_the_host_has_it(desk: Desk) -> None:
    path = desk.profile("d", "echo begun; exit 7")
    run = await desk.detached(path)
    assert run.startswith("d-") and desk.run_folder(run).is_dir()
    assert (await desk.call("wait", run)).code == 7
    attached = await desk.call("attach", run, "--json")
    assert attached.code == 7
    assert attached.names == ["run.started", "log", "run.exited"]


async def test_detached_json_is_one_run_started_event(desk: Desk) -> None:
    done = await desk.call("run", desk.profile("d", "exit 0"), "--detach", "--json")
    assert done.code == 0
    (event,) = done.events
    assert event["event"] == "run.started" and event["run"].startswith("d-")


async def test_a_dry_run_says_what_would_happen_and_starts_nothing(desk: Desk) -> None:
    more = '[env]\nset = { HF_HOME = "/data/hf" }\nsecrets = ["HF_TOKEN"]\nvenv = "/opt/v"\n[forward]\n8000 = 8000\n'
    path = desk.profile("dry", "echo $HF_TOKEN", more)
    done = await desk.call("run", path, "--dry-run", "--json", env={"HF_TOKEN": "hf_secret_value"})
    (plan,) = done.events
    assert done.code == 0 and "hf_secret_value" not in done.out.decode() + done.err
    assert plan["host"] == "here" and plan["gpus"] == [] and plan["secrets"] == ["HF_TOKEN"]
    assert "HF_HOME" in plan["env"] and plan["forwards"] == [[8000, 8000]]
    assert plan["argv"] == ["/bin/sh", "-c", "echo $HF_TOKEN", "dry"]
    assert "exec /bin/sh -c 'echo $HF_TOKEN' dry" in plan["script"]
    assert 'export PATH=/opt/v/bin:"$PATH"' in plan["script"]
    plain = await desk.call("run", path, "--dry-run")
    assert plan["script"].rstrip() in plain.out.decode()
    assert desk.runs("dry") == []


async def test_the_script_of_a_dry_run_does_what_the_run_does(desk: Desk) -> None:
    more = '[env]\nset = { ODD = "it\'s $HOME `x` \\"q\\"" }\n'
    path = desk.profile("same", 'printf "%s|%s|%s" "$ODD" "$PWD" "$COLUMNS"', more)
    (plan,) = (await desk.call("run", path, "--dry-run", "--json")).events
    ran = await desk.call("run", path)
    script = Path(desk.file("script.sh", plan["script"]))
    by_hand = os.popen(f"env -i HOME={desk.user} PATH={os.environ['PATH']} sh {script}").read()
    assert ran.out.decode() == by_hand == f'it\'s $HOME `x` "q"|{desk.user}|120'


async def test_set_changes_the_profile_and_a_mistake_is_78(desk: Desk) -> None:
    path = desk.profile("s", 'echo "$X"')
    done = await desk.call("run", path, "--set", "env.set.X=42", "--set", "tags=a,b")
    assert done.out == b"42\n"
    wrong = await desk.call("run", path, "--set", "gpus.cuont=2", "--set", "stop.int=15")
    assert wrong.code == 78 and "gpus.cuont" in wrong.err and "stop.int" in wrong.err
    assert wrong.out == b"" and len(desk.runs("s")) == 1


async def test_our_own_failures_have_their_own_codes(desk: Desk) -> None:
    path = desk.profile("f", "echo never")
    assert (await desk.call("run", path, "--host", "nope")).code == 64
    no_cwd = desk.file(
        "cwd.toml", Path(path).read_text().replace("[command]", 'cwd = "/no/dir"\n[command]')
    )
    done = await desk.call("run", no_cwd)
    assert done.code == 69 and "/no/dir" in done.err
    several = desk.file("n.toml", 'nodes = 2\nfrom = ["here", "there"]\n' + Path(path).read_text())
    assert (await desk.call("run", several)).code == 78  # there is no such host
    assert (await desk.call("run", several, "--host", "here")).code == 75
    card = desk.profile("g", "echo never", "[gpus]\ncount = 1\n")
    assert (await desk.call("run", card)).code == 75
    desk.hosts('[hosts.gone]\nhost = "127.0.0.1"\nport = 1\nuser = "x"\n')
    gone = await desk.call("run", path, "--json")
    assert gone.code == 69 and gone.out == b"" and "gone" in gone.err
    desk.hosts("")
    assert (await desk.call("run", path)).code == 64
    assert json.dumps(desk.runs("f")) == "[]"
