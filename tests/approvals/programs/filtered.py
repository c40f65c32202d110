import ctypes
import json
import os
import socket
import struct
import sys

libc = ctypes.CDLL(None)
program = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
buffer = ctypes.create_string_buffer(program, 8)
header = struct.pack("<HxxxxxxQ", 1, ctypes.addressof(buffer))
assert libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0) == 0
assert libc.syscall(317, 1, 0, header) == 0
if sys.argv[1] == "exec":
    os.execvp(sys.argv[2], sys.argv[2:])
end = socket.socket(socket.AF_UNIX)
if sys.argv[3:]:
    os.unlink(sys.argv[1])
    end.bind(sys.argv[1])
    end.listen()
    print("ready", flush=True)
    while True:
        end.accept()[0].recv(1)
end.connect(sys.argv[1])
try:
    end.send(json.dumps({"v": 1, "do": "approve", "id": sys.argv[2]}).encode() + b"\n")
except BrokenPipeError:
    pass
print(end.makefile().readline(), end="")
