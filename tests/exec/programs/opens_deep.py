"""Sets flags of a file whose path is longer than the kernel tells, and says what came of it. Then
what a `true` that is denied has on its standard error, which is such a file."""

import errno
import fcntl
import os
import struct
import subprocess

F_SETSIG, F_SETOWN_EX, OWNER_IS_A_PROCESS = 10, 15, 1

for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
with open("file", "w+") as file:
    for command, value in (
        (fcntl.F_SETFL, os.O_ASYNC),
        (F_SETSIG, 10),
        (F_SETOWN_EX, struct.pack("ii", OWNER_IS_A_PROCESS, os.getpid())),
        (fcntl.F_SETFL, 0),
    ):
        try:
            fcntl.fcntl(file, command, value)
            print("done")
        except OSError as failure:
            print(errno.errorcode[failure.errno])
    try:
        subprocess.run(["/bin/true"], stderr=file, check=False)
    except PermissionError:
        pass
    file.seek(0)
    print(file.read(), end="")
