from __future__ import annotations

import pytest

from sigwrap.policy.judge.request import TargetType, most_specific
from sigwrap.session.lineage import Image, Images, Process, types_inside, types_outside


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
    command = process(1, None)
    child = process(2, command)
    for each in (command, child):
        assert types_inside(each, each, command) == {TargetType.SELF, TargetType.SESSION}
    command = process(1, None)
    agent = process(2, command)
    assert types_inside(agent, command, command) == {
        TargetType.ROOT,
        TargetType.ANCESTORS,
        TargetType.AGENT,
        TargetType.SESSION,
    }
    assert types_inside(command, agent, command) == {
        TargetType.CHILDREN,
        TargetType.DESCENDANTS,
        TargetType.SESSION,
    }
    command, orphan = process(1, None), process(2, None)
    assert most_specific_type(orphan, command, command) is TargetType.ROOT
    assert most_specific_type(command, orphan, command) is TargetType.DESCENDANTS
    assert TargetType.ANCESTORS in types_inside(orphan, command, command)


NODE, SHELL = (1, 10), (1, 11)


def forked(pid: int, parent: Process) -> Process:
    child = process(pid, parent)
    child.family = parent.family
    return child


def test_the_agent_and_its_workers_as_others_see_them_and_as_peers() -> None:
    command = process(1, None)
    command.runs(NODE)
    worker, other = forked(2, command), forked(3, command)
    other.runs(NODE)  # anew, from the same file
    shell = forked(4, command)
    shell.runs(SHELL)
    tool = forked(5, shell)
    tool.runs(NODE)
    for each in (command, worker, other):
        assert TargetType.AGENT in types_inside(tool, each, command)
        assert TargetType.PEERS not in types_inside(tool, each, command)
        assert TargetType.AGENT not in types_inside(each, tool, command)
    for one, another in ((worker, command), (command, worker), (other, worker)):
        assert TargetType.PEERS in types_inside(one, another, command)
        assert TargetType.AGENT not in types_inside(one, another, command)
    assert TargetType.PEERS not in types_inside(tool, shell, command)


def test_only_what_ran_nothing_else_than_the_agent_s_program_is_its_peer() -> None:
    command = process(1, None)
    command.runs(NODE)
    tool = forked(2, command)
    assert TargetType.PEERS in types_inside(tool, command, command)
    tool.runs(SHELL)
    assert TargetType.AGENT in types_inside(tool, command, command)
    tool.runs(NODE)
    assert TargetType.AGENT in types_inside(tool, command, command)
    assert types_inside(command, tool, command) == {
        TargetType.CHILDREN,
        TargetType.DESCENDANTS,
        TargetType.SESSION,
    }
    command = process(1, None)
    command.runs(NODE)
    child = forked(2, command)
    child.runs(None)
    child.runs(NODE)
    assert TargetType.AGENT in types_inside(child, command, command)
    command = process(1, None)
    command.runs(SHELL)
    subshell = forked(2, command)
    command.runs(NODE)
    assert TargetType.AGENT in types_inside(subshell, command, command)
    assert TargetType.AGENT not in types_inside(command, subshell, command)


def test_who_is_outside() -> None:
    for is_system, same_user, kind in (
        (True, True, TargetType.SYSTEM),
        (True, False, TargetType.SYSTEM),
        (False, True, TargetType.USER),
        (False, False, TargetType.EXTERNAL),
    ):
        types = types_outside(is_system=is_system, same_user=same_user)
        assert types == {kind, TargetType.EXTERNAL}


def test_the_name_of_one_that_has_ended_is_that_of_its_last_exec() -> None:
    tool = process(2, None)
    assert tool.last_name == "p2"
    tool.argv = ("/opt/bin/a-name-of-17-char", "x")
    assert tool.last_name == "p2"
    tool.comm_is_current = False
    assert tool.last_name == "a-name-of-17-ch"
    tool.argv = ()
    assert tool.last_name == "p2"


