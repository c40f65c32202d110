"""In a pid namespace of its own: one listens and ends, and another process gets its number. Says
what there is against whoever listens, for each way that it is asked for."""

import os
import socket
import sys
from pathlib import Path

from sigwrap.kernel import libc, peer

NO_SUCH_OPTION = 9999


def fork_as(number: int) -> None:
    """A process that runs on."""
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(number - 1))
    pid = os.fork()
    if pid == 0:
        os.read(waiting, 1)
        os._exit(0)
    assert pid == number


libc.set_process_name(sys.argv[2].encode())
waiting, _held = os.pipe()
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listener = os.fork()
if listener == 0:
    listening.listen()
    os._exit(0)
os.waitid(os.P_PID, listener, os.WEXITED | os.WNOWAIT)


def objection() -> str:
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(sys.argv[1])
        return peer.objection_to_listener(end)


print("not reaped:", objection())
os.waitpid(listener, 0)
print("reaped:", objection())
fork_as(listener)
assert not peer.carries_more_filters_than_us(listener)
print("another:", objection())
peer.SO_PEERPIDFD = NO_SUCH_OPTION
print("by number:", objection())
listening.listen()  # as ourselves
libc.set_process_name(b"sigwrap-super")
print("ourselves by number:", objection())
