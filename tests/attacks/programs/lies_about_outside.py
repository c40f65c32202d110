"""Who may mount here has /proc tell that a process outside is a child of this one, and changes its
limits: before that, and then."""

import os
import re
import resource
import struct
import sys
import tempfile

from inside import libc, named, native, tell

outside = int(sys.argv[1])
LIMITS = struct.pack("QQ", 77, 77)
BIND = 4096


def change():
    return named(native(302, outside, resource.RLIMIT_NOFILE, LIMITS, 0))


before = change()
folder = tempfile.mkdtemp()
for name in ("stat", "status", "comm"):
    with open(f"/proc/{outside}/{name}") as true, open(f"{folder}/{name}", "w") as false:
        false.write(re.sub(r"(\) . )\d+", rf"\g<1>{os.getpid()}", true.read()))  # its parent
covered = libc.mount(folder.encode(), f"/proc/{outside}".encode(), None, BIND, None)
tell([before, covered, change()])
