"""What the supervisor reads of the child that is to execute COMMAND."""

from __future__ import annotations

import os
import signal

import pytest

from sigwrap.bare import socket
from sigwrap.errors import NoInterception
from sigwrap.session.launch import Launch, launch
from sigwrap.session.sandbox import Sandbox
from sigwrap.start.child import Child, fork_child
from sigwrap.start.command import HostEnvironment, Inherited

UNRESTRICTED = Sandbox(frozenset(), frozenset(), True, False, None, (), ())


def test_a_child_that_is_killed_before_it_reads_the_word_to_go_on_is_no_failure() -> None:
    """As a kill switch does that is on at the start: the run's log once had no end then."""
    ours, its = socket.socketpair()
    ours.settimeout(1)
    launched = Launch(1, ours)
    launched.go()
    its.close()
    assert launched.exec_failure() is None
    ours.close()


@pytest.fixture
def child() -> Child:
    return fork_child(("true",), Inherited({}, frozenset(), frozenset(), ()))


def test_a_child_that_is_killed_before_it_gets_its_orders_ends_the_launch(child: Child) -> None:
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(NoInterception, match="ended before it was ready") as said:
        launch(child, b"/bin/true", "session", HostEnvironment({}, {}, ()), UNRESTRICTED)
    assert "a signal killed it" in said.value.hint
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, 0)


def test_a_child_without_orders_ends_with_its_channel(child: Child) -> None:
    child.channel.close()
    _, status = os.waitpid(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 126
