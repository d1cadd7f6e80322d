from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.errors import HostUnreachable
from cockpit.transport import ssh_options
from cockpit.transport.endpoints import Endpoint, ResolvedHost
from cockpit.transport.ssh_config import parse_jump, resolve

Resolve = Callable[..., ResolvedHost]


@pytest.fixture(params=["ssh -G", "asyncssh"])
def resolved(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Resolve]:
    """Resolve against a config text, by OpenSSH and by the parser for where there is no ssh."""
    if request.param == "asyncssh":
        monkeypatch.setattr("cockpit.transport.ssh_options.shutil.which", lambda _: None)
    elif shutil.which("ssh") is None:
        pytest.skip("ssh is not installed (Debian: apt-get install openssh-client)")
    ssh_options.plain_options.cache_clear()
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(config: str = "", hosts: Any = None, **keys: Any) -> ResolvedHost:
        file = tmp_path / "config"
        file.write_text(config)
        spec = HostSpec(**({"name": HostName("box")} | keys))
        return resolve(spec, hosts, ssh_config=file)

    yield run
    ssh_options.plain_options.cache_clear()


def target(found: ResolvedHost) -> Endpoint:
    assert found.target is not None
    return found.target


def test_what_hosts_toml_says_is_enough(resolved: Resolve, tmp_path: Path) -> None:
    found = resolved(host="203.0.113.5", port=41234, user="root", identity="~/.ssh/vast")
    assert (found.host, found.port, found.user) == ("203.0.113.5", 41234, "root")
    assert found.identity == str(tmp_path / ".ssh" / "vast")
    assert (found.jump, found.local) == (None, False)
    assert target(found).user_known_hosts[0] == tmp_path / ".ssh" / "known_hosts"


def test_an_alias_brings_its_options(resolved: Resolve, tmp_path: Path) -> None:
    found = resolved(
        """
        Host h100
          HostName real.example
          Port 2200
          User ubuntu
          IdentityFile ~/.ssh/%h.key
          IdentityFile ~/.ssh/second
          IdentitiesOnly yes
          HostKeyAlias pod-1
          UserKnownHostsFile ~/kh1 ~/kh2
          PasswordAuthentication no
        """,
        host="h100",
    )
    at = target(found)
    assert (at.address, at.port, at.user) == ("real.example", 2200, "ubuntu")
    assert at.identities == (
        tmp_path / ".ssh" / "real.example.key",
        tmp_path / ".ssh" / "second",
    )
    assert at.identities_given and at.identities_only
    assert (at.key_name, at.key_port) == ("pod-1", 22)
    assert [path.name for path in at.user_known_hosts] == ["kh1", "kh2"]
    assert at.methods == ("publickey", "keyboard-interactive")


def test_a_key_of_hosts_toml_wins_over_the_alias(resolved: Resolve) -> None:
    config = (
        "Host h100\n HostName real.example\n Port 2200\n User ubuntu\n IdentityFile /k/config\n"
    )
    found = resolved(config, host="h100", port=9, user="root", identity="/k/own")
    assert (found.host, found.port, found.user) == ("real.example", 9, "root")
    assert [str(path) for path in target(found).identities] == ["/k/own", "/k/config"]


def test_defaults_yield_to_the_alias(resolved: Resolve) -> None:
    weak = frozenset({"user", "port", "identity"})
    keys = {"user": "root", "port": 9, "identity": "/k/default", "from_defaults": weak}
    config = "Host h100\n Port 2200\n User ubuntu\n IdentityFile /k/config\n"
    said = resolved(config, host="h100", **keys)
    assert (said.port, said.user, said.identity) == (2200, "ubuntu", "/k/config")
    silent = resolved(config, host="other", **keys)
    assert (silent.port, silent.user, silent.identity) == (9, "root", "/k/default")


def test_checking_is_never_switched_off(resolved: Resolve) -> None:
    """The idiom of rented boxes: there is then no file of the person's to ask, and we still ask."""
    for value in ("/dev/null", "none"):
        config = f"Host *\n StrictHostKeyChecking no\n UserKnownHostsFile {value}\n"
        at = target(resolved(config, host="203.0.113.5"))
        assert not any(path.is_file() for path in at.user_known_hosts)


def test_without_options_nothing_is_named(resolved: Resolve) -> None:
    at = target(resolved(host="plain.example"))
    assert not at.identities_given
    assert "id_ed25519" in {path.name for path in at.identities}
    assert at.algorithms == {}
    assert at.proxy_command is None


