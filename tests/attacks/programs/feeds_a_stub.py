"""A stub is stopped, its socket taken, and its command given COUNT bytes of input, a frame each.
Once the command has read them, it says so, and whether a bystander could run something meanwhile:
`feeds_a_stub.py COUNT`."""

import ctypes
import os
import signal
import socket
import stat
import struct
import subprocess
import sys

SYS_PIDFD_GETFD = 438
HEADER = struct.Struct(">BI")
STDIN = 4
COUNT = struct.Struct(">Q")
libc = ctypes.CDLL(None, use_errno=True)
count = int(sys.argv[1])


def socket_of(pid):
    pidfd = os.pidfd_open(pid)
    for number in range(3, 64):
        fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
        if fd >= 0 and stat.S_ISSOCK(os.fstat(fd).st_mode):
            return socket.socket(fileno=fd)
    raise LookupError(pid)


def passed_on(end):
    """Until the count of what the command's input has taken is all of it."""
    data = b""
    while True:
        while len(data) >= HEADER.size:
            kind, length = HEADER.unpack_from(data)
            if len(data) < HEADER.size + length:
                break
            if kind == STDIN and COUNT.unpack_from(data, HEADER.size)[0] == count:
                return
            data = data[HEADER.size + length :]
        data += end.recv(1 << 16)


# Its input is never written to: the stub has nothing to say by itself.
stub = subprocess.Popen(["./tool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert stub.stdout.readline() == b"ready\n"
os.kill(stub.pid, signal.SIGSTOP)
os.waitpid(stub.pid, os.WUNTRACED)
end = socket_of(stub.pid)
end.setblocking(True)
if os.fork() == 0:
    end.sendall((HEADER.pack(STDIN, 1) + b"x") * count)
    os._exit(0)
bystander = subprocess.run(["/bin/true"], check=False).returncode
passed_on(end)
print("all passed on, bystander", bystander, flush=True)
os.kill(stub.pid, signal.SIGKILL)
