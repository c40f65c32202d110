"""covers_a_file.py SOURCE TARGET LINE…: runs LINE, whose descriptor 9 is TARGET as it looks in a
mount namespace where SOURCE lies over it."""

import ctypes
import os
import sys

NEWNS, NEWUSER, BIND, REC_PRIVATE = 0x20000, 0x10000000, 0x1000, 0x44000
source, target, *line = sys.argv[1:]
libc = ctypes.CDLL(None)
ready, tell = os.pipe()
wait, go = os.pipe()
if os.fork():
    os.close(tell)
else:
    if os.fork():
        os._exit(0)  # it is to be nobody's child
    os.close(go)
    failed = (
        libc.unshare(NEWNS if os.getuid() == 0 else NEWNS | NEWUSER)
        or libc.mount(b"none", b"/", None, REC_PRIVATE, None)
        or libc.mount(source.encode(), target.encode(), None, BIND, None)
    )
    os.write(tell, b"" if failed else b"%d" % os.getpid())
    os.close(tell)
    os.read(wait, 1)
    os._exit(0)
os.wait()
child = int(os.read(ready, 20))
os.set_inheritable(go, True)  # it ends when all the others have
os.dup2(os.open(f"/proc/{child}/root{target}", os.O_RDONLY), 9, inheritable=True)
os.execv(line[0], line)