def test_of_one_that_has_ended_no_words_stay_and_that_it_has_run_something_does() -> None:
    parent = process(1, None)
    for ran in (("/usr/bin/cc", "-c", "a" * 200), ()):
        child = process(2, parent)
        child.becomes_another(ran)
        child.ended()
        assert "".join(child.argv) == "" and bool(child.argv) == bool(ran)
        assert child.parent is parent


def test_a_parent_that_has_ended_is_still_an_ancestor() -> None:
    command = process(1, None)
    gone = process(2, command)
    child = process(3, gone)
    del gone
    assert child.has_ancestor(command)
    # Each process forks once and ends; the last still has its living ancestors above it.
    command = process(1, None)
    runner = agent = process(2, command)
    for pid in range(3, 1000):
        after = process(pid, runner)
        if runner is not agent:
            runner.ended()
        runner = after
    assert runner.depth == 998
    assert runner.has_ancestor(agent) and runner.has_ancestor(command)
    above, chain = runner.parent, 0
    while above is not None:
        above, chain = above.parent, chain + 1
    assert chain <= 4


def image_of(name: str) -> Image:
    """Of a program without address randomization, each run looks the same."""
    if not name:
        return ()
    code, moved = int.from_bytes(name.encode()), 0 if "unmoved" in name else 1 << 30
    return code, 0x7FFFFFFFE000 - moved, code + 1


class Tree:
    """Processes with images, met in the order in which a supervisor would."""

    def __init__(self) -> None:
        self.images = Images()
        self.command = self.meets(1, None, "command")

    def meets(self, pid: int, parent: Process | None, name: str) -> Process:
        """`parent`: as the kernel has it; None where the supervisor has adopted an orphan."""
        image = image_of(name)
        known = process(pid, self.images.parent_by_image(image, parent) if pid > 1 else None)
        self.images.note(known, image)
        return known

    def execs(self, known: Process, name: str) -> Process:
        self.images.loaded(known, image_of(name))
        return known

    def execs_unseen(self, known: Process) -> None:
        self.images.loads_unseen(known)


def test_a_child_is_its_parents_also_after_an_exec_and_beside_others() -> None:
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    tool = tree.meets(3, shell, "shell")
    assert (shell.depth, tool.depth, tool.parent) == (1, 2, shell)
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    tree.execs(shell, "other")
    child = tree.meets(3, shell, "shell")
    assert (child.parent, child.depth) == (shell, 2)
    # An orphan goes to somebody above its parent, never to one beside it.
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    other = tree.execs(tree.meets(3, tree.command, "command"), "other")
    child = tree.meets(4, other, "shell")
    assert (child.parent, child.depth) == (other, shell.depth + 1)


def test_an_orphan_is_known_by_its_image() -> None:
    """Its parent has ended. Had it been a grandchild, nobody could tell."""
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    other = tree.execs(tree.meets(3, shell, "shell"), "other")
    tree.execs(tree.meets(4, other, "other"), "deepest")
    shell.ended()
    orphan = tree.meets(5, None, "shell")
    assert (orphan.depth, orphan.has_ancestor(shell)) == (3, True)
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    tool = tree.execs(tree.meets(3, shell, "shell"), "tool")
    orphan = tree.meets(4, tree.command, "tool")
    assert (orphan.depth, orphan.has_ancestor(tool)) == (tool.depth + 2, True)


def test_the_images_that_are_known_are_those_that_were_loaded() -> None:
    tree = Tree()
    tree.execs(tree.meets(2, tree.command, "command"), "shell")
    assert tree.images.knows(image_of("shell"))
    assert not tree.images.knows(image_of("command"))


def test_a_double_forks_middle_was_there_though_nobody_saw_it() -> None:
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    orphan = tree.meets(3, None, "shell")
    assert orphan.depth == shell.depth + 2
    assert orphan.has_ancestor(shell)
    assert most_specific_type(shell, orphan, tree.command) is TargetType.DESCENDANTS


