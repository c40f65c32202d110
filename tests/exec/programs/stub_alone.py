import os
import socket
import sys

from sigwrap.record.stand_in import end_with, take_signals

signals, _mask = take_signals()
command = os.fork()
if command == 0:
    os.execv("/bin/sleep", ["sleep", "1000"])
print(command, flush=True)
os._exit(end_with("tool", socket.socket(fileno=int(sys.argv[1])), command, signals))
