from __future__ import annotations

import subprocess

import pytest

from cockpit.errors import ProtocolError
from cockpit.transport.session import BOOTSTRAP, Preamble, framed, new_token, script_line

TOKEN = b"cockpit-test"


def bootstrapped(script: bytes, stdin: bytes = b"", shell: str = "/bin/sh") -> bytes:
    done = subprocess.run(
        [shell, "-c", BOOTSTRAP],
        input=script_line(script, TOKEN) + stdin,
        capture_output=True,
        check=False,
        timeout=20,
    )
    return done.stdout


@pytest.mark.parametrize(
    "script",
    [
        b"echo plain",
        b"echo 'single' \"double\" `echo back` $(echo sub) \\\\ \\n %s %%",
        b"x='a\\nb'\nprintf '%s|' \"$x\" \"tab\tand\\ttab\"\n\n",
        "echo héllo 漢字".encode(),
        b"printf '\\001\\377' ; printf '%s' '\xff\xfe\x80'",
        b"cat <<'EOF'\nhere $doc `too`\nEOF\n",
        b"f() { echo in f; }\nf # comment\nexit 0\necho never",
    ],
)
def test_a_script_means_the_same_as_run_directly(script: bytes) -> None:
    direct = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=False).stdout
    assert bootstrapped(script) == framed(TOKEN) + direct


def test_the_script_leaves_what_follows_it_on_stdin() -> None:
    """dash reads ahead with `sh -s`: every byte after the line belongs to the script's commands."""
    stdin = bytes(range(256)) * 300
    out = bootstrapped(b"IFS= read -r first; printf '%s;' \"$first\"; cat", b"line one\n" + stdin)
    assert out == framed(TOKEN) + b"line one;" + stdin


def test_a_script_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        script_line(b"echo \0", TOKEN)


def test_tokens_differ() -> None:
    assert new_token() != new_token()


def fed(preamble: Preamble, data: bytes, size: int) -> bytes:
    return b"".join(preamble.feed(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_noise_is_split_from_output_wherever_the_packets_end(size: int) -> None:
    preamble = Preamble(TOKEN)
    noise = b"Welcome!\n\0cockpit-tes\0 \0\0"
    assert fed(preamble, noise + framed(TOKEN) + b"data" + framed(TOKEN), size) == (
        b"data" + framed(TOKEN)
    )
    assert preamble.noise == noise


def test_noise_has_a_limit() -> None:
    preamble = Preamble(TOKEN, limit=1000)
    with pytest.raises(ProtocolError) as caught:
        fed(preamble, b"x" * 2000, 100)
    assert caught.value.facts["why"] == "noise_too_long"
    assert len(preamble.noise) <= 1000


def test_the_token_alone_is_no_sentinel() -> None:
    """A shell that echoes its input (set -v) shows the token, not the frame."""
    preamble = Preamble(TOKEN)
    assert preamble.feed(script_line(b"echo x", TOKEN)) == b""
    assert not preamble.found
