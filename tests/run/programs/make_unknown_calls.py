"""Makes the calls that no mediator knows, and says what came of each."""

from __future__ import annotations

import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)
# 577 is read as no signal by what takes it for one: it must not pass for that either.
for name, arguments in (("personality", (0xFFFFFFFF, 577)), ("fcntl", (0, 11, 577))):
    result = getattr(libc, name)(*map(ctypes.c_long, arguments))
    print(name, errno.errorcode[ctypes.get_errno()] if result < 0 else result, flush=True)
