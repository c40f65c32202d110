import os
import signal

try:
    os.kill(1, signal.SIGTERM)
    print("FAIL: should have been blocked")
except PermissionError:
    print("PASS: blocked as expected")
