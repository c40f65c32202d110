import os
import signal

signal.signal(signal.SIGWINCH, lambda n, f: os.write(1, b"size %d %d\n" % os.get_terminal_size(0)))
os.write(1, b"ready\n")
os.read(0, 1)
