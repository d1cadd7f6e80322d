"""No secret gets through, however the stream is cut; everything else does, byte for byte."""

from __future__ import annotations

import itertools

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
