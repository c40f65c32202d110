"""sets_editing_keys.py WHEN GO: asks for /bin/uname, and has the terminal say what becomes a y.

WHEN: "before" the question or "meanwhile", the keys that edit a line become bytes of a terminal's
reports. `ESC [ ? 1 ; 2 $ y` and `ESC [ 0 n` are the line `y` then. Once there is a file GO, the
question is up.
"""

import os
import signal
import sys
import termios
import time


def set_keys():
    modes = termios.tcgetattr(2)
    keys = modes[6]
    keys[termios.VKILL], keys[termios.VERASE], keys[termios.VEOF] = b"$", b"[", b"0"
    termios.tcsetattr(2, termios.TCSANOW, modes)


when, go = sys.argv[1:]
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
if when == "before":
    set_keys()
if os.fork() == 0:
    while not os.path.exists(go):
        time.sleep(0.01)
    if when == "meanwhile":
        set_keys()
    os.write(2, b"\x1b[?1$p\x1b[5n")
    os._exit(0)
os.execv("/bin/uname", ["uname", "-s"])
