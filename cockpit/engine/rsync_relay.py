"""What rsync starts in ssh's place: it hands both streams to the cockpit that started rsync, by a private socket.

    python rsync_relay.py SOCKET HOST rsync --server …

Run by its path, so that nothing of ours is imported: the standard library alone.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

PIECE_BYTES = 256 * 1024


def main(argv: list[str]) -> int:
    where, _host, *command = argv
    for fd in (0, 1):
        os.set_blocking(fd, True)  # rsync gives its remote shell pipes that are not
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(where)
        link.sendall(json.dumps(command).encode() + b"\n")
        threading.Thread(target=_send, args=(link,), daemon=True).start()
        while data := link.recv(PIECE_BYTES):
            _write(data)
    return 0


def _send(link: socket.socket) -> None:
    try:
        while data := os.read(0, PIECE_BYTES):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        sys.exit(f"cockpit's own relay: {error.strerror or error}")
