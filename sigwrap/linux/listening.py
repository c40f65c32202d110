"""Whether another process receives this process's system calls (seccomp): the kernel allows one."""

from __future__ import annotations

import errno
import os

from sigwrap.errors import KernelError
from sigwrap.linux import libc, seccomp
from sigwrap.linux import process as linux_process

_YES = 1
_PR_GET_SECCOMP = 21
_FILTER = 2


def has_listener() -> bool:
    """Return whether a listener exists. A child tries to add one, which ends with the child."""
    if not _is_filtered():
        return False
    pid = linux_process.fork()
    if pid == 0:
        answer = 0
        try:
            seccomp.install_listener()
        except KernelError as refusal:
            answer = _YES if refusal.errno == errno.EBUSY else 0
        finally:
            os._exit(answer)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == _YES


def _is_filtered() -> bool:
    return int(libc.libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) == _FILTER
