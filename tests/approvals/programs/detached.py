import os
import subprocess
import sys

said, line = sys.argv[1], sys.argv[2:]
if os.fork() == 0:
    os.setsid()
    middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle:
            pass
        done = subprocess.run(line, stderr=subprocess.PIPE)
        with open(said + ".new", "wb") as file:
            file.write(done.stderr)
        os.rename(said + ".new", said)
    os._exit(0)
os.wait()
while not os.path.exists(said):
    pass
sys.stderr.write(open(said).read())
