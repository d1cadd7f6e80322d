from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec, add_host, load_hosts, remove_host
from cockpit.config.pasted import Forward
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.errors import ConfigError, UsageError

EXAMPLE = """\
[defaults]
user = "root"
identity = "~/.ssh/id_ed25519"

[hosts.vast-a]
ssh = "ssh -p 41234 root@203.0.113.5 -i ~/.ssh/vast -L 8080:localhost:8080"
price = "0.42 USD/h"
platform = "vast"
tags = ["4090"]

[hosts.h100]
host = "h100.example"
port = 22
user = "ubuntu"
jump = "bastion"
data_dir = "/data"

[hosts.here]
local = true
"""


def write(home: Home, text: str) -> None:
    home.root.mkdir(exist_ok=True)
    home.hosts_toml.write_text(text)


def load(home: Home, text: str) -> dict[HostName, HostSpec]:
    write(home, text)
    return load_hosts(home)


def problems(home: Home, text: str) -> list[tuple[str, int | None, str]]:
    with pytest.raises(ConfigError) as caught:
        load(home, text)
    return [(p.code, p.line, p.key) for p in caught.value.problems]


def test_no_file_means_no_hosts(home: Home) -> None:
    assert load_hosts(home) == {}


def test_a_host_is_its_table_its_pasted_line_and_the_defaults(home: Home) -> None:
    hosts = load(home, EXAMPLE)
    assert list(hosts) == ["vast-a", "h100", "here"]
    vast = hosts[HostName("vast-a")]
    assert (vast.host, vast.port, vast.user) == ("203.0.113.5", 41234, "root")
    assert vast.identity == "~/.ssh/vast"
    assert vast.forwards == (Forward(8080, "localhost", 8080),)
    assert (vast.price_per_h, vast.currency, vast.platform) == (0.42, "USD", "vast")
    assert vast.tags == ("4090",)
    h100 = hosts[HostName("h100")]
    assert (h100.user, h100.identity, h100.data_dir) == ("ubuntu", "~/.ssh/id_ed25519", "/data")
    assert h100.from_defaults == {"identity"}
    assert [hop.host for hop in h100.hops] == ["bastion"]
    here = hosts[HostName("here")]
    assert (here.local, here.user, here.identity) == (True, None, None)


def test_beside_ssh_a_single_key_wins(home: Home) -> None:
    hosts = load(
        home,
        """
        [hosts.a]
        ssh = "ssh -p 1 -i k u@h.example -J j"
        port = 2
        user = "v"
        host = "other.example"
        """,
    )
    spec = hosts[HostName("a")]
    assert (spec.host, spec.port, spec.user) == ("other.example", 2, "v")
    assert (spec.identity, spec.jump) == ("k", "j")


def test_the_platform_is_told_by_the_host_s_name_unless_it_is_said(home: Home) -> None:
    hosts = load(
        home,
        """
        [hosts.a]
        host = "connect.westb.seetacloud.com"
        [hosts.b]
        host = "ssh7.vast.ai"
        platform = "mine"
        [hosts.c]
        host = "notvast.ai"
        """,
    )
    assert [spec.platform for spec in hosts.values()] == ["autodl", "mine", None]


def test_every_mistake_is_told_at_once_with_its_line(home: Home) -> None:
    text = """\
[default]
user = "root"
[hosts.a]
hots = "x"
port = 70000
price = "0.42"
tags = ["ok", "-no", 3]
[hosts.b]
ssh = "ssh x; id"
[hosts.-c]
host = "x"
[hosts.d]
local = true
host = "x"
[hosts.e]
user = "root"
[hosts.f]
host = "a b"
user = "$(id)"
jump = "a;b"
local = "yes"
"""
    assert problems(home, text) == [
        ("unknown_key", 1, "default"),
        ("unknown_key", 4, "hosts.a.hots"),
        ("out_of_range", 5, "hosts.a.port"),
        ("price_needs_hour", 6, "hosts.a.price"),
        ("bad_name", 7, "hosts.a.tags[1]"),
        ("wrong_type", 7, "hosts.a.tags[2]"),
        ("pasted_operator", 9, "hosts.b.ssh"),
        ("bad_name", 10, "hosts.-c"),
        ("local_and_remote", 14, "hosts.d.host"),
        ("no_way_to_host", 15, "hosts.e"),
        ("bad_host", 18, "hosts.f.host"),
        ("bad_user", 19, "hosts.f.user"),
        ("bad_jump", 20, "hosts.f.jump"),
        ("wrong_type", 21, "hosts.f.local"),
    ]


