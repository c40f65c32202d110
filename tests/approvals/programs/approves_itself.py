import os
import re
import subprocess
import sys

how, sigwrap = sys.argv[1:3]
line = ["/bin/sh", "-c", "/bin/uname"]
asker = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
line = b""
while not (found := re.search(rb"sigwrap approve ([0-9a-f]+)", line)):
    line = asker.stderr.readline()
approve = [sigwrap, "approve", found.group(1).decode()]
if how == "child":
    done = subprocess.run(approve)
elif how == "detached":
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.set_inheritable(writing, True)
            subprocess.run(approve, close_fds=False)
        os._exit(0)
    os.close(writing)
    os.wait()
    os.read(reading, 1)
print("uname said", asker.stdout.read().decode())
