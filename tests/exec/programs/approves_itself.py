import os
import subprocess
import sys

how, line = sys.argv[1], [*sys.argv[2:], input()]
if how == "child":
    subprocess.run(line)
elif os.fork() == 0:
    os.setsid()
    middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle:
            os.sched_yield()
        subprocess.run(line)
    os._exit(0)
input()
