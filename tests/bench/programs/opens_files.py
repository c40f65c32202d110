"""What so many opens take, each of a file of its own, in seconds; the start of the interpreter is
not in it. opens_files.py COUNT write|read, in the working folder."""

import os
import sys
import time

count = int(sys.argv[1])
flags = os.O_WRONLY | os.O_CREAT if sys.argv[2] == "write" else os.O_RDONLY
os.makedirs("opened", exist_ok=True)
names = [f"opened/{at}" for at in range(100)]
for name in names:
    os.close(os.open(name, os.O_RDONLY | os.O_CREAT))
started = time.perf_counter()
for at in range(count):
    os.close(os.open(names[at % 100], flags))
print(time.perf_counter() - started)
