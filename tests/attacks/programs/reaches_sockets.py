"""Tries to say the name of each way to servers that rules keep: on a port of this machine, by TCP
and by UDP, and by a file. Says what came of each, as JSON.

Words: the port, one that is allowed, the socket of a stream and that of datagrams, the program for
what Python can't, how often a race is tried; then the ways, if not all."""

import array
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import threading

PORT, ALLOWED = int(sys.argv[1]), int(sys.argv[2])
STREAM, DATAGRAMS, others, tries = sys.argv[3:7]
THERE = ("127.0.0.1", PORT)
MSG_FASTOPEN, TCP_FASTOPEN_CONNECT, IPPROTO_MPTCP = 0x20000000, 30, 262
libc = ctypes.CDLL(None, use_errno=True)


def tcp(family=socket.AF_INET, protocol=0):
    return socket.socket(family, socket.SOCK_STREAM, protocol)


def udp(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_DGRAM)


def unix(kind=socket.SOCK_STREAM):
    return socket.socket(socket.AF_UNIX, kind)


def said(connected, name):
    connected.send(name.encode())
    connected.close()


def inet(family=socket.AF_INET):
    packed = struct.pack("=H", family) + struct.pack("!H", PORT)
    return packed + socket.inet_aton("127.0.0.1") + bytes(8)


def run(name):
    done = subprocess.run([others, name, str(PORT), str(ALLOWED), tries], check=False)
    return done.returncode


def talk(one, to, name):
    one.connect(to)
    said(one, name)


def here(make, name):
    make(STREAM, name)
    return name


def without_waiting(name):
    one = tcp()
    one.setblocking(False)
    one.connect_ex(THERE)
    one.setblocking(True)
    said(one, name)


def by_any_address_from_that_of_ipv4(name):
    one = tcp(socket.AF_INET6)
    one.bind(("::ffff:127.0.0.1", 0))
    talk(one, ("::", PORT), name)


def with_the_first_write(name):
    one = tcp()
    one.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    talk(one, THERE, name)


def by_another_thread(name):
    thread = threading.Thread(target=talk, args=(tcp(), THERE, name))
    thread.start()
    thread.join()


def by_a_thread_with_descriptors_of_its_own(name):
    def work():
        libc.unshare(0x400)  # CLONE_FILES
        talk(tcp(), THERE, name)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def by_a_child_that_hands_it_over(name):
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        one = tcp()
        one.connect_ex(THERE)
        socket.send_fds(theirs, [b"x"], [one.fileno()])
        os._exit(0)
    _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
    os.wait()
    said(socket.socket(fileno=fd), name)


def after_another_connection(name):
    one = tcp()
    one.connect(("127.0.0.1", ALLOWED))
    libc.connect(one.fileno(), inet(socket.AF_UNSPEC), 16)
    talk(one, THERE, name)


def a_datagram_past_a_connection(name):
    one = udp()
    one.connect(("127.0.0.1", ALLOWED))
    one.sendto(name.encode(), THERE)


def a_message_without_a_family(name):
    one = udp()
    libc.sendto(one.fileno(), name.encode(), len(name), 0, inet(socket.AF_UNSPEC), 16)


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_ulong),
        ("parts", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_long),
        ("sent", ctypes.c_ulong),
    ]


def the_second_of_two(name):
    part = Part(name.encode(), len(name))
    allowed = struct.pack("=H", 2) + struct.pack("!H", ALLOWED) + socket.inet_aton("127.0.0.1")
    two = (Message * 2)()
    for message, to in zip(two, (allowed + bytes(8), inet()), strict=True):
        message.name, message.name_size = to, 16
        message.parts, message.count = ctypes.addressof(part), 1
    one, done = udp(), 0
    while (
        done < 2 and (sent := libc.sendmmsg(one.fileno(), ctypes.byref(two[done]), 2 - done, 0)) > 0
    ):
        done += sent
    return done


def by_a_short_path(name):
    os.chdir(os.path.dirname(STREAM))
    talk(unix(), "./" + os.path.basename(STREAM), name)


def mounted_elsewhere(name):
    open("mounted", "w").close()
    script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect('mounted'); "
    script += f"s.send({name.encode()!r})"
    line = f'mount --bind {STREAM} mounted && exec "$@"'
    words = ["unshare", "-Urm", "sh", "-c", line, "sh", sys.executable, "-c", script]
    return subprocess.run(words, check=False).returncode


