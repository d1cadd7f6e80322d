"""Messages: what is sent over loopback by Apprise itself, what is held back, and that no address is told."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cockpit.engine import notify
from cockpit.engine.notify import BURST, BURST_S, Herald, Message, schemes

TOKEN = "tk-9f8e7d6c5b"
others_warn = pytest.mark.filterwarnings("ignore")
"""Apprise loads some two hundred plug-ins, and what they warn of is not ours."""


class Inbox:
    """An HTTP server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, bytes]] = []
        self.status = 200
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                inbox.posts.append((self.path, body))
                self.send_response(inbox.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


class Clock:
    s = 1000.0

    def now_s(self) -> float:
        return self.s


async def told(herald: Herald, urls: list[str], message: Message) -> list[tuple[str, bool]]:
    results: list[tuple[str, bool]] = []
    await herald.tell(urls, message, lambda scheme, taken: results.append((scheme, taken)))
    return results


@others_warn
async def test_apprise_posts_to_json_and_to_a_self_hosted_ntfy(inbox: Inbox) -> None:
    pytest.importorskip("apprise")
    herald = Herald(Clock().now_s)
    urls = [f"json://{inbox.address}/{TOKEN}", f"ntfy://{inbox.address}/{TOKEN}"]
    results = await told(herald, urls, Message("run r-1", "out of\x1b[31m memory", "failure"))
    assert sorted(results) == [("json", True), ("ntfy", True)]
    posts = dict(inbox.posts)
    sent = json.loads(posts[f"/{TOKEN}"])
    assert (sent["title"], sent["message"], sent["type"]) == ("run r-1", "out of memory", "failure")
    assert any(b"out of memory" in body for path, body in inbox.posts if path != f"/{TOKEN}")


@others_warn
async def test_no_address_is_logged_when_a_service_refuses(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("apprise")
    inbox.status = 403
    caplog.set_level(logging.DEBUG)
    herald = Herald(Clock().now_s)
    urls = [f"json://{inbox.address}/{TOKEN}", f"json://127.0.0.1:1/{TOKEN}", f"nonsense-{TOKEN}"]
    results = await told(herald, urls, Message("t", "b"))
    assert sorted(results) == [("?", False), ("json", False), ("json", False)]
    assert len(inbox.posts) == 1 and TOKEN not in caplog.text


async def test_many_messages_become_a_few_and_one_with_the_rest() -> None:
    sent: list[Message] = []

    def send(_url: str, message: Message) -> bool:
        sent.append(message)
        return True

    clock = Clock()
    herald = Herald(clock.now_s, send)
    for number in range(BURST + 4):
        await told(herald, ["ntfy://x"], Message(f"m{number}", "text"))
    await told(herald, ["ntfy://x"], Message(f"m{BURST + 3}", "text"))
    assert [one.title for one in sent] == [f"m{number}" for number in range(BURST)]
    clock.s += BURST_S
    await herald.close(5.0)
    assert len(sent) == BURST + 1 and sent[-1].title == "cockpit: 4 messages"
    assert sent[-1].body.splitlines() == [f"m{BURST + number}: text" for number in range(4)]


async def test_a_service_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(notify, "LIMIT_S", 0.1)
    herald = Herald(Clock().now_s, lambda _url, _message: go.wait(30))
    assert await asyncio.wait_for(told(herald, ["ntfy://x"], Message("t", "b")), 20) == [
        ("ntfy", False)
    ]
    go.set()


def test_of_an_address_only_the_scheme_may_be_seen() -> None:
    assert schemes(["ntfy://topic", "Slack://a/b/c", "no address", "x://"]) == (
        "ntfy", "slack", "?", "?",
    )  # fmt: skip
