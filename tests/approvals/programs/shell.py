import os
import sys

job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.execvp(sys.argv[2], sys.argv[2:])
os.read(os.open(sys.argv[1], os.O_RDWR), 1)
os.tcsetpgrp(0, job)
os.waitpid(job, 0)
