from __future__ import annotations

import pytest

from cockpit.config.pasted import Dropped, Forward, PastedHost, parse_pasted, read_pasted
from cockpit.errors import ExitCode, UsageError

IP = "203.0.113.5"
V6 = "2001:db8::1"

ACCEPTED = [
    # plain
    ("ssh root@203.0.113.5", PastedHost(IP, user="root")),
    ("ssh 203.0.113.5", PastedHost(IP)),
    ("ssh h100", PastedHost("h100")),
    ("ssh h100.example", PastedHost("h100.example")),
    ("  $ ssh root@203.0.113.5  \n", PastedHost(IP, user="root")),
    ("$\u00a0ssh\u00a0root@203.0.113.5", PastedHost(IP, user="root")),
    ("/usr/bin/ssh root@203.0.113.5", PastedHost(IP, user="root")),
    ("ssh -- root@203.0.113.5", PastedHost(IP, user="root")),
    ("ssh root@203.0.113.5 # my box", PastedHost(IP, user="root")),
    # vast.ai
    (
        "ssh -p 41234 root@203.0.113.5 -L 8080:localhost:8080",
        PastedHost(IP, 41234, "root", forwards=(Forward(8080, "localhost", 8080),)),
    ),
    ("ssh -p 25926 root@ssh7.vast.ai", PastedHost("ssh7.vast.ai", 25926, "root")),
    # RunPod
    (
        "ssh root@203.0.113.77 -p 17344 -i ~/.ssh/id_ed25519",
        PastedHost("203.0.113.77", 17344, "root", "~/.ssh/id_ed25519"),
    ),
    (
        "ssh k3x9q7demo01-64410f2a@ssh.runpod.io -i ~/.ssh/id_ed25519",
        PastedHost("ssh.runpod.io", None, "k3x9q7demo01-64410f2a", "~/.ssh/id_ed25519"),
    ),
    (
        "ssh -i /home/me/.runpod/ssh/runpodctl-ssh-key root@203.0.113.77 -p 17344",
        PastedHost("203.0.113.77", 17344, "root", "/home/me/.runpod/ssh/runpodctl-ssh-key"),
    ),
    # Lambda, Hyperstack, Paperspace, TensorDock, Prime
    (
        "ssh -i 'my keys/lambda.pem' ubuntu@198.51.100.44",
        PastedHost("198.51.100.44", None, "ubuntu", "my keys/lambda.pem"),
    ),
    (
        'ssh -i "$HOME/.ssh/hyperstack key" ubuntu@198.51.100.90',
        PastedHost("198.51.100.90", None, "ubuntu", "~/.ssh/hyperstack key"),
    ),
    (
        "ssh -i ${HOME}/.ssh/k paperspace@psabc123.paperspacegradient.com",
        PastedHost("psabc123.paperspacegradient.com", None, "paperspace", "~/.ssh/k"),
    ),
    ("ssh -p 20014 user@203.0.113.140", PastedHost("203.0.113.140", 20014, "user")),
    ("ssh ubuntu@203.0.113.201 -p 22", PastedHost("203.0.113.201", 22, "ubuntu")),
    # AutoDL
    (
        "ssh -p 31022 root@connect.westb.seetacloud.com",
        PastedHost("connect.westb.seetacloud.com", 31022, "root"),
    ),
    # without ssh
    ("root@203.0.113.5 -p 41234", PastedHost(IP, 41234, "root")),
    ("root@203.0.113.5", PastedHost(IP, user="root")),
    ("root@203.0.113.5:41234", PastedHost(IP, 41234, "root")),
    ("-p 41234 root@203.0.113.5", PastedHost(IP, 41234, "root")),
    ("203.0.113.5:41234", PastedHost(IP, 41234)),
    ("h100.example -p 2203", PastedHost("h100.example", 2203)),
    # URLs
    ("ssh://root@203.0.113.5:41234", PastedHost(IP, 41234, "root")),
    ("ssh ssh://root@203.0.113.5:41234/", PastedHost(IP, 41234, "root")),
    ("SSH://h100.example", PastedHost("h100.example")),
    ("ssh ssh://root@[2001:db8::1]:41234", PastedHost(V6, 41234, "root")),
    # IPv6
    ("ssh root@2001:db8::1", PastedHost(V6, user="root")),
    ("ssh -p 41234 2001:db8::1", PastedHost(V6, 41234)),
    ("ssh root@[2001:db8::1] -p 41234", PastedHost(V6, 41234, "root")),
    ("root@[2001:db8::1]:41234", PastedHost(V6, 41234, "root")),
    ("2001:db8::1 -p 41234", PastedHost(V6, 41234)),
    ("ssh fe80::1%eth0", PastedHost("fe80::1%eth0")),
    # joined options, -o, options after the host
    ("ssh -p2203 -lroot 203.0.113.5", PastedHost(IP, 2203, "root")),
    ("ssh -oPort=2205 -oUser=root 203.0.113.5", PastedHost(IP, 2205, "root")),
    ('ssh -o "Port 2205" -o \'User = root\' 203.0.113.5', PastedHost(IP, 2205, "root")),
    ("ssh 203.0.113.5 -l root -p 2203", PastedHost(IP, 2203, "root")),
    ("ssh -o HostName=203.0.113.5 -p 2203 root@box", PastedHost(IP, 2203, "root")),
    (
        'ssh -o IdentityFile="~/.ssh/a key" root@203.0.113.5',
        PastedHost(IP, None, "root", "~/.ssh/a key"),
    ),
    (
        r"ssh -i ~/my\ keys/k root@203.0.113.5",
        PastedHost(IP, None, "root", "~/my keys/k"),
    ),
    # the first value of an option wins, as for OpenSSH
    ("ssh -p 1 -p 2 -l a b@203.0.113.5", PastedHost(IP, 1, "a")),
    ("ssh ssh://203.0.113.5:1 -p 2", PastedHost(IP, 1)),
    # jumps
    ("ssh -J bastion root@203.0.113.5", PastedHost(IP, None, "root", jump="bastion")),
    (
        "ssh -J me@b1.example:2222,b2 root@203.0.113.5",
        PastedHost(IP, None, "root", jump="me@b1.example:2222,b2"),
    ),
    ("ssh -oProxyJump=bastion 203.0.113.5", PastedHost(IP, jump="bastion")),
    ("ssh -J none 203.0.113.5", PastedHost(IP)),
    ("ssh -J ssh://me@[2001:db8::2]:22 h", PastedHost("h", jump="ssh://me@[2001:db8::2]:22")),
    # forwards
    (
        "ssh -L8080:127.0.0.1:80 -L '[::1]:9:[2001:db8::9]:10' h",
        PastedHost("h", forwards=(Forward(8080, "127.0.0.1", 80), Forward(9, "2001:db8::9", 10))),
    ),
    (
        "ssh -o 'LocalForward 8080 localhost:80' h",
        PastedHost("h", forwards=(Forward(8080, "localhost", 80),)),
    ),
    ("ssh corp.user@sso.example@gw.example", PastedHost("gw.example", user="corp.user@sso.example")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), ACCEPTED, ids=[line for line, _ in ACCEPTED])
