"""No secret gets through, however the stream is cut; everything else does, byte for byte."""

from __future__ import annotations

import base64
import itertools
import json
from urllib.parse import quote, quote_plus

import pytest

from cockpit.domain.masking import Masker

SECRETS = ["hf_abcdefGHIJ", "sk-1234567890", "1234567890"]


def test_a_secret_is_masked_and_ordinary_text_is_not() -> None:
    masker = Masker(SECRETS)
    assert masker.text("token=hf_abcdefGHIJ, ok") == "token=*************, ok"
    assert masker.text("hf_abcdefGHI is not it") == "hf_abcdefGHI is not it"


def test_a_longer_secret_wins_over_one_inside_it() -> None:
    assert Masker(SECRETS).text("sk-1234567890") == "*" * 13


def test_short_values_are_not_masked() -> None:
    assert not Masker(["abc", ""])
    assert Masker(["abc"]).text("abcabc") == "abcabc"


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_secret_cut_in_two_is_masked(cut: int) -> None:
    data = b"before sk-1234567890 after hf_abcdef not"
    stream = Masker(SECRETS).stream()
    out = stream.feed(data[:cut]) + stream.feed(data[cut:]) + stream.finish()
    assert out == b"before ************* after hf_abcdef not"


def test_byte_by_byte_nothing_is_lost_or_repeated() -> None:
    data = b"hf_hf_abcdefGHIJhf_abcdefGHI\n\xff\x00sk-sk-1234567890"
    stream = Masker(SECRETS).stream()
    out = b"".join(stream.feed(bytes([byte])) for byte in data) + stream.finish()
    assert out == b"hf_*************hf_abcdefGHI\n\xff\x00sk-*************"


def test_without_secrets_the_bytes_pass_unchanged() -> None:
    stream = Masker().stream()
    pieces = [b"a" * 10, b"\x00\xff", b""]
    assert b"".join(map(stream.feed, pieces)) + stream.finish() == b"".join(itertools.chain(pieces))


# -- other writings ----------------------------------------------------------------------------

ODD = 'p@ss/w+rd "中\n%-0123456789'
WRITTEN = {
    "json": json.dumps(ODD)[1:-1],
    "json-unicode": json.dumps(ODD, ensure_ascii=False)[1:-1],
    "percent": quote(ODD, safe=""),
    "percent-lower": quote(ODD, safe="").replace("%2F", "%2f").replace("%E4", "%e4").replace("%B8", "%b8")
    .replace("%AD", "%ad").replace("%0A", "%0a").replace("%2B", "%2b"),
    "path": quote(ODD),
    "form": quote_plus(ODD),
    "python": repr(ODD)[1:-1],
    "base64": base64.b64encode(ODD.encode()).decode().rstrip("="),
    "base64-url": base64.urlsafe_b64encode(ODD.encode()).decode().rstrip("="),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_a_secret_in_another_writing_is_masked(name: str) -> None:
    masker, written = Masker([ODD]), WRITTEN[name]
    assert masker.text(f"x {written}, y") == f"x {'*' * len(written)}, y"
    stream, data = masker.stream(), f"x {written}, y".encode()
    out = b"".join(stream.feed(bytes([byte])) for byte in data) + stream.finish()
    assert out.startswith(b"x **") and out.endswith(b", y") and out.count(b"*") >= len(written) - 1


@pytest.mark.parametrize("after", ["", "y", "yz", "yz1"], ids=len)
@pytest.mark.parametrize("before", ["", "u", "us", "user:"], ids=len)
def test_base64_of_something_around_a_secret_tells_nothing_of_it(before: str, after: str) -> None:
    """What stays are at most the characters that its neighbours decide too: four bits at each end."""
    secret = "hf_AbCdEfGhIjKlMnOp"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        coded = encode((before + secret + after).encode()).decode()
        left = Masker([secret]).text(f"Basic {coded} end")
        shown = left.removeprefix("Basic ").removesuffix(" end")
        assert len(shown) == len(coded)
        wholly = [
            at for at in range(len(coded))
            if len(before) * 8 <= at * 6 and (at + 1) * 6 <= (len(before) + len(secret)) * 8
        ]  # fmt: skip
        assert all(shown[at] == "*" for at in wholly), shown
        assert shown[: len(before) * 8 // 6] == coded[: len(before) * 8 // 6]


def test_a_short_secret_has_no_other_writings() -> None:
    """Seven characters of base64 may be any word."""
    masker = Masker(["abc def"])
    assert masker.secrets() == ("abc def",)
    assert masker.text("abc%20def abc+def") == "abc%20def abc+def"


def test_a_masker_of_several_knows_each_secret_once() -> None:
    one, two = Masker([ODD]), Masker([ODD, SECRETS[0]])
    assert set(Masker.of_all([one, two]).secrets()) == set(two.secrets())


def test_what_no_text_can_be_is_masked_as_bytes_all_the_same() -> None:
    assert Masker(["\udcff-secret-1"]).masked(b"a \xff-secret-1 b") == b"a ********** b"
