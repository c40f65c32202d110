import os
import signal
import sys

from inside import spawn, tell

child = spawn(signal.pause)
tell("ready")
sys.stdin.readline()
os.kill(child, 9)
tell(os.waitpid(child, 0)[1])
