import ctypes
import os
import socket
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
tool = subprocess.Popen(["./tool"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
assert tool.stdout.readline() == b"ready\n"
pidfd = os.pidfd_open(tool.pid)
for number in map(int, os.listdir(f"/proc/{tool.pid}/fd")):
    if number > 2 and os.readlink(f"/proc/{tool.pid}/fd/{number}").startswith("socket:"):
        taken = libc.syscall(438, pidfd, number, 0)
        break
assert taken >= 0, ctypes.get_errno()
stolen = socket.socket(fileno=taken)
data = bytes.fromhex(sys.argv[1])
try:
    while True:
        stolen.sendall(data)
        if len(sys.argv) == 2:
            break
except OSError:
    pass
print(tool.wait(), subprocess.run(["true"]).returncode)
