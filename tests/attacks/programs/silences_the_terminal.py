"""silences_the_terminal.py HOW LINE...: keeps sigwrap from writing on the terminal, and runs LINE.

HOW: "exclusive" to whoever has it open, or "stopped" output.
"""

import fcntl
import os
import sys
import termios

how, *line = sys.argv[1:]
if how == "exclusive":
    fcntl.ioctl(2, termios.TIOCEXCL)
else:
    termios.tcflow(2, termios.TCOOFF)
os.execvp(line[0], line)