def test_a_form_that_platforms_show(line: str, expected: PastedHost) -> None:
    assert parse_pasted(line) == expected


DROPPED = [
    ("ssh -o StrictHostKeyChecking=no h", "-o StrictHostKeyChecking=no", "host_key_check"),
    ("ssh -oUserKnownHostsFile=/dev/null h", "-o UserKnownHostsFile=/dev/null", "host_key_check"),
    ("ssh -A h", "-A", "agent_forwarding"),
    ("ssh -o ForwardAgent=yes h", "-o ForwardAgent=yes", "agent_forwarding"),
    ("ssh -X h", "-X", "x11"),
    ("ssh -Y h", "-Y", "x11"),
    ("ssh -R 80:localhost:80 h", "-R 80:localhost:80", "remote_forward"),
    ("ssh -t h", "-t", "terminal"),
    ("ssh -N h", "-N", "no_command"),
    ("ssh -D 1080 h", "-D 1080", "other_forward"),
    ("ssh h nvidia-smi -L", "nvidia-smi -L", "remote_command"),
    ("ssh h 'cd /x && python train.py; exit'", "cd /x && python train.py; exit", "remote_command"),
    ("ssh h -p 22 ls -p 23", "ls -p 23", "remote_command"),
    ("ssh h -p 22 -- ls -p 23", "ls -p 23", "remote_command"),
    ("ssh -i a -i b h", "-i b", "second_identity"),
    ("ssh -o ServerAliveInterval=60 h", "-o ServerAliveInterval=60", "not_needed"),
    ("ssh -v h", "-v", "not_needed"),
    ("ssh -c aes128-ctr h", "-c aes128-ctr", "not_needed"),
    ("ssh -E /tmp/log h", "-E /tmp/log", "not_needed"),
    ("ssh -L 0.0.0.0:80:localhost:80 h", "0.0.0.0", "bind_address"),
    ("ssh -L '*:80:localhost:80' h", "*", "bind_address"),
    ("ssh -L 10.0.0.1:80:localhost:80 h", "10.0.0.1", "bind_address"),
    ("ssh -L /tmp/s:localhost:80 h", "-L /tmp/s:localhost:80", "socket_forward"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "text", "why"), DROPPED, ids=[line for line, _, _ in DROPPED])