def test_an_unknown_key_is_answered_with_the_one_that_was_meant(home: Home) -> None:
    with pytest.raises(ConfigError) as caught:
        load(home, '[hosts.a]\nhost = "x"\nidentiy = "k"\n')
    (problem,) = caught.value.problems
    assert problem.facts["suggestion"] == "identity"


@pytest.mark.parametrize("text", ["hosts = 3", "defaults = []", "hosts.a = 'x'", "hosts = []"])
def test_a_value_where_a_table_belongs_is_a_mistake(home: Home, text: str) -> None:
    assert problems(home, text)[0][:2] == ("wrong_type", 1)


def test_jumps_are_followed_through_the_file(home: Home) -> None:
    hosts = load(
        home,
        """
        [hosts.inner]
        host = "10.0.0.9"
        jump = "middle"
        [hosts.middle]
        ssh = "ssh -p 2222 m@middle.example -J me@[2001:db8::2]:23,alias"
        """,
    )
    hops = hosts[HostName("inner")].hops
    assert [(hop.user, hop.host, hop.port) for hop in hops] == [
        ("me", "2001:db8::2", 23),
        (None, "alias", None),
        ("m", "middle.example", 2222),
    ]
    assert all(hop.hops == () for hop in hops)
    assert hosts[HostName("middle")].hops == hops[:2]


def test_a_default_jump_is_not_for_the_jump_host_itself(home: Home) -> None:
    hosts = load(
        home,
        """
        [defaults]
        jump = "bastion"
        [hosts.bastion]
        host = "b.example"
        [hosts.a]
        host = "a.example"
        [hosts.here]
        local = true
        """,
    )
    assert hosts[HostName("bastion")].hops == ()
    assert [hop.name for hop in hosts[HostName("a")].hops] == ["bastion"]
    assert hosts[HostName("here")].hops == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[hosts.a]\nhost='a'\njump='a'", "jump_circle"),
        ("[hosts.a]\nhost='a'\njump='b'\n[hosts.b]\nhost='b'\njump='a'", "jump_circle"),
        ("[hosts.a]\nhost='a'\njump='b'\n[hosts.b]\nlocal=true", "jump_is_local"),
        (
            "[hosts.a]\nhost='a'\njump='b,c,d,e,f'\n[hosts.b]\nhost='b'\njump='g,h,i,j'",
            "too_many_hops",
        ),
    ],
)
def test_a_way_that_leads_nowhere_is_a_mistake(home: Home, text: str, code: str) -> None:
    assert {found for found, _line, _key in problems(home, text)} == {code}


# -- adding and removing ----------------------------------------------------------------------


def test_add_records_and_connects_nothing(home: Home) -> None:
    spec, notices = add_host(home, "vast-a", "$ ssh -p 41234 root@203.0.113.5 -i /no/key -A")
    assert spec == load_hosts(home)[HostName("vast-a")]
    assert (spec.host, spec.port) == ("203.0.113.5", 41234)
    assert [notice.code for notice in notices] == ["dropped_agent_forwarding", "key_file_missing"]
    assert 'ssh = "ssh -p 41234' in home.hosts_toml.read_text()


def test_the_file_and_its_folder_are_the_owner_s_alone(home: Home) -> None:
    add_host(home, "a", "ssh a.example")
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.hosts_toml.stat().st_mode) == 0o600


def test_a_key_file_that_is_there_needs_no_word(home: Home, tmp_path: Path) -> None:
    key = tmp_path / "my key"
    key.write_text("")
    _spec, notices = add_host(home, "a", f"ssh -i '{key}' a.example")
    assert notices == ()


