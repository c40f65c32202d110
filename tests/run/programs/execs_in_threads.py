"""execs_in_threads.py ROUNDS FILE...: a thread for each FILE tries to run it that many times, and
says which errors it got."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)  # os.execv lets no other thread run meanwhile


def run(path: str) -> None:
    errors = set()
    words = (ctypes.c_char_p * 2)(os.fsencode(path), None)
    for _ in range(int(sys.argv[1])):
        libc.execv(words[0], words)
        errors.add(errno.errorcode[ctypes.get_errno()])
    said[path] = sorted(errors)


said: dict[str, list[str]] = {}
threads = [threading.Thread(target=run, args=(path,)) for path in sys.argv[2:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*(error for path in sys.argv[2:] for error in said[path]))
