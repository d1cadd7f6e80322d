"""Takes a run's code into its working folder and hands out its results; shipped as text, Python >= 3.6.

    courier.py serve       one client, one request after the other, on stdin and stdout

A request is a JSON line, and after it as many bytes as its `bytes` says. An answer has the same form; `{"beat": n}`
says that one is being worked on. What is streamed comes in chunks, each behind its length (4 bytes, big endian), up
to a chunk of length 0. Nothing is written outside the folder that the request names.
"""

import json
import os
import select
import struct
import sys
import time

from courier_code import Code  # type: ignore[import-not-found]
from courier_results import find_results, open_result  # type: ignore[import-not-found]
from supervisor_files import MIB, Refused, parse_object  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable  # noqa: F401 - in a comment below

    Json = dict[str, Any]

MAX_LINE_BYTES = 64 * 1024
MAX_BODY_BYTES = 256 * MIB
CHUNK_BYTES = 256 * 1024
BEAT_S = 2.0
IDLE_S = 60.0
"""A client that says nothing for so long has lost us: another one must not wait for it."""
NONSENSE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Gone(Exception):
    """The client has gone, or speaks something else."""


class Wire:
    """Both pipes, read to the byte: what follows a request belongs to whoever the request starts."""

    def __init__(self) -> None:
        self._beaten = time.monotonic()
        self._beats = 0

    def line(self) -> "Json":
        data = bytearray()
        while not data.endswith(b"\n"):
            byte = self._some(1)
            if not byte or len(data) >= MAX_LINE_BYTES:
                raise Gone()
            data += byte
        return dict(parse_object(bytes(data)))

    def skip_to(self, mark: bytes) -> None:
        """What was meant for another program ends with that line."""
        data = bytearray()
        while not data.endswith(b"\n" + mark + b"\n"):
            byte = self._some(1)
            if not byte:
                raise Gone()
            data += byte
            del data[: -len(mark) - 2]

    def read(self, count: int) -> bytes:
        parts = []
        while count > 0:
            data = self._some(min(count, CHUNK_BYTES))
            if not data:
                raise Gone()
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def _some(self, limit: int) -> bytes:
        if not select.select([0], [], [], IDLE_S)[0]:
            raise Gone()
        return os.read(0, limit)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]

    def answer(self, fields: "Json", body: bytes = b"") -> None:
        line = json.dumps(dict(fields, bytes=len(body)), sort_keys=True)
        self.write(line.encode() + b"\n" + body)

    def chunk(self, data: bytes) -> None:
        self.write(struct.pack(">I", len(data)) + data)

    def beat(self) -> None:
        """Called often while work takes long."""
        if time.monotonic() - self._beaten >= BEAT_S:
            self._beaten = time.monotonic()
            self._beats += 1
            self.write(b'{"beat": %d}\n' % self._beats)


class Chunks:
    """A stream of chunks as a file that can be read once."""

    def __init__(self, wire: "Wire") -> None:
        self._wire = wire
        self._left = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        parts = []
        while size > 0 and not self._ended:
            if not self._left:
                (self._left,) = struct.unpack(">I", self._wire.read(4))
                self._ended = not self._left
                continue
            data = self._wire.read(min(size, self._left))
            self._left -= len(data)
            size -= len(data)
            parts.append(data)
        return b"".join(parts)

    def drain(self) -> None:
        while self.read(CHUNK_BYTES):
            pass


class Courier:
    def __init__(self) -> None:
        self._wire = Wire()
        self._code = None  # type: Code | None

    def serve(self) -> None:
        while True:
            self._take(self._wire.line())

    def _take(self, request: "Json") -> None:
        body = self._wire.read(min(int(request.get("bytes", 0)), MAX_BODY_BYTES))
        try:
            method = self.METHODS.get(str(request.get("op")))
            if method is None:
                raise Refused("bad_request", op=str(request.get("op"))[:50])
            method(self, request, body)
        except Refused as refusal:
            self._wire.answer({"error": refusal.code, "facts": refusal.facts})
        except NONSENSE as error:
            self._wire.answer({"error": "bad_request", "facts": {"text": repr(error)[:200]}})
        except OSError as error:
            facts = {"text": error.strerror or str(error), "errno": error.errno}
            self._wire.answer({"error": "io", "facts": facts})

    def _on_code(self, request: "Json", body: bytes) -> None:
        """Look at what is there. The folder is ours from here until the client goes."""
        if self._code is not None:
            self._code.close()
        self._code = Code(request, body, self._wire.beat)
        fields, answer = self._code.compare()
        self._wire.answer(fields, answer)

    def _on_take(self, _request: "Json", _body: bytes) -> None:
        chunks = Chunks(self._wire)
        fields = self._opened().take(chunks)
        chunks.drain()
        self._wire.answer(fields)

    def _on_rsync(self, request: "Json", _body: bytes) -> None:
        """The other end of the client's rsync, on our own pipes; its output comes in chunks."""
        code = self._opened()
        self._wire.answer({"go": True})
        status = code.rsync(request["argv"], self._wire.chunk)
        self._wire.chunk(b"")
        self._wire.skip_to(str(request["mark"]).encode())
        self._wire.answer({"status": status, "bad": code.take_over()})

    def _on_place(self, _request: "Json", _body: bytes) -> None:
        self._wire.answer(self._opened().place())

    def _opened(self) -> "Code":
        if self._code is None:
            raise Refused("bad_request", op="no code")
        return self._code

    def _on_find(self, request: "Json", _body: bytes) -> None:
        fields, body = find_results(request, self._wire.beat)
        self._wire.answer(fields, body)

    def _on_read(self, request: "Json", _body: bytes) -> None:
        """One result from an offset: chunks, then its whole hash, and whether it changed meanwhile."""
        result = open_result(request, self._wire.beat)
        try:
            self._wire.answer(result.head())
            for data in result.pieces():
                self._wire.chunk(data)
            self._wire.chunk(b"")
            self._wire.answer(result.foot())
        finally:
            result.close()

    METHODS = {
        "code": _on_code,
        "take": _on_take,
        "rsync": _on_rsync,
        "place": _on_place,
        "find": _on_find,
        "read": _on_read,
    }  # type: dict[str, Callable[[Courier, Json, bytes], None]]


def main(argv: "list[str]") -> int:
    if argv != ["serve"]:
        sys.stderr.write("usage: courier.py serve\n")
        return 64
    try:
        Courier().serve()
    except (Gone, BrokenPipeError, ConnectionResetError):
        pass  # what came over is kept, and nothing is half placed that the journal does not know
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
