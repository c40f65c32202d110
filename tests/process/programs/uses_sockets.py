"""What programs do with sockets, each with what came of it: one JSON object. The same is expected
natively and under network rules that allow everything."""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
HERE = ("127.0.0.1", 0)
LONG_S = 30.0


def name_of(number: int) -> str:
    return errno.errorcode.get(number, str(number))


def error(act: Callable[[], object]) -> object:
    try:
        found = act()
    except OSError as refusal:
        return name_of(refusal.errno or 0) if refusal.errno else type(refusal).__name__
    return found if isinstance(found, (int, str, bool)) else "done"


def raw(name: str, *arguments: object) -> object:
    ctypes.set_errno(0)
    result = getattr(libc, name)(*arguments)
    return name_of(ctypes.get_errno()) if result < 0 else result


def listener(family: int = socket.AF_INET, at: object = HERE, backlog: int = 10) -> socket.socket:
    server = socket.socket(family)
    server.bind(at)
    server.listen(backlog)
    return server


def inet(port: int, host: str = "127.0.0.1", family: int = socket.AF_INET) -> bytes:
    return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(HERE)
        return taken.getsockname()[1]


def full() -> tuple[socket.socket, list[socket.socket]]:
    """A server that takes no more connections."""
    server = listener(backlog=0)
    kept = []
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(server.getsockname())
        kept.append(client)
    time.sleep(0.05)
    return server, kept


def tcp() -> object:
    server = listener()
    client = socket.socket()
    client.connect(server.getsockname())
    other, peer = server.accept()
    client.sendall(b"hello")
    return [
        other.recv(10).decode(),
        peer == client.getsockname(),
        client.getpeername() == server.getsockname(),
        client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
        name_of(client.connect_ex(server.getsockname())),
        client.getblocking(),
    ]


def tcp6() -> object:
    try:
        server = listener(socket.AF_INET6, ("::1", 0))
    except OSError as refusal:
        return name_of(refusal.errno or 0)
    client = socket.socket(socket.AF_INET6)
    client.connect(server.getsockname())
    mapped, other = socket.socket(socket.AF_INET6), listener()
    found = mapped.connect_ex(("::ffff:127.0.0.1", other.getsockname()[1]))
    any_address = socket.socket(socket.AF_INET6).connect_ex(("::", server.getsockname()[1]))
    return [client.getpeername() == server.getsockname(), name_of(found), name_of(any_address)]


def refused() -> object:
    port = unused_port()
    client = socket.socket()
    return [name_of(client.connect_ex(("127.0.0.1", port))) for _ in range(2)]


def without_waiting() -> object:
    server = listener()
    client = socket.socket()
    client.setblocking(False)
    first = name_of(client.connect_ex(server.getsockname()))
    select.select([], [client], [], LONG_S)
    then = [name_of(client.connect_ex(server.getsockname())) for _ in range(2)]
    gone = socket.socket()
    gone.setblocking(False)
    found = name_of(gone.connect_ex(("127.0.0.1", unused_port())))
    poll = select.poll()
    poll.register(gone, select.POLLOUT)
    poll.poll(LONG_S * 1000)
    return [first, then, found, name_of(gone.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))]


def with_a_timeout() -> object:
    server, _kept = full()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 0, 200_000))
    started = time.monotonic()
    found = raw("connect", client.fileno(), inet(server.getsockname()[1]), 16)
    took = time.monotonic() - started
    again = socket.socket()
    again.settimeout(0.1)
    return [found, 0.15 < took < LONG_S, error(lambda: again.connect(server.getsockname()))]


def broken_off(flags: int) -> object:
    """By a signal's handler: natively a call fails, or is made again."""
    server, _kept = full()
    caught = []
    signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    signal.siginterrupt(signal.SIGALRM, not flags)
    client = socket.socket()
    if flags:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 20, 0))
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    found = raw("connect", client.fileno(), inet(server.getsockname()[1]), 16)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return [found, bool(caught), client.getblocking()]


def broken_off_by_a_handler() -> object:
    return broken_off(0)


def broken_off_where_it_has_a_timeout() -> object:
    return broken_off(1)


def made_again() -> object:
    server, kept = full()
    caught = []

    def handler(*_: object) -> None:
        caught.append(1)
        for client in kept:
            client.close()

    signal.signal(signal.SIGALRM, handler)
    signal.siginterrupt(signal.SIGALRM, False)

    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        while True:
            server.accept()
    client = socket.socket()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    found = raw("connect", client.fileno(), inet(server.getsockname()[1]), 16)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return [found, len(caught)]


def others_go_on() -> object:
    """While one thread waits for a connection."""
    server, _kept = full()
    client = socket.socket()
    threading.Thread(target=lambda: client.connect_ex(server.getsockname()), daemon=True).start()
    time.sleep(0.05)
    return tcp()


