"""A process that is gone, with a child in its place, before anybody has read its name in /proc. It
ends by itself after a while: the machine is shared."""

import os
import sys
import time

in_its_own_session = sys.argv[1] == "setsid"
os.write(1, b"ready\n")
os.read(0, 1)
os.write(1, b"here\n")
os.fork()
until_s = time.monotonic() + 25
while time.monotonic() < until_s:
    if os.fork():
        os._exit(0)
    if in_its_own_session:
        os.setsid()
os.write(1, b"survived\n")