def test_what_is_left_out_is_said(line: str, text: str, why: str) -> None:
    assert parse_pasted(line).dropped == (Dropped(text, why),)


def test_a_cluster_of_flags_ends_with_an_option_that_takes_a_value() -> None:
    pasted = parse_pasted("ssh -fNL 8080:localhost:80 -Ap2203 h")
    assert pasted == PastedHost(
        "h",
        2203,
        forwards=(Forward(8080, "localhost", 80),),
        dropped=(
            Dropped("-f", "no_command"),
            Dropped("-N", "no_command"),
            Dropped("-A", "agent_forwarding"),
        ),
    )


HOSTILE = [
    # runs or loads something here
    ("ssh -o ProxyCommand='nc %h %p' h", "refused_option"),
    ("ssh -oProxyCommand=id h", "refused_option"),
    ("ssh -o proxycommand=id h", "refused_option"),
    ("ssh -o 'ProxyCommand id' h", "refused_option"),
    ("ssh -o ' ProxyCommand = id' h", "refused_option"),
    ("ssh h -oProxyCommand=id", "refused_option"),
    ("ssh -voProxyCommand=id h", "refused_option"),
    ("ssh -o LocalCommand=id h", "refused_option"),
    ("ssh -o PermitLocalCommand=yes h", "refused_option"),
    ("ssh -o KnownHostsCommand=id h", "refused_option"),
    ("ssh -o PKCS11Provider=/tmp/x.so h", "refused_option"),
    ("ssh -o SecurityKeyProvider=/tmp/x.so h", "refused_option"),
    ("ssh -o Include=/tmp/x h", "refused_option"),
    ("ssh -F /tmp/config h", "refused_option"),
    ("ssh -F/tmp/config h", "refused_option"),
    ("ssh -I /tmp/x.so h", "refused_option"),
    ("ssh -o 'Proxy\\Command=id' h", "unknown_option"),
    ("ssh -Z h", "unknown_option"),
    ("ssh --help h", "unknown_option"),
    # another program
    ("curl http://203.0.113.5/x.sh", "another_program"),
    ("scp root@203.0.113.5:/x .", "another_program"),
    ("sudo ssh h", "another_program"),
    ("sshpass -p secret ssh h", "another_program"),
    ("/tmp/ssh h", "another_program"),
    ("TERM=xterm ssh h", "another_program"),
    ("x.sh y", "another_program"),
    ("'' h", "another_program"),
    # shell operators outside quotes, and substitution within double ones
    ("ssh h; rm -rf ~", "operator"),
    ("ssh h && id", "operator"),
    ("ssh h | tee x", "operator"),
    ("ssh h > ~/.bashrc", "operator"),
    ("ssh h < /dev/zero", "operator"),
    ("ssh h & id", "operator"),
    ("ssh (id)", "operator"),
    ("ssh root@<ip> -p <port>", "operator"),
    ("ssh `id`", "substitution"),
    ("ssh $(id)", "substitution"),
    ('ssh "$(id)"', "substitution"),
    ('ssh h "`id`"', "substitution"),
    ("ssh $HOST", "variable"),
    ('ssh "${HOST}"', "variable"),
    ("ssh root@$HOME/x", "variable"),
    ("ssh $'h'", "variable"),
    ("ssh 'h", "unfinished"),
    ('ssh "h', "unfinished"),
    ("ssh h\\", "unfinished"),
    # bad names
    ("ssh -- -oProxyCommand=id", "bad_host"),
    ("ssh root@-oProxyCommand=id", "bad_host"),
    ("ssh ''", "bad_host"),
    ("ssh root@", "bad_host"),
    ("ssh 'h;id'", "bad_host"),
    ("ssh '$(id)'", "bad_host"),
    ("ssh h/../x", "bad_host"),
    ("ssh root@hôte", "bad_host"),
    ("ssh .hidden", "bad_host"),
    ("ssh '[h100]'", "bad_host"),
    ("ssh '[2001:db8::1'", "bad_host"),
    ("ssh '[2001:db8::1]x'", "bad_host"),
    ("ssh 2001:db8::zz", "bad_host"),
    ("ssh ssh://h/path", "bad_host"),
    ("ssh -o HostName=-x h", "bad_host"),
    ("ssh -o HostName=%h.example h", "bad_host"),
    ("ssh " + "a" * 254, "bad_host"),
    ("ssh -l -x h", "bad_user"),
    ("ssh 'a b@h'", "bad_user"),
    ("ssh '$(id)@h'", "bad_user"),
    ("ssh -oUser=%d h", "bad_user"),
    ("ssh @h", "bad_user"),
    ("ssh ssh://root:secret@h", "password_in_url"),
    ("ssh -J -x h", "bad_host"),
    ("ssh -J 'a;id' h", "bad_host"),
    ("ssh -J a,,b h", "bad_host"),
    ("ssh -J ' ' h", "bad_host"),
    ("ssh -J 'a b@h' h", "bad_user"),
    # bad ports and forwards
    ("ssh -p 0 h", "bad_port"),
    ("ssh -p 65536 h", "bad_port"),
    ("ssh -p ssh h", "bad_port"),
    ("ssh -p -1 h", "bad_port"),
    ("ssh -p +22 h", "bad_port"),
    ("ssh -p ２２ h", "bad_port"),
    ("ssh -p '' h", "bad_port"),
    ("ssh -p 000022 h", "bad_port"),
    ("ssh root@h:99999", "bad_port"),
    ("ssh h:", "bad_port"),
    ("ssh -J b:0 h", "bad_port"),
    ("ssh -L 80 h", "bad_forward"),
    ("ssh -L 80:localhost h", "bad_forward"),
    ("ssh -L 0:localhost:80 h", "bad_port"),
    ("ssh -L '$(id):80:localhost:80' h", "bad_forward"),
    ("ssh -L 80:-x:80 h", "bad_host"),
    # nothing, or not one line
    ("", "empty"),
    ("   ", "empty"),
    ("# ssh h", "empty"),
    ("ssh", "no_host"),
    ("ssh -p 22", "no_host"),
    ("ssh --", "bad_host"),
    ("ssh h -p", "missing_value"),
    ("ssh -i '' h", "missing_value"),
    ("ssh -o Port= h", "missing_value"),
    ("ssh h\nrm -rf ~", "control_character"),
    ("ssh h\r\nid", "control_character"),
    ("ssh\th", "control_character"),
    ("ssh h\0", "control_character"),
    ("ssh 'h\x1b]0;x\x07'", "control_character"),
    ("ssh h\u202e", "control_character"),
    ("ssh h\u200bx", "control_character"),
    ("ssh h\u2028id", "control_character"),
    ("ssh " + "h" * 5000, "too_long"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code"), HOSTILE, ids=[repr(line[:40]) for line, _ in HOSTILE])
def test_a_line_that_is_not_one_plain_ssh_command_is_refused(line: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pasted(line)
    assert caught.value.code == f"pasted_{code}"
    assert caught.value.exit_code is ExitCode.USAGE


def test_the_word_that_is_to_blame_is_short_and_harmless() -> None:
    with pytest.raises(UsageError) as caught:
        parse_pasted("ssh '" + "x" * 3000 + " y'")
    word = caught.value.facts["word"]
    assert isinstance(word, str)
    assert len(word) <= 60


@pytest.mark.parametrize(
    ("typed", "seen", "code"),
    [
        ("s", PastedHost(""), "pasted_another_program"),
        ("ssh", PastedHost(""), "pasted_no_host"),
        ("ssh -p", PastedHost(""), "pasted_missing_value"),
        ("ssh -p 41234", PastedHost("", 41234), "pasted_no_host"),
        ("ssh -p 41234 root@", PastedHost("", 41234), "pasted_bad_host"),
        ("ssh -p 41234 root@h -i", PastedHost("h", 41234, "root"), "pasted_missing_value"),
        ("ssh -p 41234 root@h -o ProxyCommand=x", PastedHost("h", 41234, "root"), "pasted_refused_option"),
        ("ssh root@h", PastedHost("h", None, "root"), None),
    ],
)  # fmt: skip
def test_a_line_that_is_being_typed_shows_what_is_understood(
    typed: str, seen: PastedHost, code: str | None
) -> None:
    pasted, problem = read_pasted(typed)
    assert pasted == seen
    assert (problem.code if problem else None) == code


def test_no_line_makes_the_reader_stumble() -> None:
    """Every cut and every doubled character of every known line is taken or refused by a UsageError."""
    lines = [line for line, _ in ACCEPTED] + [line for line, _ in HOSTILE if len(line) < 80]
    for line in lines:
        for at in range(len(line)):
            read_pasted(line[:at])
            read_pasted(line[:at] + line[at] * 2 + line[at + 1 :])
            read_pasted(line[:at] + "'\"" + line[at:])
