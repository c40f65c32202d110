import os
import signal


def hang(number, frame):
    os.write(1, b"interrupted\n")
    while True:
        signal.pause()


signal.signal(signal.SIGINT, hang)
signal.signal(signal.SIGTERM, lambda number, frame: None)
os.write(1, b"ready\n")
while True:
    signal.pause()
