from __future__ import annotations

import os
import signal

import pytest

from sigwrap.kernel import ptrace


def test_who_is_traced_already_or_gone_can_not_be_seized() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    ptrace.seize(child)
    with pytest.raises(ptrace.NotTraceable):
        ptrace.seize(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with pytest.raises(ptrace.Gone):
        ptrace.seize(child)
    with pytest.raises(ptrace.Gone):
        ptrace.detach(child)
