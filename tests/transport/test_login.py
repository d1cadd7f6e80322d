"""Which keys are offered, what a person is asked, and what a failed login says."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from cockpit.errors import AuthenticationFailed
from cockpit.transport.base import HostTransport, SecretRequest
from cockpit.transport.shared import HANDSHAKES_AT_ONCE
from tests.servers import Identity, Laptop, Rules, Server, misbehaving_server, need, openssh, until


@dataclass(slots=True)
class Person:
    """Gives the prepared answers in turn, and notes what was asked."""

    answers: list[str | None]
    asked: list[SecretRequest] = field(default_factory=list)
    thinking_s: float = 0.0

    async def __call__(self, request: SecretRequest) -> str | None:
        self.asked.append(request)
        await asyncio.sleep(self.thinking_s)
        return self.answers.pop(0) if self.answers else None


async def login(
    laptop: Laptop, server: Server, person: Person | None = None, **changes: Any
) -> HostTransport:
    laptop.trust(server)
    transport = laptop.transport(server, ask_secret=person, **changes)
    await transport.connect()
    await transport.close()
    return transport


async def refused(
    laptop: Laptop, server: Server, person: Person | None = None, **changes: Any
) -> AuthenticationFailed:
    with pytest.raises(AuthenticationFailed) as caught:
        await login(laptop, server, person, **changes)
    return caught.value


def public(*identities: Identity) -> list[asyncssh.SSHKey]:
    return [asyncssh.import_public_key(identity.public) for identity in identities]


async def test_a_key_that_the_host_does_not_know(laptop: Laptop) -> None:
    other = Identity.make(laptop.ssh / "other")
    async with misbehaving_server(Rules(authorized=public(other))) as server:
        error = await refused(laptop, server)
    assert error.facts["why"] == "no_key_accepted"
    assert error.facts["user"] == "tester"
    assert error.facts["files"] == (str(laptop.identity.file),)
    assert error.facts["agent_keys"] == 0
    assert error.facts["methods"] == ("publickey",)


async def test_a_missing_key_file_is_skipped_and_named(laptop: Laptop) -> None:
    gone = str(laptop.ssh / "gone")
    async with misbehaving_server(Rules(authorized=public(laptop.identity))) as server:
        error = await refused(laptop, server, identity=gone)
    assert (error.facts["why"], error.facts["missing_files"]) == ("no_keys", (gone,))


async def test_a_file_that_is_no_key_is_skipped(laptop: Laptop) -> None:
    (laptop.ssh / "junk").write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\n\xff\x00junk")
    async with misbehaving_server(Rules(authorized=public(laptop.identity))) as server:
        error = await refused(laptop, server, identity=str(laptop.ssh / "junk"))
    assert error.facts["why"] == "no_keys"


@pytest.mark.parametrize("format_name", ["openssh", "pkcs8-pem"])
async def test_a_locked_key_is_opened_once_for_all_hosts(laptop: Laptop, format_name: str) -> None:
    file = laptop.ssh / "locked"
    key = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    key.write_private_key(
        str(file), format_name, passphrase="sesame", rounds=4, ignore_few_rounds=True
    )
    person = Person(["wrong", "sesame"])
    async with misbehaving_server(Rules(authorized=[key])) as server:
        laptop.trust(server)
        several = [
            laptop.transport(server, f"box{n}", ask_secret=person, identity=str(file))
            for n in range(4)
        ]
        await asyncio.gather(*(transport.connect() for transport in several))
        await asyncio.gather(*(transport.close() for transport in several))
    assert [request.kind for request in person.asked] == ["passphrase"] * 2
    assert person.asked[0].subject == str(file)


async def test_a_locked_key_without_anyone_to_ask(laptop: Laptop) -> None:
    locked = Identity.make(laptop.ssh / "locked", passphrase="sesame")
    async with misbehaving_server(Rules(authorized=public(locked))) as server:
        error = await refused(laptop, server, identity=str(locked.file))
        assert error.facts["why"] == "passphrase_needed"
        assert error.facts["locked_file"] == str(locked.file)
        declined = await refused(laptop, server, Person([None]), identity=str(locked.file))
        assert declined.facts["why"] == "declined"


async def test_a_passphrase_is_only_asked_for_a_key_that_the_host_would_take(
    laptop: Laptop,
) -> None:
    """ssh sends the public half first; so do we, and spare the person the question."""
    locked = Identity.make(laptop.ssh / "locked", passphrase="sesame")
    person = Person(["sesame"])
    async with misbehaving_server(Rules(authorized=public(laptop.identity))) as server:
        error = await refused(laptop, server, person, identity=str(locked.file))
    assert (error.facts["why"], person.asked) == ("no_key_accepted", [])


async def test_a_person_may_take_longer_than_the_login_may(laptop: Laptop) -> None:
    locked = Identity.make(laptop.ssh / "locked", passphrase="sesame")
    laptop.limits = type(laptop.limits)(connect_s=0.5, login_s=0.5, retry_s=0.01)
    person = Person(["sesame"], thinking_s=2.5)
    async with misbehaving_server(Rules(authorized=public(locked))) as server:
        await login(laptop, server, person, identity=str(locked.file))
    assert len(person.asked) == 1


async def test_a_password_is_asked_once_and_kept_in_memory(laptop: Laptop) -> None:
    rules = Rules(password="hunter2")
    person = Person(["wrong", "hunter2"])
    async with misbehaving_server(rules) as server:
        await login(laptop, server, person)
        await login(laptop, server, person)
    assert rules.passwords_seen == ["wrong", "hunter2", "hunter2"]
    assert [request.kind for request in person.asked] == ["password", "password"]
    assert person.asked[0].subject == f"tester@127.0.0.1:{server.port}"
    assert "hunter2" not in "".join(
        path.read_text(errors="replace") for path in laptop.folder.rglob("*") if path.is_file()
    )


async def test_a_password_that_stopped_working_is_asked_again(laptop: Laptop) -> None:
    rules = Rules(password="old")
    person = Person(["old", "new"])
    async with misbehaving_server(rules) as server:
        await login(laptop, server, person)
        rules.password = "new"
        await login(laptop, server, person)
        await login(laptop, server, person)
    assert len(person.asked) == 2


async def test_no_password_is_sent_when_nobody_is_asked(laptop: Laptop) -> None:
    rules = Rules(password="hunter2")
    async with misbehaving_server(rules) as server:
        error = await refused(laptop, server)
        assert (error.facts["why"], rules.passwords_seen) == ("method_not_offered", [])
        declined = await refused(laptop, server, Person([None]))
        assert (declined.facts["why"], rules.passwords_seen) == ("declined", [])
        wrong = await refused(laptop, server, Person(["a", "b", "c", "d"]))
        assert (wrong.facts["why"], rules.passwords_seen) == ("password_refused", ["a", "b", "c"])


async def test_prompts_of_the_host_are_passed_on_clean(laptop: Laptop) -> None:
    rules = Rules(prompts={"Password: ": "p", "Code\x1b]0;x\x07 \u202e: ": "123456"})
    person = Person(["p", "123456", "123456"])
    async with misbehaving_server(rules) as server:
        await login(laptop, server, person)
        await login(laptop, server, person)
    prompts = [request.prompt for request in person.asked]
    assert prompts[0].strip() == "Password:"
    assert prompts[1].startswith("Code") and "\x1b" not in prompts[1] and "\u202e" not in prompts[1]
    assert len(prompts) == 3, "a one-time code is asked for again, the password is not"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A private ssh-agent; its socket is in SSH_AUTH_SOCK."""
    program = need("ssh-agent", "openssh-client")
    socket = str(tmp_path / "agent.sock")
    process = subprocess.Popen([program, "-D", "-a", socket], stdout=subprocess.DEVNULL)
    while not os.path.exists(socket):
        assert process.poll() is None
    monkeypatch.setenv("SSH_AUTH_SOCK", socket)
    yield socket
    process.terminate()
    process.wait(10)


