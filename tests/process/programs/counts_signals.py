"""Takes three signals of one number, one after the other, and ends at a byte."""

import os
import signal
import sys

number = signal.Signals[sys.argv[1]]
signal.pthread_sigmask(signal.SIG_BLOCK, {number})
os.write(1, b"ready\n")
for _ in range(3):
    os.write(1, b"got %d\n" % signal.sigwait({number}))
os.read(0, 1)
os._exit(4)
