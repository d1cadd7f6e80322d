from __future__ import annotations

import multiprocessing
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from cockpit.errors import StorageError
from cockpit.transport.endpoints import Endpoint
from cockpit.transport.known_hosts import (
    KnownKeys,
    hashed_name,
    known_keys,
    record_key,
)

KEY = "KEY-A"
"""Stands for the first key: a random one in a test's name would differ between workers."""
KEYS = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(4)]
A, B, C, D = (" ".join(key.export_public_key().decode().split()[:2]) for key in KEYS)
SALT = bytes(range(20))
BOX = Endpoint(name="box", address="203.0.113.5", port=41234, user="root")
PLAIN = replace(BOX, address="h100.example", port=22)


def asked(tmp_path: Path, ours: str, theirs: str = "", endpoint: Endpoint = BOX) -> KnownKeys:
    own, user = tmp_path / "ours", tmp_path / "theirs"
    own.write_text(ours)
    user.write_text(theirs)
    return known_keys(replace(endpoint, user_known_hosts=(user,)), own)


def letters(known: KnownKeys) -> str:
    names = {key.public_data: name for key, name in zip(KEYS, "ABCD", strict=True)}
    return "".join(names[key.public_data] for key in known.trusted)


@pytest.mark.parametrize(
    ("line", "endpoint", "expected"),
    [
        (f"[203.0.113.5]:41234 {KEY}", BOX, "A"),
        (f"[other]:1,[203.0.113.5]:41234 {KEY} a comment", BOX, "A"),
        (f"203.0.113.5 {KEY}", BOX, ""),
        (f"[203.0.113.5]:22 {KEY}", BOX, ""),
        (f"[203.0.113.5]:4123 {KEY}", BOX, ""),
        (f"{hashed_name('[203.0.113.5]:41234', SALT).decode()} {KEY}", BOX, "A"),
        (f"{hashed_name('203.0.113.5', SALT).decode()} {KEY}", BOX, ""),
        (f"h100.example {KEY}", PLAIN, "A"),
        (f"[h100.example]:22 {KEY}", PLAIN, "A"),
        (f"H100.Example {KEY}", PLAIN, "A"),
        (f"{hashed_name('h100.example', SALT).decode()} {KEY}", PLAIN, "A"),
        (f"*.example {KEY}", PLAIN, "A"),
        (f"*.example,!h100.example {KEY}", PLAIN, ""),
        (f"h?00.example {KEY}", PLAIN, "A"),
        (f"*.example {KEY}", replace(PLAIN, port=2222), ""),
        (f"[*.example]:2222 {KEY}", replace(PLAIN, port=2222), "A"),
        (f"# h100.example {KEY}", PLAIN, ""),
        ("h100.example ssh-ed25519 AAAAnonsense", PLAIN, ""),
        ("h100.example", PLAIN, ""),
        (f"|1|bad|hash {KEY}", PLAIN, ""),
        (f"pod {KEY}", replace(BOX, host_key_alias="pod"), "A"),
        (f"[203.0.113.5]:41234 {KEY}", replace(BOX, host_key_alias="pod"), ""),
        (f"[2001:db8::1]:41234 {KEY}", replace(BOX, address="2001:DB8::1"), "A"),
    ],
)
def test_a_host_is_looked_up_by_name_and_port_only(
    tmp_path: Path, line: str, endpoint: Endpoint, expected: str
) -> None:
    written = line.replace(KEY, A) + "\n"
    assert letters(asked(tmp_path, written, "", endpoint)) == expected
    assert letters(asked(tmp_path, "", written, endpoint)) == expected


def test_our_file_decides_where_it_knows_the_host(tmp_path: Path) -> None:
    mine = f"[203.0.113.5]:41234 {A}\n"
    assert letters(asked(tmp_path, mine, f"[203.0.113.5]:41234 {B}\n")) == "A"
    assert letters(asked(tmp_path, f"elsewhere {A}\n", f"[203.0.113.5]:41234 {B}\n")) == "B"


def test_authorities_and_revocations_count_from_every_file(tmp_path: Path) -> None:
    known = asked(
        tmp_path,
        f"[203.0.113.5]:41234 {A}\n@revoked * {B}\n",
        f"@cert-authority [203.0.113.*]:* {C}\n@revoked [203.0.113.5]:41234 {D}\n",
    )
    assert letters(known) == "A"
    assert [key.public_data for key in known.authorities] == [KEYS[2].public_data]
    assert {key.public_data for key in known.revoked} == {KEYS[1].public_data, KEYS[3].public_data}


def test_files_that_are_missing_or_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    endpoint = replace(BOX, user_known_hosts=(tmp_path / "none", tmp_path / "folder"))
    assert known_keys(endpoint, tmp_path / "missing") == KnownKeys()
    assert known_keys(replace(BOX, user_known_hosts=(Path("/dev/null"),)), Path("/dev/zero")) == (
        KnownKeys()
    )


def found_by_ssh_keygen(file: Path, name: str) -> str:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed (Debian: apt-get install openssh-client)")
    done = subprocess.run(
        ["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(
    ("endpoint", "name"), [(BOX, "[203.0.113.5]:41234"), (PLAIN, "h100.example")]
)
def test_what_is_recorded_openssh_finds(tmp_path: Path, endpoint: Endpoint, name: str) -> None:
    file = tmp_path / "new" / "known_hosts"
    record_key(file, endpoint, KEYS[0])
    assert A.split()[1] in found_by_ssh_keygen(file, name)
    assert file.stat().st_mode & 0o777 == 0o600
    assert letters(known_keys(endpoint, file)) == "A"


def test_what_openssh_hashes_is_found(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"[203.0.113.5]:41234 {A}\nh100.example {B}\n")
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed (Debian: apt-get install openssh-client)")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], capture_output=True, check=True)
    assert "203" not in file.read_text()
    assert (letters(known_keys(BOX, file)), letters(known_keys(PLAIN, file))) == ("A", "B")


def test_recording_replaces_this_host_only(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    hashed = hashed_name("[203.0.113.5]:41234", SALT).decode()
    file.write_text(
        f"# mine\n[203.0.113.5]:41234,[pod]:2 {A} both\n{hashed} {B}\n203.0.113.5 {C}\n"
        f"@revoked [203.0.113.5]:41234 {B}\n  [203.0.113.5]:41234 {C}\nlast.example {D}"
    )
    record_key(file, BOX, KEYS[3])
    assert file.read_text().splitlines() == [
        "# mine",
        f"[pod]:2 {A} both",
        f"203.0.113.5 {C}",
        f"@revoked [203.0.113.5]:41234 {B}",
        f"last.example {D}",
        f"[203.0.113.5]:41234 {D}",
    ]


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "known", tmp_path / "known_hosts"
    real.parent.mkdir()
    real.write_text(f"elsewhere {B}\n")
    link.symlink_to(real)
    record_key(link, BOX, KEYS[0])
    assert link.is_symlink()
    assert real.read_text() == f"elsewhere {B}\n[203.0.113.5]:41234 {A}\n"


def test_a_file_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        record_key(tmp_path / "file" / "known_hosts", BOX, KEYS[0])


def _record_many(file: Path, base: int) -> None:
    for number in range(20):
        record_key(file, replace(BOX, port=base + number), KEYS[0])


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_record_many, args=(file, base)) for base in (100, 200, 300)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(set(file.read_text().splitlines())) == 60
    assert [path.name for path in tmp_path.iterdir()] == ["known_hosts"]
