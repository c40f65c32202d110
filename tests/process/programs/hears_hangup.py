"""Says each SIGHUP and SIGCONT."""

import os
import signal

for each in (signal.SIGHUP, signal.SIGCONT):
    signal.signal(each, lambda number, _: os.write(1, b"got %d\n" % number))
os.write(1, b"ready\n")
while True:
    signal.pause()
