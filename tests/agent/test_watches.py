from __future__ import annotations

import pytest

from sigwrap.agent.watches import MAX_EXECS_WATCHED, DriftWatch, LoopWatch, program_and_subcommand
from sigwrap.errors import PolicyError
from sigwrap.events import Event
from sigwrap.policy.judge.recorded import program_named
from sigwrap.policy.judge.request import CommandRequest
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.generate import generate_policy

# Loops


def noted(watch: LoopWatch, *times_s: float, argv: tuple[str, ...] = ("ls", "-l")) -> list[float]:
    """Return the times at which the watch reports a loop."""
    return [now_s for now_s in times_s if watch.noted("/bin/ls", argv, "/project", now_s)]


def test_the_nth_exec_within_the_time_is_a_loop_and_counts_once() -> None:
    assert noted(LoopWatch(3, 10), 0, 5, 10) == [10]
    assert noted(LoopWatch(2, 10), 0, 10) == [10]
    assert noted(LoopWatch(3, 10), 0, 5, 10.1, 15) == [15]
    assert noted(LoopWatch(3, 10), 0, 9, 18, 27, 36) == []
    watch = LoopWatch(3, 10)
    assert noted(watch, 0, 1, 2, 3, 4, 5, 13, 23, 33) == [2]
    assert noted(watch, 43.1, 44, 45, 46) == [45]
    watch = LoopWatch(2, 10)
    assert not watch.noted("/bin/ls", ["ls", "-l"], "/project", 0)
    assert noted(watch, 1) == [1]


@pytest.mark.parametrize(
    "other",
    [
        ("/bin/l", ("ls", "-l"), "/project"),
        ("/bin/ls", ("ls", "-l", ""), "/project"),
        ("/bin/ls", ("ls-l",), "/project"),
        ("/bin/ls", ("ls", "-\udcff"), "/project"),
        ("/bin/ls", ("ls", "-l"), "/"),
        ("/project", ("ls", "-l"), "/bin/ls"),
    ],
)
def test_file_arguments_and_folder_make_an_exec(
    other: tuple[str, tuple[str, ...], str],
) -> None:
    watch = LoopWatch(2, 10)
    file, argv, cwd = other
    assert noted(watch, 0) == []
    assert not watch.noted(file, argv, cwd, 1)
    assert noted(watch, 2) == [2]


def test_the_least_recent_exec_is_forgotten() -> None:
    def others(count: int) -> None:
        for number in range(count):
            assert not watch.noted("/bin/true", ("true", str(number)), "/project", 1)

    watch = LoopWatch(3, 10)
    assert noted(watch, 0, 0) == []
    others(MAX_EXECS_WATCHED - 1)
    assert noted(watch, 1) == [1]  # still known, and now the newest
    watch = LoopWatch(3, 10)
    assert noted(watch, 0, 0) == []
    others(MAX_EXECS_WATCHED)
    assert noted(watch, 1) == []


def test_a_clock_that_goes_back() -> None:
    assert noted(LoopWatch(2, 10), 100, 1, 2) == [1]


# Drift


def request(*argv: str, path: str = "") -> CommandRequest:
    program = program_named(path or f"/usr/bin/{argv[0]}", argv, "/project")
    return CommandRequest(programs=(program,))


def parsed(text: str) -> Policy:
    source = Source(name="profile.yaml", text=text)
    return parse_policy(source, variables={}, find_base=lambda name, source: None)


def profile(*observed: CommandRequest) -> Policy:
    events = []
    for each in observed:
        program = each.programs[0]
        payload = {"path": program.path, "argv": list(program.argv), "cwd": "/project"}
        events.append(Event(seq=1, time_ns=0, type="exec_allowed", pid=1, payload=payload, hash=""))
    return parsed(generate_policy(events, name="profile"))


def test_observed_programs_are_inside_the_profile() -> None:
    watch = DriftWatch(profile(request("git", "status"), request("ls", "-l")))
    for inside in (("git", "status", "-s"), ("git", "-C", "/x", "status"), ("ls",)):
        assert not watch.outside(request(*inside)), inside
    for outside in (("git", "push"), ("git",), ("curl", "-O", "x")):
        assert watch.outside(request(*outside)), outside


def test_a_name_alone_or_an_additional_program_is_outside() -> None:
    """The link is called ls, and another file would run."""
    watch = DriftWatch(profile(request("ls")))
    program = program_named("/project/evil", ("ls",), "/project")._replace(name="ls")
    assert watch.outside(CommandRequest(programs=(program,)))
    watch = DriftWatch(profile(request("env"), request("ls")))
    inside, outside = request("ls").programs, request("nc").programs
    assert not watch.outside(CommandRequest(programs=request("env").programs + inside))
    assert watch.outside(CommandRequest(programs=request("env").programs + outside))


def test_audited_programs_are_inside_and_those_to_approve_are_not() -> None:
    watch = DriftWatch(
        parsed(
            "version: 1\nname: p\ndefaults: {command: deny, signal: deny}\ncommand_rules:\n"
            "  - {name: a, commands: [ls], decision: audit}\n"
            "  - {name: b, commands: [git], decision: approve}\n"
        )
    )
    assert not watch.outside(request("ls"))
    assert watch.outside(request("git"))


def test_a_policy_that_allows_by_default_is_not_a_profile() -> None:
    for default in ("allow", "audit"):
        text = f"version: 1\nname: p\ndefaults: {{command: {default}, signal: deny}}\n"
        rule = "command_rules:\n  - {name: a, commands: [dd], decision: deny}\n"
        with pytest.raises(PolicyError) as refused:
            DriftWatch(parsed(text + rule))
        assert str(refused.value) == (
            "profile.yaml is not a profile: it allows commands that none of its rules names "
            "(make one from sessions: sigwrap policy learn --new)"
        )


def test_programs_are_told_apart_as_in_a_profile() -> None:
    text = "version: 1\nname: p\ncommand_rules:\n  - {name: a, commands: [env], decision: allow}\n"
    watch = DriftWatch(parsed(text))
    env = program_named("env", ("env", "git", "status", "-s"), "/project")
    git = program_named("git", ("git", "status", "-s"), "/project")
    spelling = git._replace(name="git-status", counts_by_name=True)
    assert watch.outside(CommandRequest(programs=(env, spelling, git))) == git
    assert watch.outside(CommandRequest(programs=(env, spelling))) is None
    assert program_and_subcommand(git) == (git.path, "status")
    assert program_and_subcommand(env) == (env.path,)


def test_a_policy_with_digests_is_not_a_profile() -> None:
    rule = f"{{name: a, commands: [ls], decision: allow, sha256: [{'0' * 64}]}}"
    with pytest.raises(PolicyError, match=r"its rule a has file digests \(line 4\)"):
        DriftWatch(parsed(f"version: 1\nname: p\ncommand_rules:\n  - {rule}\n"))
