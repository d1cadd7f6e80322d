"""A GET through any transport: what a hostile server can send, none of it costs more than its limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from cockpit.engine.http_get import Answer, NotHttp, http_get
from tests.builders.links import FakeTransport

OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Stream:
    pieces: list[bytes]
    endless: bytes = b""
    sent: bytes = b""
    given: int = 0
    closed: bool = False
    stalls: bool = False

    async def read(self, limit: int = 65536) -> bytes:
        if self.pieces:
            piece = self.pieces.pop(0)
        elif self.stalls:
            await asyncio.Event().wait()
            raise AssertionError
        else:
            piece = self.endless
        self.given += len(piece)
        return piece

    async def write(self, data: bytes) -> None:
        self.sent += data

    async def write_eof(self) -> None: ...

    async def close(self) -> None:
        self.closed = True


class Transport(FakeTransport):
    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    async def open_tcp(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 10.0
    ) -> Stream:
        return self.stream


async def get(
    *pieces: bytes, endless: bytes = b"", limit_bytes: int = 1000, stalls: bool = False
) -> tuple[Answer, Stream]:
    stream = Stream(list(pieces), endless, stalls=stalls)
    answer = await http_get(
        Transport(stream), 8000, "/metrics", limit_bytes=limit_bytes, limit_s=5.0
    )
    assert stream.closed
    return answer, stream


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        pytest.param((OK + b"Content-Length: 5\r\n\r\nhello and more",), b"hello", id="a-length"),
        pytest.param((OK + b"\r\nhel", b"lo"), b"hello", id="to-the-end"),
        pytest.param(
            (b"HT", b"TP/1.0 200 OK\r\nA: b\r", b"\n\r\nhello"), b"hello", id="cut-anywhere"
        ),
        pytest.param(
            (OK + b"Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",),
            b"hello",
            id="chunks",
        ),
        pytest.param(
            tuple(
                bytes([one])
                for one in OK + b"transfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n"
            ),
            b"0123456789",
            id="chunks-byte-by-byte",
        ),
        pytest.param((OK + b"Content-Length: 0\r\n\r\n",), b"", id="nothing"),
    ],
)
async def test_bodies_in_every_form(pieces: tuple[bytes, ...], body: bytes) -> None:
    answer, stream = await get(*pieces, stalls=b"ength" in pieces[0])
    assert (answer.status, answer.body, answer.is_ok) == (200, body, True)
    assert stream.sent.startswith(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n")


async def test_an_endless_body_is_read_to_its_limit() -> None:
    answer, stream = await get(OK + b"\r\n", endless=b"x" * 65536, limit_bytes=200_000)
    assert (len(answer.body), answer.is_whole, answer.is_ok) == (200_000, False, False)
    assert stream.given < 400_000


async def test_an_endless_chunk_is_read_to_its_limit() -> None:
    head = OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n"
    answer, stream = await get(head, endless=b"x" * 65536, limit_bytes=200_000)
    assert not answer.is_ok and stream.given < 400_000


async def test_a_redirect_is_an_answer_and_nobody_follows_it() -> None:
    answer, stream = await get(
        b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n"
    )
    assert (answer.status, answer.is_ok) == (302, False)
    assert stream.sent.count(b"GET ") == 1


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((b"SSH-2.0-OpenSSH_9.6\r\n",), id="another-protocol"),
        pytest.param((b"",), id="nothing"),
        pytest.param((b"HTTP/1.1 two hundred\r\n\r\n",), id="no-status"),
        pytest.param((OK + b"A: " + b"b" * 70_000,), id="a-head-without-end"),
        pytest.param((OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",), id="no-size"),
        pytest.param((OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",), id="a-size-below-zero"),
        pytest.param(
            (OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"5" * 300,), id="a-size-without-end"
        ),
    ],
)
async def test_what_is_no_http_is_refused(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(NotHttp):
        await get(*pieces)


async def test_a_body_that_ends_early_is_not_whole() -> None:
    answer, _stream = await get(OK + b"Content-Length: 500\r\n\r\nhello")
    assert not answer.is_whole


async def test_silence_ends_with_the_time_limit() -> None:
    stream = Stream([OK], stalls=True)
    with pytest.raises(asyncio.TimeoutError):
        await http_get(Transport(stream), 1, "/", limit_bytes=10, limit_s=0.05)
    assert stream.closed
