"""Executes /bin/sh, which says how many arguments it got: COUNT words, each on a page of its own of
a file: `execs_from_many_pages.py COUNT`."""

import ctypes
import mmap
import os
import sys
import tempfile

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
count = int(sys.argv[1])
file = tempfile.TemporaryFile()
file.write(b"word".ljust(PAGE, b"\0") * count)
file.flush()
pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
first = [b"sh", b"-c", b"echo $#", b"sh"]
addresses = [start + PAGE * number for number in range(count)]
strings = [ctypes.create_string_buffer(word) for word in first]
argv = [*map(ctypes.addressof, strings), *addresses, None]
array = (ctypes.c_void_p * len(argv))(*argv)
libc.execve(b"/bin/sh", array, None)
sys.exit(os.strerror(ctypes.get_errno()))
