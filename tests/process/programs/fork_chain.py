"""A process that is gone, with a child in its place, before anybody has read its name in /proc. It
ends by itself after so many generations: the machine is shared."""

import os
import sys

in_its_own_session = sys.argv[1] == "setsid"
os.write(1, b"ready\n")
os.read(0, 1)
os.write(1, b"here\n")
os.fork()
for _ in range(4000):
    if os.fork():
        os._exit(0)
    if in_its_own_session:
        os.setsid()
os.write(1, b"survived\n")
