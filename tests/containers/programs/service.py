"""A service that tells its manager how it is, as sd_notify(3) does it, and what it does at SIGTERM;
`stubborn`, it doesn't end by it."""

import os
import signal
import socket
import sys
import time

own = str(os.getpid())
server = socket.socket(fileno=os.dup(3))
for name in ("LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"):
    assert os.environ[name] == own, name
assert server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def tell(text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1)
        manager.connect(address)
        manager.sendmsg([text.encode()])


def end(number, frame):
    tell("STOPPING=1")
    if "stubborn" not in sys.argv:
        sys.exit(0)


signal.signal(signal.SIGTERM, end)
if os.fork() == 0:  # a worker, which ignores what ends its parent
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell("WORKER=1")
    while True:
        signal.pause()
tell(f"READY=1\nMAINPID={own}")
while True:
    tell("WATCHDOG=1")
    time.sleep(0.05)
