"""A line editor that runs uname at `u`, with the terminal in line mode meanwhile; `q` ends."""

import os
import signal
import termios
import tty


def run_uname():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execv("/bin/uname", ["uname", "-s"])
        finally:
            os._exit(1)
    os.waitpid(child, 0)


before = termios.tcgetattr(0)
while True:
    try:
        tty.setcbreak(0, termios.TCSANOW)
        os.write(1, b"prompt\n")
        key = os.read(0, 1)
        termios.tcsetattr(0, termios.TCSANOW, before)
        if key == b"q":
            os._exit(3)
        run_uname()
    except KeyboardInterrupt:
        os.write(1, b"interrupted\n")
