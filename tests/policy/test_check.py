"""A value that is not what its key wants: where it is, what it should be, what was probably meant.

A line each: what follows `version` and `name`, and all that is said about it.
"""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.globs import MAX_PATTERN_CHARACTERS, Glob
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from tests.policy.conftest import Parse, Problems

RULE = "command_rules:\n  - {name: r, commands: [x], decision: deny%s}\n"
SIGNALS = "signal_rules:\n  - {name: r, signals: %s, decision: deny}\n"
TARGET = "signal_rules:\n  - {name: r, signals: [9], decision: deny, target: %s}\n"
PORTS = "network_rules:\n  - {name: r, destinations: [x], ports: %s, decision: deny}\n"
GLOB = "command_rules:\n  - {name: r, commands: ['%s'], decision: deny}\n"


@pytest.mark.parametrize(
    ("sections", "message", "offending", "nearest"),
    [
        (GLOB % "a[z-a]", "bad glob (", "a[z-a]", ""),
        (RULE % ", args_patterns: ['(']", "bad regular expression (", "(", ""),
        (RULE % ", args_patterns: ['x{1000}{1000}']", "bad reg", "x{1000}{1000}", ""),
        (TARGET % "{type: prcess}", "type must be one of self, ", "prcess", "process"),
    ],
)
def test_a_message_may_end_in_words_of_others(
    problems: Problems, sections: str, message: str, offending: str, nearest: str
) -> None:
    (problem,) = problems(sections)
    assert problem.message.startswith(message)
    assert (problem.offending, problem.nearest) == (offending, nearest)


def test_a_pattern_that_is_too_long_is_shown_cut(problems: Problems) -> None:
    (problem,) = problems(GLOB % ("x" * MAX_PATTERN_CHARACTERS + "*"))
    assert problem.message == f"bad glob (longer than {MAX_PATTERN_CHARACTERS} characters)"
    assert str(problem).endswith('xxx…"')


def test_what_is_just_within_bounds_is_fine(parse: Parse) -> None:
    policy = parse(
        "version: 1\nname: x\nunenforced: warn\n"
        "limits: {wall_time: 87600h, max_depth: 2147483647, max_execs: 0}\n"
        + PORTS % "[1, 65535]"
        + GLOB % ("x" * (MAX_PATTERN_CHARACTERS - 1) + "*")
    )
    assert policy.limits.wall_time_s == 10 * 365 * 24 * 3600
    assert (policy.limits.max_depth, policy.limits.max_execs) == (2**31 - 1, 0)
    assert policy.network_rules[0].ports == (1, 65535)


def test_a_time_and_a_size_have_a_unit_or_are_in_seconds_and_bytes(parse: Parse) -> None:
    times = {"90": 90, "90s": 90, "10m": 600, "2h": 7200, "0": 0, "1h30m": 5400, "2w": 1209600}
    for written, seconds in times.items():
        limits = parse(f"version: 1\nname: x\nlimits: {{wall_time: {written}}}\n").limits
        assert limits.wall_time_s == seconds
    sizes = {"5": 5, "64K": 2**16, "512M": 2**29, "2G": 2**31, "1.5G": 3 * 2**29}
    for written, size in sizes.items():
        limits = parse(f"version: 1\nname: x\nlimits: {{memory: {written}}}\n").limits
        assert limits.memory_bytes == size


# Paths that start somewhere


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("./deploy", "/project/app/deploy"),
        ("bin/*", "/project/app/bin/*"),
        ("../other/run", "/project/other/run"),
        ("~/bin/x", "/home/user/bin/x"),
        ("**/deploy", "**/deploy"),
        ("deploy", "deploy"),
        ("${HOME}/x", "/home/user/x"),
    ],
)
def test_a_program_with_a_slash_is_a_full_path(parse: Parse, written: str, means: str) -> None:
    (rule,) = parse(f"version: 1\nname: x\n{GLOB % written}").command_rules
    assert rule.commands == (means,)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("build", "/project/app/build"),
        (".", "/project/app"),
        ("./.git/", "/project/app/.git"),
        ("~", "/home/user"),
        ("~/.ssh", "/home/user/.ssh"),
        ("**/*.pem", "**/*.pem"),
        ("/etc", "/etc"),
    ],
)
def test_a_path_is_a_full_path(parse: Parse, written: str, means: str) -> None:
    rules = RULE % f", paths: ['{written}'], sources: ['{written}']"
    (rule,) = parse(f"version: 1\nname: x\n{rules}").command_rules
    assert (rule.paths, rule.sources) == ((means,), (means,))


def test_a_projects_folder_is_matched_literally() -> None:
    source = Source(name="policy.yaml", text=f"version: 1\nname: x\n{GLOB % './x'}")
    variables = {"PROJECT_ROOT": "/project/a*[b]"}
    policy = parse_policy(source, variables=variables, find_base=lambda _name, _source: None)
    assert Glob(policy.command_rules[0].commands[0]).matches("/project/a*[b]/x")
    assert not Glob(policy.command_rules[0].commands[0]).matches("/project/abb/x")


def test_a_base_is_doubted_by_a_check_of_its_own(parse: Parse) -> None:
    base = "version: 1\nname: b\nlimits: {memory: 512}\n"
    assert parse("version: 1\nname: x\nextends: base\n", {"base": base}).warnings == ()
