"""Connections from network namespaces of its own: one JSON object. Given are a port, a name and a
file of servers outside."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NET = 0x10000000, 0x40000000
NEAR, FAR = "10.9.0.1", "10.9.0.2"
LONG_S = 30.0


def check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def enter_new() -> None:
    uid, gid = os.getuid(), os.getgid()
    needs_user = uid != 0 or sys.argv[4:] == ["as root of a user namespace"]
    check(libc.unshare(NEW_NET | (NEW_USER if needs_user else 0)))
    if needs_user:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {uid} 1"),
            ("gid_map", f"0 {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    ip("link set lo up")


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


def tried(family: int, at: object, made: socket.socket | None = None) -> object:
    client = made or socket.socket(family)
    client.settimeout(LONG_S)
    found = client.connect_ex(at)
    if found:
        return errno.errorcode[found]
    return client.recv(100).decode()


def answering(at: object, family: int, text: str) -> socket.socket:
    """A server in a child."""
    server = socket.socket(family)
    server.bind(at)
    server.listen()
    if os.fork() == 0:
        while True:
            connection, _ = server.accept()
            connection.sendall(text.encode())
            connection.close()
    return server


def datagram(at: tuple[str, int], to: tuple[str, int], connects: bool) -> object:
    server, client = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    server.settimeout(LONG_S)
    server.bind(at)
    to = (to[0], server.getsockname()[1])
    try:
        if connects:
            client.connect(to)
            client.sendmsg([b"sent"])
        else:
            client.sendmsg([b"sent"], [], 0, to)
    except OSError as refusal:
        return errno.errorcode[refusal.errno or 0]
    return server.recv(10).decode()


def in_another(
    enter: Callable[[], None], begin: Callable[[int], None], act: Callable[[], object]
) -> object:
    """In a child, once it is in another namespace and its parent has prepared that."""
    entered, prepared, found = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        enter()
        os.write(entered[1], b"x")
        os.read(prepared[0], 1)
        os.write(found[1], json.dumps(act()).encode())
        os._exit(0)
    os.read(entered[0], 1)
    begin(child)
    os.write(prepared[1], b"x")
    os.waitpid(child, 0)
    return json.loads(os.read(found[0], 10000))


def main() -> None:
    port, name, file = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    kept = socket.socket()
    enter_new()
    outside = ("127.0.0.1", port)
    inside = answering(("127.0.0.1", port ^ 1), socket.AF_INET, "inside").getsockname()
    answering("\0" + name + "-inside", socket.AF_UNIX, "inside, by a name")
    found = {
        "loopback": tried(socket.AF_INET, inside),
        "by the port of somebody outside": tried(socket.AF_INET, outside),
        "with a socket of outside": tried(socket.AF_INET, outside, kept),
        "by the name of somebody outside": tried(socket.AF_UNIX, "\0" + name),
        "by a name": tried(socket.AF_UNIX, "\0" + name + "-inside"),
        "by a file": tried(socket.AF_UNIX, file),
        "datagrams": [datagram(("127.0.0.1", 0), outside, connects) for connects in (False, True)],
        "where no way leads": tried(socket.AF_INET, ("10.8.0.1", port)),
    }

    def connect_both(child: int) -> None:
        ip(f"link add near type veth peer name far netns {child}")
        ip(f"address add {NEAR}/24 dev near")
        ip("link set near up")

    def from_afar() -> object:
        ip(f"address add {FAR}/24 dev far")
        ip("link set far up")
        client = socket.socket()
        told = [tried(socket.AF_INET, (NEAR, near_port), client)]
        if told == ["near"]:
            told.append([client.getsockname()[0], client.getpeername()[0]])
        return [
            *told,
            tried(socket.AF_INET, inside),
            tried(socket.AF_UNIX, "\0" + name + "-inside"),
            tried(socket.AF_UNIX, file),
        ]

    near_port = answering(("0.0.0.0", port ^ 2), socket.AF_INET, "near").getsockname()[1]
    found["from another machine"] = in_another(enter_new, connect_both, from_afar)

    with open("/proc/self/ns/net") as ours:

        def there_and_back() -> None:
            check(libc.unshare(NEW_NET))
            check(libc.setns(ours.fileno(), NEW_NET))

        found["back again"] = in_another(
            there_and_back, lambda _: None, lambda: tried(socket.AF_INET, inside)
        )
    print(json.dumps(found), flush=True)
    os.killpg(0, 9)


if os.fork() == 0:
    os.setpgid(0, 0)
    main()
os.wait()
