"""Proves that several hosts can reach one of them; run by each host's own Python >= 3.6, stdlib only.

    meeting.py listen    opens a free port (or the one that is asked for, when it is still free), says where it
                         can be found, answers whoever knows the nonce
    meeting.py reach     tries those addresses, and says by which interface it got through

Both read one JSON line on stdin. `listen` ends with its stdin, or by itself.
"""

import errno
import fcntl
import json
import os
import random
import select
import socket
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LISTEN_S = 120.0
REACH_S = 4.0
PORTS = (20000, 29000)
"""Below the ports that systems give to outgoing connections, and few enough to be opened in a firewall."""
PORT_TRIES = 32
PATIENCE_S = 2.0
STRANGER_S = 1.5
"""Less than the others wait: one that says nothing must not keep them out."""
NONCE_BYTES = 64
MAX_ADDRESSES = 32
SIOCGIFADDR = 0x8915
VIRTUAL = ("docker", "br-", "veth", "virbr", "cni", "flannel", "cali", "tun", "tap", "lo")


def addresses() -> "list[dict[str, str]]":
    """Addresses of this host with their interfaces; those of bridges and of loopback come last."""
    found = []
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _index, name in socket.if_nameindex():
        try:
            packed = fcntl.ioctl(
                probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15])
            )
        except OSError:
            continue
        found.append({"interface": name, "address": socket.inet_ntoa(packed[20:24])})
    probe.close()
    found += global_ipv6()
    found.sort(key=lambda one: (one["interface"].startswith(VIRTUAL), ":" in one["address"]))
    return found[:MAX_ADDRESSES]


def global_ipv6() -> "list[dict[str, str]]":
    found = []
    try:
        with open("/proc/net/if_inet6") as table:
            lines = table.read(65536).splitlines()
    except OSError:
        return []
    for line in lines:
        fields = line.split()
        if len(fields) == 6 and fields[3] == "00":
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0]))
            found.append({"interface": fields[5], "address": address})
    return found


def interface_of(address: str) -> "str | None":
    return next((one["interface"] for one in addresses() if one["address"] == address), None)


def tell(answer: "dict[str, Any]") -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


# the one that is to be reached


def open_port(asked: int) -> "list[socket.socket]":
    """The port that is asked for, which its last owner may be about to leave, else a free one. Raises OSError."""
    until = time.monotonic() + PATIENCE_S
    while asked:
        try:
            return listeners(asked)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
        time.sleep(0.1)
    for _try in range(PORT_TRIES):
        try:
            return listeners(random.randrange(*PORTS))
        except OSError:
            pass
    return listeners(0)


def listeners(port: int) -> "list[socket.socket]":
    """One port on every address of both families. Raises OSError when it is taken."""
    first = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    first.bind(("0.0.0.0", port))
    first.listen(64)
    opened = [first]
    try:
        second = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        second.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        second.bind(("::", first.getsockname()[1]))
        second.listen(64)
        opened.append(second)
    except OSError:
        pass  # no IPv6 here, or the port is taken there: the other family will do
    return opened


def listen(request: "dict[str, Any]") -> None:
    nonce = str(request["nonce"]).encode()[:NONCE_BYTES]
    opened = open_port(int(request.get("port") or 0))
    tell({"port": opened[0].getsockname()[1], "addresses": addresses()})
    until = time.monotonic() + LISTEN_S
    while time.monotonic() < until:
        watched = [0]  # type: list[Any]
        ready = select.select(watched + opened, [], [], max(0.0, until - time.monotonic()))[0]
        if 0 in ready and not os.read(0, 4096):
            return
        for one in opened:
            if one in ready:
                answer(one, nonce)


def answer(listener: socket.socket, nonce: bytes) -> None:
    """Echo the nonce to whoever knows it; strangers are hung up on."""
    try:
        caller, _address = listener.accept()
    except OSError:
        return
    caller.settimeout(STRANGER_S)
    try:
        if exactly(caller, len(nonce)) == nonce:
            caller.sendall(nonce[::-1])
            caller.recv(
                1
            )  # the caller hangs up first: the port must not be the one that is left waiting
    except OSError:
        pass
    caller.close()


def exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            break
        data += piece
    return data


# the others


def reach(request: "dict[str, Any]") -> None:
    nonce = str(request["nonce"]).encode()[:NONCE_BYTES]
    tried = []
    for address in request["addresses"][:MAX_ADDRESSES]:
        tried.append(attempt(str(address), int(request["port"]), nonce))
    tell({"tried": tried})


def attempt(address: str, port: int, nonce: bytes) -> "dict[str, Any]":
    try:
        connection = socket.create_connection((address, port), REACH_S)
    except (OSError, ValueError) as error:
        return {"address": address, "why": str(getattr(error, "strerror", None) or error)[:100]}
    try:
        connection.sendall(nonce)
        if exactly(connection, len(nonce)) != nonce[::-1]:
            return {"address": address, "why": "somebody else answers there"}
        own = connection.getsockname()[0]
    except OSError as error:
        return {"address": address, "why": str(error.strerror or error)[:100]}
    finally:
        connection.close()
    return {"address": address, "interface": interface_of(own), "from": own}


def main(argv: "list[str]") -> int:
    work = {"listen": listen, "reach": reach}.get(argv[0] if argv else "")
    if work is None:
        sys.stderr.write("usage: meeting.py listen|reach\n")
        return 64
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1) if len(line) < 16384 else b""
        if not piece:
            return 65
        line += piece
    try:
        work(json.loads(line.decode()))
    except (OSError, KeyError, TypeError, ValueError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        tell({"error": str(error)[:200], "taken": taken})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
