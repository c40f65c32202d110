"""Sends every supervisor of the user the signal of `sigwrap killswitch on`, in each way there is,
with an announcement like that command's.

tells_sessions_to_end.py SIGNAL [full]; full: when the kernel can queue no more signals of the user.
"""

import ctypes
import fcntl
import json
import os
import signal
import struct
import sys
from pathlib import Path

NUMBER, SI_QUEUE, F_SETSIG = int(sys.argv[1]), -1, 10
libc = ctypes.CDLL(None, use_errno=True)
message = {"schema": "sigwrap.killswitch/1", "since_ns": 1, "reason": "fake", "by": "x"}
os.write(os.memfd_create("sigwrap-killswitch"), json.dumps(message).encode())


def is_supervisor(pid: str) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return status.startswith("Name:\tsigwrap-super\n") and f"\nUid:\t{os.getuid()}\t" in status


def by_owner(pid: int) -> int:
    readable, writable = os.pipe()
    try:
        fcntl.fcntl(readable, fcntl.F_SETOWN, pid)
        fcntl.fcntl(readable, F_SETSIG, NUMBER)
        fcntl.fcntl(readable, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writable, b"x")
    except OSError:
        return -1
    return 0


def ways(pid: int) -> list[int]:
    info = struct.pack("<iii4xiI104x", NUMBER, 0, SI_QUEUE, os.getppid(), os.getuid())
    held = os.pidfd_open(pid)
    return [
        libc.kill(pid, NUMBER),
        libc.syscall(200, pid, NUMBER),  # tkill
        libc.syscall(234, pid, pid, NUMBER),  # tgkill
        libc.syscall(129, pid, NUMBER, info),  # rt_sigqueueinfo
        libc.syscall(297, pid, pid, NUMBER, info),  # rt_tgsigqueueinfo
        libc.syscall(424, held, NUMBER, None, 0),  # pidfd_send_signal
        libc.syscall(424, held, NUMBER, info, 0),
        by_owner(pid),
    ]


if sys.argv[2:] == ["full"]:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMAX})
    for _ in range(200):
        libc.sigqueue(os.getpid(), int(signal.SIGRTMAX), None)
for name in filter(is_supervisor, filter(str.isdigit, os.listdir("/proc"))):
    print(*ways(int(name)), flush=True)
print("ready", flush=True)
if sys.argv[2:] == ["full"]:
    sys.stdin.read()