def add_to(agent: str, identity: Identity) -> None:
    done = subprocess.run(["ssh-add", str(identity.file)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_the_agents_keys_are_offered(laptop: Laptop, agent: str, tmp_path: Path) -> None:
    held = Identity.make(tmp_path / "held")
    add_to(agent, held)
    laptop.ssh_config.write_text("")
    async with misbehaving_server(Rules(authorized=public(held))) as server:
        await login(laptop, server, identity=None)


async def test_a_locked_key_that_the_agent_holds_is_not_asked_for(
    laptop: Laptop, agent: str
) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    for name, passphrase in (("open", None), ("locked", "sesame")):
        key.write_private_key(
            str(laptop.ssh / name), passphrase=passphrase, rounds=4, ignore_few_rounds=True
        )
        (laptop.ssh / name).chmod(0o600)
    add_to(agent, Identity(laptop.ssh / "open"))
    laptop.ssh_config.write_text("Host *\n IdentitiesOnly yes\n")
    async with misbehaving_server(Rules(authorized=[key])) as server:
        await login(laptop, server, identity=str(laptop.ssh / "locked"))


async def test_identities_only_keeps_the_agents_other_keys_back(
    laptop: Laptop, agent: str, tmp_path: Path
) -> None:
    held = Identity.make(tmp_path / "held")
    add_to(agent, held)
    laptop.ssh_config.write_text("Host *\n IdentitiesOnly yes\n")
    async with misbehaving_server(Rules(authorized=public(held))) as server:
        error = await refused(laptop, server)
    assert (error.facts["why"], error.facts["agent_keys"]) == ("no_key_accepted", 1)


async def test_a_dead_agent_is_passed_over(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "dead.sock"))
    laptop.ssh_config.write_text("")
    async with misbehaving_server(Rules(authorized=public(laptop.identity))) as server:
        await login(laptop, server)


@pytest.mark.sshd
async def test_too_many_keys_are_told_from_a_wrong_one(
    tmp_path: Path, laptop: Laptop, agent: str
) -> None:
    for number in range(4):
        add_to(agent, Identity.make(tmp_path / f"key{number}"))
    laptop.ssh_config.write_text("")
    async with openssh(tmp_path / "sshd", options=["MaxAuthTries 2"]) as server:
        error = await refused(laptop, server, identity=None)
    assert (error.facts["why"], error.facts["agent_keys"]) == ("too_many_tries", 4)


@pytest.mark.sshd
async def test_a_certificate_beside_the_key_is_used(tmp_path: Path, laptop: Laptop) -> None:
    keygen = need("ssh-keygen", "openssh-client")
    authority = Identity.make(tmp_path / "ca")
    user = laptop.identity
    sign = [keygen, "-q", "-s", str(authority.file), "-I", "test", "-n", "root,ubuntu"]
    done = await asyncio.create_subprocess_exec(*sign, str(user.file) + ".pub")
    assert await done.wait() == 0
    shutil.copy(str(authority.file) + ".pub", tmp_path / "trusted")
    options = [f"TrustedUserCAKeys {tmp_path / 'trusted'}"]
    async with openssh(tmp_path / "sshd", options=options, user="root") as server:
        await login(laptop, server)


@pytest.mark.sshd
async def test_a_crowd_of_logins_passes_a_strict_sshd(tmp_path: Path, laptop: Laptop) -> None:
    """MaxStartups drops at random from the second login on; with the queue and the retries all get in."""
    options = [f"MaxStartups {HANDSHAKES_AT_ONCE // 2}:20:{HANDSHAKES_AT_ONCE * 3}"]
    async with openssh(tmp_path / "sshd", authorized=[laptop.identity], options=options) as server:
        laptop.trust(server)
        crowd = [laptop.transport(server, f"box{n}") for n in range(30)]
        await asyncio.gather(*(transport.connect() for transport in crowd))
        assert all(transport.connected for transport in crowd)
        await asyncio.gather(*(transport.close() for transport in crowd))


async def test_at_most_eight_log_in_at_once(laptop: Laptop) -> None:
    rules = Rules(authorized=public(laptop.identity))
    rules.gate.clear()
    async with misbehaving_server(rules) as server:
        laptop.trust(server)
        crowd = [laptop.transport(server, f"box{n}") for n in range(20)]
        waiting = [asyncio.ensure_future(transport.connect()) for transport in crowd]
        await until(lambda: _connections(server.port) >= HANDSHAKES_AT_ONCE)
        await asyncio.sleep(0.2)
        assert _connections(server.port) == HANDSHAKES_AT_ONCE
        rules.gate.set()
        await asyncio.gather(*waiting)
        await asyncio.gather(*(transport.close() for transport in crowd))


def _connections(port: int) -> int:
    """Established connections to a loopback port."""
    wanted = f"0100007F:{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[2] == wanted and line.split()[3] == "01" for line in lines)
