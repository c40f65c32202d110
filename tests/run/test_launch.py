"""What the supervisor reads of the child that is to execute COMMAND."""

from __future__ import annotations

from sigwrap.bare import socket
from sigwrap.session.launch import Launch


def test_a_child_that_is_killed_before_it_reads_the_word_to_go_on_is_no_failure() -> None:
    """As a kill switch does that is on at the start: the run's log once had no end then."""
    ours, its = socket.socketpair()
    ours.settimeout(1)
    launched = Launch(1, ours)
    launched.go()
    its.close()
    assert launched.exec_failure() is None
    ours.close()
