"""types_the_answer.py NAME HOW LINE...: a terminal by this name, with LINE on it.

HOW: "types" the yes of each question; "lends" the other end to LINE, by descriptor 9, and types
nothing; "approves" runs `sigwrap approve` for each question, like a window of a multiplexer. What
appears on the terminal is passed on to the standard output.
"""

import ctypes
import fcntl
import os
import re
import subprocess
import sys
import termios
import time

name, how, *line = sys.argv[1:]
PR_SET_NAME = 15
ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
master, slave = os.openpty()
if how == "lends":
    os.dup2(master, 9, inheritable=True)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(slave, fd)
    os.execvp(line[0], line)
os.close(slave)
seen = b""
answered = 0
while True:
    try:
        data = os.read(master, 4096)
    except OSError:  # nobody is left on it
        break
    os.write(1, data)
    seen += data
    ids = re.findall(rb"sigwrap approve ([0-9a-f]{6})", seen)
    codes = re.findall(rb'"y (\w{4})" \(once\)', seen)
    if how == "types" and len(codes) > answered:
        answered = len(codes)
        time.sleep(0.4)  # an answer that comes faster than one can read is none
        os.write(master, b"y %s\n" % codes[-1])
    elif how == "approves" and len(set(ids)) > answered:
        answered += 1
        subprocess.run([line[0], "approve", ids[-1]], check=False)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
