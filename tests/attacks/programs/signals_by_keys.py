"""Has the terminal signal its foreground group, sigwrap among it, each way there is; then waits for
a key."""

import json
import os
import signal
import struct
import sys

from inside import has_i386, i386, low, named, native

F_SETFL, F_SETSIG, FIOASYNC = 4, 10, 0x5452
ON = struct.pack("i", 1)

WAYS = {
    "F_SETFL": lambda fd: native(72, fd, F_SETFL, os.O_ASYNC | os.O_RDWR),
    "F_SETFL, upper half": lambda fd: native(72, fd, F_SETFL | 7 << 32, os.O_ASYNC | 7 << 32),
    "FIOASYNC": lambda fd: native(16, fd, FIOASYNC, ON),
    "FIOASYNC, upper half": lambda fd: native(16, fd, FIOASYNC | 7 << 32, ON),
    "i386 F_SETFL": lambda fd: i386(55, fd, F_SETFL, os.O_ASYNC),
    "i386 F_SETFL by fcntl64": lambda fd: i386(221, fd, F_SETFL, os.O_ASYNC),
    "i386 FIOASYNC": lambda fd: i386(54, fd, FIOASYNC, low(ON)),
}
told = {}
opened = []
for name, way in WAYS.items():
    if name.startswith("i386") and not has_i386():
        continue
    fd = os.open("/dev/tty", os.O_RDWR)
    opened.append(fd)
    native(72, fd, F_SETSIG, signal.SIGKILL)
    told[name] = named(way(fd))
# Here the kernel takes the flag, and does nothing of it.
opened.append(os.open("/dev/tty", os.O_RDWR | os.O_ASYNC))
native(72, opened[-1], F_SETSIG, signal.SIGKILL)
sys.stdout.write(f"told {json.dumps(told)} end\r\n")
sys.stdout.flush()
sys.stdin.readline()
sys.stdout.write("it lives on\r\n")
