import os
import signal

# A handler of Python's own would wait for the next signal where one comes just before pause().
arrived, announce = os.pipe()
os.set_blocking(announce, False)
signal.set_wakeup_fd(announce)
signal.signal(signal.SIGTERM, lambda number, frame: None)
os.write(1, b"here\n")
while os.read(arrived, 1):
    os.write(1, b"asked\n")