def descriptors_to_a_file(name):
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
    unix(socket.SOCK_DGRAM).sendmsg([name.encode()], control, 0, DATAGRAMS)


def as_a_packet(name):
    """A datagram for lo, made by hand."""
    text = name.encode()
    inner = struct.pack("!HHHH", 9, PORT, 8 + len(text), 0) + text
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, 17, 0)
    head += socket.inet_aton("127.0.0.1") * 2
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
    one = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0800)
    one.sendto(head + inner, ("lo", 0x0800))


def as_a_raw_packet(name):
    text = name.encode()
    one = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    one.sendto(struct.pack("!HHHH", 9, PORT, 8 + len(text), 0) + text, ("127.0.0.1", 0))


WAYS = {
    # By TCP
    "plainly": lambda name: talk(tcp(), THERE, name),
    "without_waiting": without_waiting,
    "by_any_address": lambda name: talk(tcp(), ("0.0.0.0", PORT), name),
    "by_any_address_from_that_of_ipv4": by_any_address_from_that_of_ipv4,
    "as_ipv6": lambda name: talk(tcp(socket.AF_INET6), ("::ffff:127.0.0.1", PORT), name),
    "by_another_protocol": lambda name: talk(tcp(protocol=IPPROTO_MPTCP), THERE, name),
    "with_the_first_bytes": lambda name: tcp().sendto(name.encode(), MSG_FASTOPEN, THERE),
    "with_the_first_message": lambda name: tcp().sendmsg([name.encode()], [], MSG_FASTOPEN, THERE),
    "with_the_first_write": with_the_first_write,
    "by_another_thread": by_another_thread,
    "by_a_thread_with_descriptors_of_its_own": by_a_thread_with_descriptors_of_its_own,
    "by_a_child_that_hands_it_over": by_a_child_that_hands_it_over,
    "after_another_connection": after_another_connection,
    "by_a_ring": run,
    "by_i386": run,
    "by_socketcall": run,
    "with_another_address": run,
    # By UDP
    "a_datagram": lambda name: udp().sendto(name.encode(), THERE),
    "a_connected_datagram": lambda name: talk(udp(), THERE, name),
    "a_datagram_past_a_connection": a_datagram_past_a_connection,
    "a_message": lambda name: udp().sendmsg([name.encode()], [], 0, THERE),
    "a_message_without_a_family": a_message_without_a_family,
    "a_message_as_ipv6": lambda name: udp(socket.AF_INET6).sendmsg(
        [name.encode()], [], 0, ("::ffff:127.0.0.1", PORT)
    ),
    "the_second_of_two": the_second_of_two,
    "by_a_message_of_32_bits": run,
    "by_a_message_through_socketcall": run,
    "with_another_address_for_a_datagram": run,
    "with_a_name_at_last": run,
    "with_another_socket": run,
    # By a file
    "by_its_path": lambda name: talk(unix(), STREAM, name),
    "by_a_short_path": by_a_short_path,
    "by_a_link": lambda name: talk(unix(), here(os.symlink, "a-link"), name),
    "by_a_link_that_looks_like_a_name": lambda name: talk(
        unix(), here(os.symlink, "@a-link"), name
    ),
    "by_a_descriptor_of_it": lambda name: talk(
        unix(), f"/proc/self/fd/{os.open(STREAM, os.O_PATH)}", name
    ),
    "from_our_root": lambda name: talk(unix(), f"/proc/self/root{STREAM}", name),
    "by_another_name": lambda name: talk(unix(), here(os.link, "another-name"), name),
    "mounted_elsewhere": mounted_elsewhere,
    "a_datagram_to_a_file": lambda name: unix(socket.SOCK_DGRAM).sendto(name.encode(), DATAGRAMS),
    "a_message_to_a_file": lambda name: unix(socket.SOCK_DGRAM).sendmsg(
        [name.encode()], [], 0, DATAGRAMS
    ),
    "descriptors_to_a_file": descriptors_to_a_file,
    # Past everything
    "as_a_packet": as_a_packet,
    "as_a_raw_packet": as_a_raw_packet,
}
told = {}
for name in sys.argv[7:] or WAYS:
    try:
        told[name] = WAYS[name](name) or "done"
    except OSError as refusal:
        told[name] = str(refusal)
print(json.dumps(told))
