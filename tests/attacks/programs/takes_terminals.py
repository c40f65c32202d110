"""Takes a terminal away: by force from the session that it controls, and what else there is."""

import json
import os
import struct
import sys

from inside import has_i386, i386, low, named, native, spawn

TIOCSCTTY = 0x540E
WORD = struct.pack("i", 0)


def by_both(fd, request, argument):
    given = argument if isinstance(argument, int) else None
    results = [native(16, fd, request, argument)]
    if has_i386():
        results.append(i386(54, fd, request, low(argument) if given is None else given))
    return sorted({named(each) for each in results}, key=str)


def in_a_session_of_its_own():
    os.setsid()
    told = {"theirs": by_both(0, TIOCSCTTY, 1), "upper": by_both(0, TIOCSCTTY, 1 | 7 << 32)}
    told["theirs, unforced"] = by_both(0, TIOCSCTTY, 0)
    _, slave = os.openpty()
    told["its own"] = [named(native(16, slave, TIOCSCTTY, 1))]
    told["no terminal"] = by_both(os.open("/dev/null", os.O_RDWR), TIOCSCTTY, 1)
    for name, request in {
        "TIOCCONS": 0x541D,
        "TIOCSETD": 0x5423,
        "TIOCVHANGUP": 0x5437,
        "TIOCSLCKTRMIOS": 0x5457,
        "FIFREEZE": 0xC0045877,
        "FS_IOC_SHUTDOWN": 0x8004587D,
    }.items():
        told[name] = by_both(slave, request, WORD)
    # Last: of a terminal that is the caller's own.
    told["vhangup"] = sorted({named(each) for each in hangs_up()}, key=str)
    sys.stdout.write(f"told {json.dumps(told)} end\r\n")
    sys.stdout.flush()


def hangs_up():
    yield native(153)
    if has_i386():
        yield i386(111)


os.waitpid(spawn(in_a_session_of_its_own), 0)
sys.stdin.readline()
os.close(os.open("/dev/tty", os.O_RDWR))