def odd_arguments() -> object:
    server = listener()
    port = server.getsockname()[1]
    client = socket.socket()
    fd = client.fileno()
    with open(os.devnull) as file:
        return [
            raw("connect", 999, inet(port), 16),
            raw("connect", -1, inet(port), 16),
            raw("connect", file.fileno(), inet(port), 16),
            raw("connect", fd, ctypes.c_void_p(8), 16),
            raw("connect", fd, inet(port), 15),
            raw("connect", fd, inet(port), 0),
            raw("connect", fd, inet(port), -1),
            raw("connect", fd, inet(port) + bytes(200), 200),
            raw("connect", fd, inet(port, family=socket.AF_INET6), 16),
            raw("connect", fd, inet(port, family=socket.AF_UNIX), 16),
            raw("connect", fd, inet(0), 16),
            raw("connect", fd, inet(port) + bytes(100), 100),
            raw("connect", server.fileno(), inet(port), 16),
            raw("connect", fd, inet(port, family=socket.AF_UNSPEC), 16),
            raw("connect", fd, inet(port), 16),
            raw("listen", file.fileno(), 1),
            raw("listen", 999, 1),
        ]


def udp() -> object:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(HERE)
    to = server.getsockname()
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found: list[object] = [client.sendto(b"one", to), server.recv(10).decode()]
    found += [client.sendto(b"", to), len(server.recv(10))]
    found += [client.sendmsg([b"t", b"w", b"o"], [], 0, to), server.recv(10).decode()]
    client.connect(to)
    found += [client.send(b"three"), server.recv(10).decode()]
    found += [client.sendmsg([b"four"]), server.recv(10).decode()]
    found += [client.getpeername() == to]
    found += [raw("connect", client.fileno(), inet(0, family=socket.AF_UNSPEC), 16)]
    found += [error(lambda: client.send(b"x"))]
    found += [error(lambda: client.sendto(bytes(70_000), to))]
    found += [error(lambda: client.sendto(b"x", ("255.255.255.255", 9)))]
    found += [raw("sendto", client.fileno(), b"five", 4, 0, inet(to[1], family=0), 16)]
    found += [server.recv(10).decode()]
    found += [raw("sendto", client.fileno(), b"six", 3, 0, inet(to[1]), 10)]
    found += [raw("sendto", client.fileno(), ctypes.c_void_p(8), 3, 0, inet(to[1]), 16)]
    gone = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    gone.connect(("127.0.0.1", unused_port()))
    found += [gone.send(b"x"), error(lambda: gone.send(b"x"))]
    return found


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint),
        ("parts", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("sent", ctypes.c_uint),
        ("more_padding", ctypes.c_int),
    ]


def datagrams_elsewhere_again_and_again() -> object:
    """Meanwhile, others who use the socket go on waiting."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(HERE)
    found: set[bool] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            found.add(bool(fcntl.fcntl(one, fcntl.F_GETFL) & os.O_NONBLOCK))

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(300):
        one.connect(one.getsockname())
    ended.set()
    watcher.join()
    return sorted(found)


def many_at_once() -> object:
    """sendmmsg may send fewer than it is asked to: callers go on with the rest."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(HERE)
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to = ctypes.create_string_buffer(inet(server.getsockname()[1]), 16)
    text = ctypes.create_string_buffer(b"message")
    part = Part(ctypes.addressof(text), 7)
    messages = (Message * 3)()
    for message in messages:
        message.name, message.name_size = ctypes.addressof(to), 16
        message.parts, message.count = ctypes.addressof(part), 1
    done = 0
    while done < 3:
        sent = libc.sendmmsg(client.fileno(), ctypes.byref(messages[done]), 3 - done, 0)
        if sent <= 0:
            return name_of(ctypes.get_errno())
        done += sent
    empty = raw("sendmmsg", client.fileno(), ctypes.byref(messages), 0, 0)
    return [[m.sent for m in messages], [server.recv(10).decode() for _ in messages], empty]


