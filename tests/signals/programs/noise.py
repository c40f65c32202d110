import os
import signal
import sys

from inside import spawn, tell

child = spawn(signal.pause)
tell("ready")
sys.stdin.readline()
for number in (17, 23, 28):
    for _ in range(100):
        os.kill(child, number)
        os.kill(os.getpid(), number)
tell("quiet")
os.kill(child, 9)
tell("loud")
