"""One attack, by its name: of a process that has a child, and whose parent has another one."""

import ctypes
import os
import signal
import socket
import struct
import sys

from family import arrived, family
from inside import drain, has_i386, i386, libc, low, named, native, send, siginfo, spawn, tell
from owners import SETOWNS, by_owner, pid_words


def x32_calls(pids):
    x32 = 0x40000000
    results = [
        named(native(x32 | number, pids["sibling"], 9)) for number in (62, 200, 129, 520, 512 + 12)
    ]
    results.append(named(native(x32 | 234, pids["sibling"], pids["sibling"], 9)))
    tell([results, arrived()])


def upper_halves(pids):
    victim, garbage = pids["sibling"], 0x7EADBEEF << 32
    a, _ = os.pipe()
    one, _ = socket.socketpair()
    here = struct.pack("i", victim)
    results = [
        named(result)
        for result in (
            native(62, garbage | victim, garbage | 9),
            native(62, victim, garbage | 9),
            native(62, garbage | (-victim & 0xFFFFFFFF), 9),
            native(234, garbage | victim, garbage | victim, garbage | 9),
            native(424, garbage | os.pidfd_open(victim), garbage | 9, 0, garbage),
            native(72, garbage | a, garbage | 8, garbage | victim),
            native(16, garbage | one.fileno(), garbage | 0x8901, here),
            native(101, 16, garbage | victim, 0, 0),
            native(101, 0x4206, garbage | victim, 0, 0),
            native(62, garbage | victim, garbage),
            native(72, garbage | a, garbage | 10, garbage | 9),
        )
    ]
    tell([results, arrived()])


def owns_others(pids):
    outside = int(sys.argv[3])
    results = {
        name: {
            who: by_owner(call, pid, 9)
            for who, pid in (("sibling", pids["sibling"]), ("outside", outside))
        }
        for name, call in SETOWNS.items()
    }
    own = {
        name: [by_owner(call, pids["child"], 34), [a["signal"] for a in arrived()["child"]]]
        for name, call in SETOWNS.items()
    }
    groups = {
        name: [by_owner(call, -os.getpgid(outside), 9), by_owner(call, -os.getpgrp(), 9)]
        for name, call in SETOWNS.items()
        if name not in ("F_SETOWN_EX", "F_SETOWN_EX thread", "i386 F_SETOWN_EX")
    }
    groups["F_SETOWN_EX"] = [
        by_owner(lambda fd, leader: native(72, fd, 15, pid_words(2, leader)), group, 9)
        for group in (os.getpgid(outside), os.getpgrp())
    ]
    tell([results, own, groups, arrived()])


def owners_by_kind(pids):
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


def pidfds(pids):
    def by(fd, flags=0, number=34):
        return named(native(424, fd, number, 0, flags))

    child, sibling = pids["child"], pids["sibling"]
    folder = {who: os.open(f"/proc/{pid}", os.O_RDONLY) for who, pid in pids.items()}
    told = {
        "folder": [by(folder["child"]), by(folder["sibling"])],
        "folder, i386": [
            named(i386(424, folder[who], 34, 0, 0)) if has_i386() else by(folder[who])
            for who in ("child", "sibling")
        ],
        "folder, to ask": [by(folder[who], number=0) for who in ("child", "sibling")],
        "folder, by its path": by(os.open(f"/proc/{sibling}", os.O_PATH)),
        "folder, flag": [by(folder[who], flag) for who in folder for flag in (1, 2, 4)],
        "group of its leader": by(os.pidfd_open(sibling), 4),
        "thread": by(os.pidfd_open(sibling, os.O_EXCL)),
        "thread, flag": [by(os.pidfd_open(sibling), 1), by(os.pidfd_open(child), 1)],
        "process, flag": [by(os.pidfd_open(sibling), 2), by(os.pidfd_open(child), 2)],
        "file": by(os.open("/dev/null", os.O_RDONLY)),
    }
    tell([told, arrived()])


def magic_pidfd(pids):
    os.setpgid(0, 0)
    own = os.getpid()
    os.setpgid(pids["child"], own)
    results = [named(native(424, -10001, 34, 0, flags)) for flags in (0, 4)]
    mine = [each["signal"] for each in drain()]
    tell([results, mine, [each["signal"] for each in arrived()["child"]]])


def own_siginfo(pids):
    fd = os.pidfd_open(pids["child"])
    results = [named(native(424, fd, 34, low(siginfo(34)), 0))]
    if has_i386():
        results.append(named(i386(424, fd, 35, low(siginfo(35, "i386")), 0)))
    results.append(named(native(424, fd, 36, low(siginfo(35)), 0)))  # another signal's
    results.append(named(native(424, fd, 36, low(siginfo(36, code=0)), 0)))  # as if from the kernel
    results.append(named(native(424, fd, 36, 8, 0)))
    tell([results, [[a["code"], a["pid"] == os.getpid()] for a in arrived()["child"]]])


def root_of_its_own(pids):
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    fd = os.pidfd_open(pids["sibling"])
    before = named(native(424, fd, 34, 0, 0))
    if native(272, 0x10000000) != 0:  # unshare(CLONE_NEWUSER)
        tell("no user namespaces here")
    else:
        tell([before, named(native(424, fd, 34, 0, 0)), named(native(62, pids["sibling"], 34))])


def not_dumpable(pids):
    libc.prctl(4, 0, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {34})
    results = [
        send(call, "native", pid, 34)
        for call in ("kill", "tgkill", "rt_sigqueueinfo")
        for pid in (os.getpid(), pids["child"])
    ]
    tell([results, len(drain()), len(arrived()["child"])])


def ten_at_once(pids):
    kill = libc.kill
    signal.signal(34, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def at_itself():
        own = os.getpid()
        os._exit(sum(kill(own, 34) != 0 for _ in range(1000)) != 0)

    def at_the_sibling():
        os._exit(sum(kill(pids["sibling"], 9) != -1 for _ in range(1000)) != 0)

    senders = [spawn(run) for run in (at_itself, at_the_sibling) * 5]
    tell([[os.waitpid(pid, 0)[1] for pid in senders], arrived()])


family(globals()[sys.argv[2]])
