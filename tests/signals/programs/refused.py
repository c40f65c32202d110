import os
import signal

try:
    os.kill(1, signal.SIGTERM)
except PermissionError:
    print("refused")