@pytest.mark.parametrize("name", ["-a", "", "a b", "a/b", ".a", "é", "a" * 65, "a\n"])
def test_a_name_begins_with_a_letter_or_digit(home: Home, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        add_host(home, name, "ssh a.example")
    assert caught.value.code == "bad_host_name"
    assert not home.hosts_toml.exists()


def test_a_name_that_exists_needs_replace(home: Home) -> None:
    add_host(home, "a", "ssh -p 1 root@a.example")
    with pytest.raises(UsageError) as caught:
        add_host(home, "a", "ssh -p 2 root@a.example")
    assert caught.value.code == "host_exists"
    spec, _notices = add_host(home, "a", "ssh -p 2 root@a.example", replace=True)
    assert spec.port == 2


def test_replace_keeps_what_is_not_the_address(home: Home) -> None:
    write(
        home,
        """\
# my hosts
[hosts.a] # rented on Monday
host = "old.example"
port = 1
user = "me"
identity = "~/.ssh/mine"
price = "0.42 USD/h"  # with disk
""",
    )
    spec, _notices = add_host(home, "a", "ssh -p 2 root@new.example", replace=True)
    assert (spec.host, spec.port, spec.user) == ("new.example", 2, "root")
    assert (spec.identity, spec.price_per_h) == ("~/.ssh/mine", 0.42)
    text = home.hosts_toml.read_text()
    assert "# my hosts" in text
    assert "# rented on Monday" in text
    assert "# with disk" in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        '[defaults]\nuser = "root"\n',
        '[hosts.x]\nhost = "x"\n[defaults]\nuser = "root"\n[hosts.y]\nhost = "y"\n',
        'hosts = { x = { host = "x" } }\n',
        '[hosts]\nx = { host = "x" }\n',
        'hosts.x.host = "x"\n',
        '[hosts]\n[hosts.x]\nhost = "x"',
    ],
)
def test_every_shape_of_file_can_be_added_to(home: Home, text: str) -> None:
    write(home, text)
    before = load_hosts(home)
    add_host(home, "new", "ssh new.example")
    add_host(home, "new2", "ssh new2.example")
    add_host(home, "new", "ssh newer.example", replace=True)
    remove_host(home, "new2")
    after = load_hosts(home)
    assert after.pop(HostName("new")).host == "newer.example"
    assert after == before


def test_a_file_with_mistakes_is_not_touched(home: Home) -> None:
    write(home, "[hosts.a]\nhots = 1\n")
    with pytest.raises(ConfigError):
        add_host(home, "b", "ssh b.example")
    with pytest.raises(ConfigError):
        remove_host(home, "a")
    assert home.hosts_toml.read_text() == "[hosts.a]\nhots = 1\n"


def test_a_host_that_would_break_the_file_is_not_written(home: Home) -> None:
    add_host(home, "a", "ssh a.example -J b")
    before = home.hosts_toml.read_text()
    with pytest.raises(UsageError) as caught:
        add_host(home, "b", "ssh b.example -J a")
    assert caught.value.code == "jump_circle"
    assert home.hosts_toml.read_text() == before


def test_price_and_tags_can_be_given_with_it(home: Home) -> None:
    spec, _notices = add_host(home, "a", "ssh a.example", price="1 EUR/h", tags=("x", "y"))
    assert (spec.price_per_h, spec.currency, spec.tags) == (1.0, "EUR", ("x", "y"))
    with pytest.raises(UsageError):
        add_host(home, "b", "ssh b.example", price="1")
    assert list(load_hosts(home)) == ["a"]


def test_remove_asks_for_a_host_that_is_there(home: Home) -> None:
    add_host(home, "vast-a", "ssh a.example")
    with pytest.raises(UsageError) as caught:
        remove_host(home, "vast-b")
    assert (caught.value.code, caught.value.facts["suggestion"]) == ("host_unknown", "vast-a")
    remove_host(home, "vast-a")
    assert load_hosts(home) == {}


def test_the_way_to_another_host_is_not_removed(home: Home) -> None:
    add_host(home, "gate", "ssh gate.example")
    add_host(home, "inner", "ssh inner.example -J gate")
    with pytest.raises(UsageError) as caught:
        remove_host(home, "gate")
    assert (caught.value.code, caught.value.facts["hosts"]) == ("host_is_jump", ("inner",))
