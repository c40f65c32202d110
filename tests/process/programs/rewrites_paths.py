"""rewrites_paths SECONDS CALLS: opens by a path that another thread changes all the while, for so
long and so often at least."""

import ctypes
import os
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(64)
seconds, wanted = float(sys.argv[1]), int(sys.argv[2])
until, is_over = time.monotonic() + seconds, False


def rewrite() -> None:
    at = 0
    while not is_over:
        at += 1
        path.value = (b"one", b"two/three", b"", b"\xff\xfe", b"x" * 60, b"/proc/self/cwd/four")[
            at % 6
        ]


threading.Thread(target=rewrite).start()
os.mkdir("two")
calls = 0
while time.monotonic() < until or calls < wanted:
    fd = libc.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    if fd >= 0:
        os.close(fd)
    libc.unlink(path)
    calls += 1
is_over = True
