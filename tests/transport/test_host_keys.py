"""Unknown, changed, revoked, certified: told apart, never accepted silently, at every hop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from cockpit.errors import HostKeyChanged, HostKeyUnknown, HostUnreachable, UsageError
from cockpit.transport.trust import Truster
from tests.servers import Laptop, OpenSshServer, Rules, Server, misbehaving_server, need, openssh

ED, RSA, EC = (
    asyncssh.generate_private_key(kind)
    for kind in ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256")
)
OTHER = asyncssh.generate_private_key("ssh-ed25519")


def fingerprint(key: asyncssh.SSHKey) -> str:
    return key.get_fingerprint("sha256")


def line(name: str, key: asyncssh.SSHKey) -> str:
    return f"{name} " + " ".join(key.export_public_key().decode().split()[:2]) + "\n"


@asynccontextmanager
async def server_with(*keys: asyncssh.SSHKey) -> AsyncIterator[Server]:
    async with misbehaving_server(Rules(open_door=True), host_keys=keys) as server:
        yield server


async def outcome(laptop: Laptop, server: Server, **changes: object) -> str:
    """What connecting comes to: live, unknown or changed."""
    transport = laptop.transport(server, **changes)  # type: ignore[arg-type]
    try:
        await transport.connect()
    except HostKeyUnknown:
        return "unknown"
    except HostKeyChanged:
        return "changed"
    finally:
        await transport.close()
    return "live"


async def test_first_contact_shows_the_ed25519_key(laptop: Laptop) -> None:
    async with server_with(RSA, EC, ED) as server:
        with pytest.raises(HostKeyUnknown) as caught:
            await laptop.transport(server).connect()
    facts = caught.value.facts
    assert (facts["host"], facts["key_type"]) == ("box", "ED25519")
    assert facts["fingerprint"] == fingerprint(ED)
    assert not laptop.home.known_hosts.exists()
    assert (caught.value.code, caught.value.exit_code) == ("host_key_unknown", 77)


async def test_another_key_is_told_with_both_fingerprints(laptop: Laptop) -> None:
    async with server_with(OTHER) as server:
        known = line(f"[127.0.0.1]:{server.port}", ED)
        laptop.home.known_hosts.write_text(known)
        with pytest.raises(HostKeyChanged) as caught:
            await laptop.transport(server).connect()
    facts = caught.value.facts
    assert (facts["known"], facts["fingerprint"]) == (fingerprint(ED), fingerprint(OTHER))
    assert (caught.value.code, caught.value.exit_code) == ("host_key_changed", 77)
    assert laptop.home.known_hosts.read_text() == known


async def test_a_known_key_of_any_type_is_the_one_that_is_shown(laptop: Laptop) -> None:
    """A host that is known by its RSA key is not "changed" because it has an ED25519 key as well."""
    async with server_with(ED, EC, RSA) as server:
        for key in (RSA, EC):
            laptop.home.known_hosts.write_text(line(f"[127.0.0.1]:{server.port}", key))
            transport = laptop.transport(server)
            facts = await transport.connect()
            await transport.close()
            assert facts.fingerprint == fingerprint(key)


async def test_a_host_that_has_no_key_of_the_known_type_is_changed(laptop: Laptop) -> None:
    async with server_with(ED) as server:
        laptop.home.known_hosts.write_text(line(f"[127.0.0.1]:{server.port}", RSA))
        assert await outcome(laptop, server) == "changed"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("[127.0.0.1]:{port}", "", "live"),
        ("", "[127.0.0.1]:{port}", "live"),
        ("127.0.0.1", "127.0.0.1", "unknown"),
        ("[127.0.0.1]:22", "[localhost]:{port}", "unknown"),
        ("@revoked [127.0.0.1]:{port}", "[127.0.0.1]:{port}", "changed"),
        ("[127.0.0.1]:{port}", "@revoked *", "changed"),
    ],
)
async def test_only_name_and_port_vouch_for_a_host(
    laptop: Laptop, ours: str, theirs: str, expected: str
) -> None:
    async with server_with(ED) as server:
        for text, file in (
            (ours, laptop.home.known_hosts),
            (theirs, laptop.user_known_hosts),
        ):
            file.write_text(line(text.format(port=server.port), ED) if text else "")
        assert await outcome(laptop, server) == expected


async def test_a_revoked_key_is_refused_as_such(laptop: Laptop) -> None:
    async with server_with(ED) as server:
        laptop.user_known_hosts.write_text("@revoked " + line("*", ED))
        with pytest.raises(HostKeyChanged) as caught:
            await laptop.transport(server).connect()
    assert caught.value.facts["why"] == "revoked"
    assert caught.value.facts["fingerprint"] == fingerprint(ED)


async def test_a_name_is_not_vouched_for_by_its_address(laptop: Laptop) -> None:
    async with server_with(ED) as server:
        laptop.home.known_hosts.write_text(line(f"[127.0.0.1]:{server.port}", ED))
        assert await outcome(laptop, server, host="localhost") == "unknown"


async def test_two_hosts_on_one_address_are_two_hosts(laptop: Laptop) -> None:
    async with server_with(ED) as first, server_with(OTHER) as second:
        laptop.trust(first)
        assert await outcome(laptop, second) == "unknown"
        laptop.trust(second)
        assert [await outcome(laptop, first), await outcome(laptop, second)] == ["live", "live"]


async def test_an_alias_for_the_key_is_followed(laptop: Laptop) -> None:
    async with server_with(ED) as server:
        laptop.write_config(
            f"Host pod\n HostName 127.0.0.1\n Port {server.port}\n HostKeyAlias pod-7"
        )
        laptop.home.known_hosts.write_text(line("pod-7", ED))
        assert await outcome(laptop, server, host="pod", port=None) == "live"


@pytest.mark.parametrize(
    "config", ["StrictHostKeyChecking no", "StrictHostKeyChecking accept-new", "CheckHostIP no"]
)
async def test_no_config_switches_checking_off(laptop: Laptop, config: str) -> None:
    laptop.write_config(f"Host *\n {config}\n UserKnownHostsFile /dev/null\n")
    async with server_with(ED) as server:
        assert await outcome(laptop, server) == "unknown"
        assert not laptop.home.known_hosts.exists()


@pytest.fixture
async def certified(tmp_path: Path, laptop: Laptop) -> AsyncIterator[OpenSshServer]:
    """An sshd whose host key is signed by OTHER for the name 127.0.0.1."""
    keygen = need("ssh-keygen", "openssh-client")
    OTHER.write_private_key(str(tmp_path / "ca"))
    (tmp_path / "ca").chmod(0o600)
    ED.write_public_key(str(tmp_path / "host.pub"))
    sign = [keygen, "-q", "-s", "ca", "-I", "host", "-h", "-n", "127.0.0.1", "host.pub"]
    signing = await asyncio.create_subprocess_exec(*sign, cwd=tmp_path)
    assert await signing.wait() == 0
    async with openssh(
        tmp_path / "sshd",
        host_key=ED,
        authorized=[laptop.identity],
        options=[f"HostCertificate {tmp_path / 'host-cert.pub'}"],
    ) as server:
        yield server


@pytest.mark.sshd
async def test_an_authority_vouches_for_the_hosts_that_it_names(
    laptop: Laptop, certified: OpenSshServer
) -> None:
    known = laptop.home.known_hosts
    assert await outcome(laptop, certified) == "unknown"
    known.write_text("@cert-authority " + line("[127.0.0.*]:*", OTHER))
    assert await outcome(laptop, certified) == "live"
    known.write_text("@cert-authority " + line("[10.0.0.*]:*", OTHER))
    assert await outcome(laptop, certified) == "unknown"
    known.write_text("@cert-authority " + line("[127.0.0.*]:*", RSA))
    assert await outcome(laptop, certified) != "live"
    known.write_text("@cert-authority " + line("*", OTHER) + "@revoked " + line("*", ED))
    assert await outcome(laptop, certified) != "live"
    known.write_text("@cert-authority " + line("*", OTHER) + "@revoked " + line("*", OTHER))
    assert await outcome(laptop, certified) != "live"


@pytest.mark.sshd
async def test_a_key_that_a_person_trusted_outlives_a_certificate(
    laptop: Laptop, certified: OpenSshServer
) -> None:
    laptop.home.known_hosts.write_text("@cert-authority " + line("*", RSA))
    assert await outcome(laptop, certified) == "changed"
    await truster(laptop, certified).trust(fingerprint(ED))
    assert await outcome(laptop, certified) == "live"


def truster(laptop: Laptop, server: Server, **changes: object) -> Truster:
    return Truster(
        laptop.spec(server, **changes),  # type: ignore[arg-type]
        laptop.home,
        ssh_config=laptop.ssh_config,
        limits=laptop.limits,
    )


async def test_trust_records_what_was_compared(laptop: Laptop) -> None:
    async with server_with(RSA, ED) as server:
        offer = await truster(laptop, server).look()
        assert (offer.fingerprint, offer.known, offer.is_known) == (fingerprint(ED), None, False)
        assert not laptop.home.known_hosts.exists()
        await truster(laptop, server).trust(offer.fingerprint)
        assert await outcome(laptop, server) == "live"
        again = await truster(laptop, server).trust(offer.fingerprint.removeprefix("SHA256:"))
        assert again.is_known
        assert len(laptop.home.known_hosts.read_text().splitlines()) == 1


async def test_trust_refuses_another_key_than_the_one_compared(laptop: Laptop) -> None:
    async with server_with(OTHER) as server:
        with pytest.raises(HostKeyChanged) as caught:
            await truster(laptop, server).trust(fingerprint(ED))
    assert caught.value.facts["why"] == "mismatch"
    assert caught.value.facts["known"] == fingerprint(ED)
    assert caught.value.facts["fingerprint"] == fingerprint(OTHER)
    assert not laptop.home.known_hosts.exists()


async def test_trust_replaces_a_changed_key(laptop: Laptop) -> None:
    async with server_with(OTHER) as server:
        name = f"[127.0.0.1]:{server.port}"
        laptop.home.known_hosts.write_text(line("keep.example", RSA) + line(name, ED))
        assert (await truster(laptop, server).look()).known == fingerprint(ED)
        await truster(laptop, server).trust(fingerprint(OTHER))
        assert await outcome(laptop, server) == "live"
    assert laptop.home.known_hosts.read_text() == line("keep.example", RSA) + line(name, OTHER)


async def test_trust_in_ours_wins_over_an_old_key_of_the_person(laptop: Laptop) -> None:
    async with server_with(OTHER) as server:
        laptop.user_known_hosts.write_text(line(f"[127.0.0.1]:{server.port}", ED))
        assert await outcome(laptop, server) == "changed"
        await truster(laptop, server).trust(fingerprint(OTHER))
        assert await outcome(laptop, server) == "live"


async def test_a_platform_may_show_the_fingerprint_of_another_type(laptop: Laptop) -> None:
    async with server_with(ED, EC, RSA) as server:
        for key in (RSA, EC):
            await truster(laptop, server).trust(fingerprint(key))
            assert await outcome(laptop, server) == "live"


async def test_a_revoked_key_is_never_trusted(laptop: Laptop) -> None:
    async with server_with(ED) as server:
        laptop.home.known_hosts.write_text("@revoked " + line("*", ED))
        with pytest.raises(HostKeyChanged) as caught:
            await truster(laptop, server).trust(fingerprint(ED))
    assert caught.value.facts["why"] == "revoked"


@pytest.mark.parametrize("text", ["", "SHA256:", "MD5:aa:bb", "SHA256:short", "SHA256:" + "!" * 43])
async def test_what_is_no_fingerprint_is_refused_without_connecting(
    laptop: Laptop, text: str
) -> None:
    nobody = Server(1, "root", ED)
    with pytest.raises(UsageError):
        await truster(laptop, nobody).trust(text)


async def test_this_machine_has_no_key_to_trust(laptop: Laptop) -> None:
    with pytest.raises(UsageError):
        await truster(laptop, Server(1, "root", ED), local=True).look()


async def test_trust_of_a_host_that_is_down_says_so(laptop: Laptop) -> None:
    with pytest.raises(HostUnreachable):
        await truster(laptop, Server(1, "root", ED)).trust(fingerprint(ED))
