"""A prompt from which another program is started and waited for as system(3) does it: Ctrl+C is
that program's, which ends by it at the next line, and then the prompt is back. `q` ends.
"""

import os
import signal
import termios
import tty

before = termios.tcgetattr(0)
signal.signal(signal.SIGINT, lambda number, frame: None)
at_prompt = signal.signal(signal.SIGINT, signal.SIG_IGN)
child = os.fork()
if child == 0:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.write(1, b"ready\n")
    signal.sigwait([signal.SIGINT])
    os.write(1, b"interrupted\n")
    os.read(0, 100)
    os._exit(0)
os.waitpid(child, 0)
signal.signal(signal.SIGINT, at_prompt)
tty.setcbreak(0, termios.TCSANOW)
os.write(1, b"prompt\n")
while os.read(0, 1) != b"q":
    pass
termios.tcsetattr(0, termios.TCSANOW, before)
os._exit(3)
