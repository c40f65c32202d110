"""A line editor, as far as a terminal can tell: it takes keys one by one, and handles Ctrl+C as
readline does, with the terminal in line mode for a moment; as `waits` it goes on at the next line.
`c` computes, in line mode, until Ctrl+C; `q` ends.
"""

import os
import signal
import sys
import termios
import tty


def handle(number, frame):
    raise KeyboardInterrupt


kind = sys.argv[1] if len(sys.argv) > 1 else ""
signal.signal(signal.SIGINT, handle)
before = termios.tcgetattr(0)
os.write(1, b"ready\n")
while True:
    try:
        tty.setcbreak(0, termios.TCSANOW)
        os.write(1, b"prompt\n")
        key = os.read(0, 1)
        termios.tcsetattr(0, termios.TCSANOW, before)
        if key == b"q":
            os._exit(3)
        os.write(1, b"computes\n")
        while True:
            pass
    except KeyboardInterrupt:
        termios.tcsetattr(0, termios.TCSANOW, before)
        os.write(1, b"interrupted\n")
        if kind == "waits":
            os.read(0, 100)