def test_algorithms_follow_the_config_where_it_says_so(resolved: Resolve) -> None:
    at = target(resolved("Host old\n HostKeyAlgorithms ssh-rsa\n Ciphers aes256-ctr\n", host="old"))
    assert at.algorithms == {"hostkeyalgorithms": ("ssh-rsa",), "ciphers": ("aes256-ctr",)}


def test_a_proxy_command_of_the_config_is_filled_in(resolved: Resolve) -> None:
    config = "Host h\n HostName real.example\n Port 7\n User u\n ProxyCommand nc -x p:1 %h %p %r\n"
    assert target(resolved(config, host="h")).proxy_command == "nc -x p:1 real.example 7 u"


def hops(found: ResolvedHost) -> list[str]:
    return [hop.text for hop in found.jumps]


def test_jumps_of_the_config_are_resolved_and_nest(resolved: Resolve) -> None:
    config = """
        Host target
          ProxyJump inner
        Host inner
          HostName inner.example
          User in
          ProxyJump outer,carol@middle.example:2222
        Host outer
          HostName outer.example
          Port 23
          User out
        """
    assert hops(resolved(config, host="target")) == [
        "out@outer.example:23",
        "carol@middle.example:2222",
        "in@inner.example:22",
    ]


def test_a_jump_of_hosts_toml_wins(resolved: Resolve) -> None:
    config = (
        "Host target\n ProxyJump config.example\n ProxyCommand never\nHost b\n HostName b.example\n"
    )
    gate = HostSpec(HostName("gate"), host="gate.example", user="g", port=2)
    found = resolved(config, {"gate": gate}, host="target", jump="gate,x@b:5,[2001:db8::1]:7")
    assert hops(found)[:2] == ["g@gate.example:2", "x@b.example:5"]
    assert hops(found)[2].endswith("@[2001:db8::1]:7")
    assert target(found).proxy_command is None
    assert found.jump == ",".join(hops(found))


def test_hops_that_were_resolved_before_are_taken(resolved: Resolve) -> None:
    hop = HostSpec(HostName("gate"), host="gate.example", user="g")
    assert hops(resolved(host="target", jump="gate", hops=(hop,))) == ["g@gate.example:22"]


def test_a_loop_of_jumps_is_named(resolved: Resolve) -> None:
    config = "Host a\n ProxyJump b\nHost b\n ProxyJump c\nHost c\n ProxyJump b\n"
    with pytest.raises(HostUnreachable) as caught:
        resolved(config, host="a")
    assert (caught.value.facts["why"], caught.value.facts["host"]) == ("jump_loop", "box")


def test_a_file_with_a_mistake_is_named(resolved: Resolve) -> None:
    with pytest.raises(HostUnreachable) as caught:
        resolved("Host *\n Port twentytwo\n", host="h")
    assert caught.value.code == "bad_ssh_config"
    assert "config" in str(caught.value.facts["text"])


@pytest.mark.parametrize("place", ["host", "user", "jump"])
@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x", "a;b", "$(x)", "`x`", "a b", "a|b", "a\nb", "x'y"]
)
def test_no_word_means_anything_to_a_shell(resolved: Resolve, place: str, text: str) -> None:
    config = "Host *\n ProxyCommand echo %h %r %n\n"
    keys = {"host": "good.example"} | {place: text}
    with pytest.raises(HostUnreachable) as caught:
        resolved(config, **keys)
    assert caught.value.facts["why"] == "bad_name"


def test_this_machine_has_no_server(resolved: Resolve) -> None:
    found = resolved(local=True)
    assert (found.local, found.host, found.port, found.chain) == (True, None, None, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gate", ("gate", None, None)),
        ("u@gate:22", ("gate", "u", 22)),
        ("ssh://u@gate:22", ("gate", "u", 22)),
        ("[::1]", ("::1", None, None)),
        ("u@[::1]:9", ("::1", "u", 9)),
        ("2001:db8::1", ("2001:db8::1", None, None)),
    ],
)
def test_a_jump_is_read_in_every_form(text: str, expected: tuple[Any, ...]) -> None:
    wanted = parse_jump(text)
    assert (wanted.host, wanted.user, wanted.port) == expected


@pytest.mark.parametrize("text", ["gate:port", "gate:0", "gate:70000", "[::1]:x"])
def test_a_jump_with_a_bad_port_is_refused(text: str) -> None:
    with pytest.raises(HostUnreachable):
        parse_jump(text)


def test_home_moves_the_config_that_ssh_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh looks in the account's home; $HOME must isolate all the same."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ssh_options.config_argument() == ("-F", "/dev/null")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host x\n HostName moved.example\n")
    assert resolve(HostSpec(HostName("x"), host="x")).host == "moved.example"
