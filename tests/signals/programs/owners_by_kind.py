import ctypes
import os
import socket
import struct

from family import family
from inside import named, native, tell
from owners import pid_words


def attack(pids):
    os.setpgid(0, 0)
    os.setpgid(pids["child"], os.getpgrp())
    one, _ = socket.socketpair()
    fd = one.fileno()

    def owner():
        room = ctypes.create_string_buffer(8)
        native(72, fd, 16, room)
        kind, pid = struct.unpack("ii", room.raw)
        who = {0: "nobody", os.getpid(): "me", pids["child"]: "child"}.get(pid, pid)
        return [kind, who]

    def after(result):
        return [named(result), owner()]

    told = []
    for call in (
        lambda: native(72, fd, 15, pid_words(2, os.getpgrp())),
        lambda: native(72, fd, 15, pid_words(1, 0)),
        lambda: native(72, fd, 8, -os.getpgrp()),
        lambda: native(16, fd, 0x8901, struct.pack("i", 0)),
        lambda: native(16, fd, 0x8901, struct.pack("i", -os.getpgrp())),
        lambda: native(16, fd, 0x8902, struct.pack("i", pids["child"])),
        lambda: native(72, fd, 8, 0),
        lambda: native(72, fd, 15, pid_words(1, pids["child"])),
        lambda: native(72, fd, 15, pid_words(1, -os.getpgrp())),
        lambda: native(72, fd, 15, pid_words(2, -pids["child"])),
        lambda: native(72, fd, 15, pid_words(7, pids["child"])),
        lambda: native(72, fd, 15, 8),
    ):
        told.append(after(call()))
    tell(told)


family(attack)
