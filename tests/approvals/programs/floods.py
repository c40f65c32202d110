import os
import socket
import sys

print("floods", flush=True)
while True:
    end = socket.socket(socket.AF_UNIX)
    end.setblocking(False)
    try:
        end.connect(sys.argv[1])
    except OSError:
        os.sched_yield()
