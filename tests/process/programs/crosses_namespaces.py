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

libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NET = 0x10000000, 0x40000000
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
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


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
    }
    print(json.dumps(found), flush=True)
    os.killpg(0, 9)


if os.fork() == 0:
    os.setpgid(0, 0)
    main()
os.wait()
