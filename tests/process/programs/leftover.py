import os
import signal

signal.signal(signal.SIGTERM, lambda n, f: os.write(1, b"asked\n"))
os.write(1, b"here\n")
while True:
    signal.pause()