def test_what_could_be_of_several_is_of_the_deepest() -> None:
    """Without address randomization, two runs of one program look the same."""
    tree = Tree()
    one = tree.execs(tree.meets(2, tree.command, "command"), "same")
    two = tree.execs(tree.meets(3, one, "same"), "same")
    one.ended()
    two.ended()
    assert tree.meets(4, None, "same").depth == two.depth + 2


@pytest.mark.parametrize("image", ["never seen", ""])
@pytest.mark.parametrize("below_subreaper", [False, True])
def test_who_hides_its_image_is_the_deepest_of_all(image: str, below_subreaper: bool) -> None:
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "shell")
    tool = tree.execs(tree.meets(3, shell, "shell"), "tool")
    tool.ended()
    tree.execs_unseen(tree.meets(5, tree.command, "command"))
    parent = tree.command if below_subreaper else None
    assert tree.meets(4, parent, image).depth == tool.depth + 2


@pytest.mark.parametrize("image", ["", "unmoved"])
def test_a_subreaper_adopts_nobody_that_looks_like_itself(image: str) -> None:
    """Both hide their image, or both have the same by switching randomization off."""
    tree = Tree()
    subreaper = tree.execs(tree.meets(2, tree.command, "command"), image or "subreaper")
    tool = tree.execs(tree.meets(3, subreaper, image or "subreaper"), image or "tool")
    tree.images.note(subreaper, image_of(image))
    assert tree.meets(4, subreaper, image).depth == tool.depth + 2


def test_whose_exec_nobody_saw_may_look_like_anybody() -> None:
    tree = Tree()
    subreaper = tree.execs(tree.meets(2, tree.command, "command"), "unmoved")
    shell = tree.execs(tree.meets(3, subreaper, "unmoved"), "shell")
    traced = tree.meets(4, shell, "shell")
    tree.execs_unseen(traced)
    assert tree.meets(5, subreaper, "unmoved").depth == traced.depth + 2
    assert tree.meets(6, None, "unmoved").depth == traced.depth + 2
    assert tree.meets(7, shell, "shell").depth == shell.depth + 1


def test_children_of_unmoved_programs_are_their_parents() -> None:
    tree = Tree()
    shell = tree.execs(tree.meets(2, tree.command, "command"), "unmoved shell")
    for pid in range(3, 100):
        tool = tree.execs(tree.meets(pid, shell, "unmoved shell"), "unmoved tool")
        assert (tool.parent, tool.depth) == (shell, 2)
        tool.ended()


def test_that_images_were_forgotten_brings_nobody_up() -> None:
    """Many execs that all look different, and like runs without randomization."""
    tree = Tree()
    subreaper = tree.execs(tree.meets(2, tree.command, "command"), "unmoved")
    shell = tree.execs(tree.meets(3, subreaper, "unmoved"), "shell")
    deep = tree.execs(tree.meets(4, shell, "shell"), "unmoved")
    deep.ended()
    for pid in range(5, 30_000):
        tree.execs(tree.meets(pid, tree.command, "command"), f"unmoved {pid}").ended()
    assert tree.meets(30_000, subreaper, "unmoved").depth == deep.depth + 2


def test_images_of_the_dead_are_forgotten_and_those_of_the_living_kept() -> None:
    tree = Tree()
    living = tree.execs(tree.meets(2, tree.command, "command"), "living")
    deepest = tree.execs(tree.meets(3, living, "living"), "deepest")
    for pid in range(4, 30_000):
        tree.execs(tree.meets(pid, tree.command, "command"), str(pid)).ended()
    assert tree.meets(30_000, tree.command, "command").depth == 1
    assert tree.meets(30_001, None, "4").depth == deepest.depth + 2
    assert tree.meets(30_002, None, "living").depth == living.depth + 2
