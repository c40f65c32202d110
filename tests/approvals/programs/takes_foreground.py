import os
import signal
import sys

os.read(os.open(sys.argv[1], os.O_RDWR), 1)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, os.getpgrp())
print("GOT", os.read(0, 100), flush=True)
