import os
import signal

signal.signal(signal.SIGINT, lambda n, f: os.write(1, b"got\n"))
os.write(1, b"ready\n")
os.read(0, 1)
