import os
import signal

from inside import native, spawn, tell


def tracee():
    assert native(101, 0, 0, 0, 0) == 0  # PTRACE_TRACEME
    os.kill(os.getpid(), signal.SIGSTOP)


child = spawn(tracee)
_, status = os.waitpid(child, 0)
stopped = os.WIFSTOPPED(status)
went_on = native(101, 7, child, 0, 0)  # PTRACE_CONT
_, status = os.waitpid(child, 0)
tell([stopped, went_on, status])
