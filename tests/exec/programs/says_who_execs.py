"""Children that say their pids and exec, one after another."""

import os

for _ in range(600):
    child = os.fork()
    if child == 0:
        os.write(1, b"%d\n" % os.getpid())
        os.execv("/bin/true", ["true"])
    os.waitpid(child, 0)