def unix() -> object:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    found: list[object] = []
    servers = []
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        for at in (f"{folder}/s{kind}", f"r{kind}", f"\0{folder}{kind}"):
            server = socket.socket(socket.AF_UNIX, kind)
            server.bind(at)
            servers.append(server)
            client = socket.socket(socket.AF_UNIX, kind)
            if kind != socket.SOCK_DGRAM:
                server.listen(1)
            client.connect(at)
            client.send(b"hello")
            receiver = server if kind == socket.SOCK_DGRAM else server.accept()[0]
            found.append(receiver.recv(10).decode())
            found.append(client.getpeername() == at or client.getpeername() == at.encode())
    os.symlink(f"r{socket.SOCK_STREAM}", "link")
    server = listener(socket.AF_UNIX, "again", 10)
    found.append(
        socket.socket(socket.AF_UNIX).connect_ex(f"{folder}/../{os.path.basename(folder)}/again")
    )
    os.symlink("again", "to-again")
    found.append(socket.socket(socket.AF_UNIX).connect_ex("to-again"))
    fd = os.open("again", os.O_PATH)
    found.append(socket.socket(socket.AF_UNIX).connect_ex(f"/proc/self/fd/{fd}"))
    server.accept(), server.accept(), server.accept()
    client = socket.socket(socket.AF_UNIX)
    client.connect("again")
    other, _ = server.accept()
    who = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _pid, uid, gid = struct.unpack("iII", who)
    found += [uid == os.getuid(), gid == os.getgid()]
    open("file", "w").close()
    for path in ("missing", "file", ".", "file/x", f"s{socket.SOCK_DGRAM}"):
        found.append(name_of(socket.socket(socket.AF_UNIX).connect_ex(path)))
    os.chmod("again", 0)
    found.append(name_of(socket.socket(socket.AF_UNIX).connect_ex("again")))
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    found.append(sender.sendto(b"to a path", f"{folder}/s{socket.SOCK_DGRAM}"))
    found.append(sender.sendmsg([b"to ", b"it"], [], 0, f"r{socket.SOCK_DGRAM}"))
    busy = listener(socket.AF_UNIX, "busy", 0)
    clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for client in clients:
        client.setblocking(False)
        found.append(name_of(client.connect_ex("busy")))
    late = socket.socket(socket.AF_UNIX)
    late.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 0, 100_000))
    found.append(name_of(late.connect_ex("busy")))
    threading.Timer(0.2, lambda: [busy.accept() for _ in range(2)]).start()
    waits = socket.socket(socket.AF_UNIX)
    found.append(name_of(waits.connect_ex("busy")))
    return found


def with_descriptors() -> object:
    one, other = socket.socketpair()
    reading, writing = os.pipe()
    socket.send_fds(one, [b"x"], [writing, reading])
    text, fds, _flags, _address = socket.recv_fds(other, 10, 5)
    os.write(fds[0], b"through")
    found: list[object] = [text.decode(), len(fds), os.read(reading, 10).decode()]
    bad = array.array("i", [999])
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, bad)]
    found.append(error(lambda: one.sendmsg([b"x"], control)))
    many = array.array("i", [reading] * 254)
    found.append(error(lambda: one.sendmsg([b"x"], [(*control[0][:2], many)])))
    return found


def with_credentials() -> object:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    found: list[object] = []
    for uid in (os.getuid(), os.getuid() + 1):
        packed = struct.pack("iII", os.getpid(), uid, os.getgid())
        control = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, packed)]
        if uid == os.getuid() or uid > 1:  # root may say that it is anybody
            found.append(error(lambda control=control: one.sendmsg([b"x"], control)))
    _text, got, _flags, _address = other.recvmsg(10, 100)
    found.append(struct.unpack("iII", got[0][2])[1:])
    return found


def a_stream_of_messages() -> object:
    one, other = socket.socketpair()
    got = []

    def read() -> None:
        while data := other.recv(1 << 16):
            got.append(len(data))

    reader = threading.Thread(target=read)
    reader.start()
    sent = one.sendmsg([bytes(300_000), bytes(300_000)])
    one.shutdown(socket.SHUT_WR)
    reader.join()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        other.close()
        one.sendmsg([b"x"])
        os._exit(0)
    other.close()
    _, status = os.waitpid(child, 0)
    one.setblocking(False)
    two, _three = socket.socketpair()
    two.setblocking(False)
    taken = error(lambda: [two.sendmsg([bytes(100_000)]) for _ in range(100)])
    return [sent, sum(got), os.WTERMSIG(status) if os.WIFSIGNALED(status) else status, taken]


def listening() -> object:
    server = socket.socket()
    server.listen(1)
    client = socket.socket()
    client.connect(("127.0.0.1", server.getsockname()[1]))
    return [error(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).listen(1))]


def of_kinds_that_no_kernel_has() -> object:
    """A family, types and a protocol, and bits that are no flags."""
    return [
        raw("socket", 99, socket.SOCK_STREAM, 0),
        raw("socket", socket.AF_INET, 9, 0),
        raw("socket", socket.AF_INET6, 15, 0),
        raw("socket", socket.AF_INET, socket.SOCK_SEQPACKET, 0),
        raw("socket", socket.AF_INET, socket.SOCK_STREAM, 200),
        raw("socket", socket.AF_INET, 9 | 0x100000, 0),
        raw("socket", -1, -1, -1),
    ]


def main() -> None:
    ways = [
        tcp,
        tcp6,
        refused,
        without_waiting,
        with_a_timeout,
        broken_off_by_a_handler,
        broken_off_where_it_has_a_timeout,
        made_again,
        others_go_on,
        odd_arguments,
        udp,
        datagrams_elsewhere_again_and_again,
        many_at_once,
        unix,
        with_descriptors,
        with_credentials,
        a_stream_of_messages,
        listening,
        of_kinds_that_no_kernel_has,
    ]
    wanted = sys.argv[1:]
    print(json.dumps({way.__name__: way() for way in ways if not wanted or way.__name__ in wanted}))


main()
