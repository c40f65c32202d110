import ctypes
import os
import sys

assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0
try:
    os.execv(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(error.errno, flush=True)
    os._exit(7)
