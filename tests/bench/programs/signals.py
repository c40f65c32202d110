"""What so many signals to a child take, in seconds; the start of the interpreter is not in it."""

import os
import signal
import sys
import time

count, number = int(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
child = os.fork()
if child == 0:
    signal.pause()
started = time.perf_counter()
for _ in range(count):
    os.kill(child, number)
print(time.perf_counter() - started)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
