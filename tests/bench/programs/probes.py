"""What so many execs of files that aren't there take, in seconds: a search along PATH."""

import os
import sys
import time

count, folder = int(sys.argv[1]), sys.argv[2]
started = time.perf_counter()
for _ in range(count):
    try:
        os.execv(folder + "/none-of-this-name", ["none"])
    except FileNotFoundError:
        pass
print(time.perf_counter() - started)
