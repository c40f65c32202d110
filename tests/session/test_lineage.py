from __future__ import annotations

from sigwrap.policy.request import TargetType, most_specific
from sigwrap.session.lineage import Process, types_inside


def process(pid: int, parent: Process | None) -> Process:
    depth = 0 if parent is None else parent.depth + 1
    return Process(
        pid=pid,
        start_time=pid,
        parent=parent,
        ppid=0 if parent is None else parent.pid,
        depth=depth,
        comm=f"p{pid}",
    )


def most_specific_type(sender: Process, target: Process, command: Process) -> TargetType:
    return most_specific(types_inside(sender, target, command))


def test_what_a_target_is_to_its_sender() -> None:
    command = process(1, None)
    agent = process(2, command)
    server = process(3, command)
    shell = process(4, agent)
    tool = process(5, shell)
    servers_child = process(6, server)
    orphan = process(7, None)

    assert most_specific_type(shell, shell, command) is TargetType.SELF
    assert most_specific_type(agent, shell, command) is TargetType.CHILDREN
    assert most_specific_type(agent, tool, command) is TargetType.DESCENDANTS
    assert most_specific_type(tool, agent, command) is TargetType.ANCESTORS
    assert most_specific_type(tool, command, command) is TargetType.ROOT
    assert most_specific_type(agent, server, command) is TargetType.SIBLINGS
    assert most_specific_type(shell, servers_child, command) is TargetType.SESSION
    assert most_specific_type(shell, orphan, command) is TargetType.SESSION


def test_a_target_is_several_things_at_once() -> None:
    command = process(1, None)
    agent = process(2, command)
    assert types_inside(agent, command, command) == {
        TargetType.ROOT,
        TargetType.ANCESTORS,
        TargetType.SESSION,
    }
    assert types_inside(command, agent, command) == {
        TargetType.CHILDREN,
        TargetType.DESCENDANTS,
        TargetType.SESSION,
    }


def test_orphans_are_no_siblings_of_command() -> None:
    command, orphan = process(1, None), process(2, None)
    assert most_specific_type(orphan, command, command) is TargetType.ROOT
    assert most_specific_type(command, orphan, command) is TargetType.SESSION


def test_a_parent_that_has_ended_is_still_an_ancestor() -> None:
    command = process(1, None)
    gone = process(2, command)
    child = process(3, gone)
    del gone
    assert child.has_ancestor(command)
