"""A value that is not what its key wants: where it is, what it should be, what was probably meant.

A line each: what follows `version` and `name`, and all that is said about it.
"""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.match import MAX_PATTERN_CHARACTERS, Glob
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from tests.policy.conftest import Parse, Problems

RULE = "command_rules:\n  - {name: r, commands: [x], decision: deny%s}\n"
SIGNALS = "signal_rules:\n  - {name: r, signals: %s, decision: deny}\n"
TARGET = "signal_rules:\n  - {name: r, signals: [9], decision: deny, target: %s}\n"
PORTS = "network_rules:\n  - {name: r, destinations: [x], ports: %s, decision: deny}\n"
GLOB = "command_rules:\n  - {name: r, commands: ['%s'], decision: deny}\n"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        # Keys
        ("name: y\n", '3:1: error: the same key twice: "name"'),
        (
            "comand_rules: []\n",
            '3:1: error: unknown key in policy: "comand_rules" (did you mean "command_rules"?)',
        ),
        ("zzz: 1\n", '3:1: error: unknown key in policy: "zzz"'),
        (
            "command_rules:\n  - {commands: [x], decision: deny}\n",
            "4:5: error: command_rules needs the key name",
        ),
        # Mappings and lists
        ("limits:\n", '3:8: error: limits is a mapping of keys: "nothing"'),
        ("trust: 5\n", '3:8: error: trust is a mapping of keys: "5"'),
        (RULE % ", depth: [3]", '4:53: error: depth is a mapping of keys: "a list"'),
        ("command_rules: {}\n", '3:16: error: command_rules is a list: "a mapping"'),
        ("command_rules: [x]\n", '3:17: error: command_rules is a mapping of keys: "x"'),
        (
            RULE % ", subcommands: []",
            "4:59: error: subcommands is empty; leave it out, or fill it",
        ),
        ("vars: x\n", '3:7: error: vars is a mapping of names: "x"'),
        ("vars: {A: 5}\n", '3:11: error: vars is a text; put it in quotes: "5"'),
        ("vars: {A: [x]}\n", '3:11: error: vars is a text: "a list"'),
        ("vars: {A: x, A: y}\n", '3:14: error: the same key twice: "A"'),
        ("vars: {1a: x}\n", '3:8: error: a variable is letters, digits and _: "1a"'),
        (
            "tests: [{command: {a: b}, decision: deny}]\n",
            '3:19: error: command is a word or a list: "a mapping"',
        ),
        # Texts
        ("description:\n", '3:13: error: description is a text: "nothing"'),
        ("description: 5\n", '3:14: error: description is a text; put it in quotes: "5"'),
        ("description: [5]\n", '3:14: error: description is a text: "a list"'),
        ("extends: {a: b}\n", '3:10: error: extends is a text: "a mapping"'),
        (
            "command_rules:\n  - {name: a b, commands: [x], decision: deny}\n",
            '4:12: error: name is made of letters, digits, . _ -: "a b"',
        ),
        (
            RULE % ", sha256: [abc]",
            '4:55: error: a SHA-256 is 64 hexadecimal digits: "abc"',
        ),
        (GLOB % "", "4:26: error: commands can't be empty"),
        # Variables
        (
            RULE % ", message: '${HOEM}'",
            '4:55: error: unknown variable: "${HOEM}" (did you mean "${HOME}"?)',
        ),
        (RULE % ", message: '${QQQ}'", '4:55: error: unknown variable: "${QQQ}"'),
        (
            RULE % ", message: '${TMPDIR}'",
            '4:55: error: a variable without a value here: "${TMPDIR}"',
        ),
        (
            RULE % ", message: '${SIGWRAP_HOST:TOKEN}'",
            '4:55: error: unknown variable: "${SIGWRAP_HOST:TOKEN}"',
        ),
        # Words
        (
            "defaults: {command: alow}\n",
            "3:21: error: command is one of allow, deny, audit, approve: "
            '"alow" (did you mean "allow"?)',
        ),
        (
            "defaults: {command: [allow]}\n",
            '3:21: error: command is one of allow, deny, audit, approve: "a list"',
        ),
        (RULE % ", truncated: yes", '4:57: error: truncated is true or false: "yes"'),
        (RULE % ", truncated: []", '4:57: error: truncated is true or false: "a list"'),
        # Numbers
        ("limits: {max_depth: true}\n", '3:21: error: max_depth is a whole number: "true"'),
        ("limits: {max_depth: []}\n", '3:21: error: max_depth is a whole number: "a list"'),
        (
            "limits: {max_depth: -1}\n",
            '3:21: error: max_depth is out of range (between 0 and 2147483647): "-1"',
        ),
        (
            PORTS % "[0, 1, 65535]",
            '4:42: error: ports is out of range (between 1 and 65535): "0"',
        ),
        (
            PORTS % "[65536]",
            '4:42: error: ports is out of range (between 1 and 65535): "65536"',
        ),
        (
            "limits: {wall_time: 87601h}\n",
            '3:21: error: wall_time is longer than ten years: "87601h"',
        ),
        (
            "limits: {wall_time: 5y}\n",
            '3:21: error: wall_time is a span of time, like 45s, 10m, 1h30m, 2d or 2w: "5y"',
        ),
        (
            "limits: {wall_time: 250ms}\n",
            '3:21: error: wall_time is in whole seconds: "250ms"',
        ),
        (
            "limits: {memory: [5]}\n",
            '3:18: error: memory is a size, like 64K, 500M or 1G: "a list"',
        ),
        # Signals
        (SIGNALS % "[65]", '4:25: error: unknown signal: "65"'),
        (SIGNALS % "[[9]]", '4:25: error: signals is a text: "a list"'),
        (
            SIGNALS % "['@fatl']",
            '4:25: error: unknown signal: "@fatl" (did you mean "@fatal"?)',
        ),
        (
            "signal_rules:\n  - {name: r, signals: [9], decision: redirect, redirect_to: '@job'}\n",
            '4:62: error: one signal, not a group: "@job"',
        ),
        (
            "signal_rules:\n  - {name: r, signals: [9], decision: redirect, redirect_to: x}\n",
            '4:62: error: unknown signal: "x"',
        ),
        (TARGET % "[]", "4:53: error: target is empty; leave it out, or fill it"),
    ],
)
def test_one_mistake_is_said_once(problems: Problems, sections: str, said: str) -> None:
    assert [str(each) for each in problems(sections)] == [f"policy.yaml:{said}"]


@pytest.mark.parametrize(
    ("sections", "message", "offending", "nearest"),
    [
        (GLOB % "a[z-a]", "a bad glob, ", "a[z-a]", ""),
        (RULE % ", args_patterns: ['(']", "a bad regular expression, ", "(", ""),
        (RULE % ", args_patterns: ['x{1000}{1000}']", "a bad reg", "x{1000}{1000}", ""),
        (TARGET % "{type: prcess}", "type is one of self, ", "prcess", "process"),
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
    assert problem.message == f"a bad glob, longer than {MAX_PATTERN_CHARACTERS} characters"
    assert str(problem).endswith('xxx…"')


def test_what_is_left_in_a_list_is_checked_all_the_same(problems: Problems) -> None:
    assert [each.offending for each in problems(SIGNALS % "[x, 9, [y], 99]")] == [
        "x",
        "a list",
        "99",
    ]


@pytest.mark.parametrize(
    "sections",
    [
        "command_rules:\n  - {commands: [x]}\n",
        "vars: {1a: x, B: [y]}\n",
    ],
)
def test_all_that_is_wrong_is_said(problems: Problems, sections: str) -> None:
    assert len(problems(sections)) == 2


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


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("0", 0),
        ("1h30m", 5400),
        ("2w", 1209600),
    ],
)
def test_a_time_has_a_unit_or_is_in_seconds(parse: Parse, written: str, seconds: int) -> None:
    policy = parse(f"version: 1\nname: x\nlimits: {{wall_time: {written}}}\n")
    assert policy.limits.wall_time_s == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [("5", 5), ("64K", 2**16), ("512M", 2**29), ("2G", 2**31), ("1.5G", 3 * 2**29)],
)
def test_a_size_has_a_unit_or_is_in_bytes(parse: Parse, written: str, size: int) -> None:
    policy = parse(f"version: 1\nname: x\nunenforced: warn\nlimits: {{memory: {written}}}\n")
    assert policy.limits.memory_bytes == size


# Paths that start somewhere


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("./deploy", "/project/app/deploy"),
        ("bin/*", "/project/app/bin/*"),
        ("../other/run", "/project/other/run"),
        ("~/bin/x", "/home/user/bin/x"),
        ("/opt/x", "/opt/x"),
        ("**/deploy", "**/deploy"),
        ("deploy", "deploy"),
        ("${HOME}/x", "/home/user/x"),
        ("*", "*"),
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
        ("src/**", "/project/app/src/**"),
        ("**/*.pem", "**/*.pem"),
        ("/etc", "/etc"),
    ],
)
@pytest.mark.parametrize("key", ["paths", "sources"])
def test_a_path_is_a_full_path(parse: Parse, key: str, written: str, means: str) -> None:
    rules = RULE % f", {key}: ['{written}']"
    (rule,) = parse(f"version: 1\nname: x\n{rules}").command_rules
    assert getattr(rule, key) == (means,)


def test_a_projects_folder_is_matched_literally() -> None:
    source = Source(name="policy.yaml", text=f"version: 1\nname: x\n{GLOB % './x'}")
    variables = {"PROJECT_ROOT": "/project/a*[b]"}
    policy = parse_policy(source, variables=variables, find_base=lambda _name, _source: None)
    assert Glob(policy.command_rules[0].commands[0]).matches("/project/a*[b]/x")
    assert not Glob(policy.command_rules[0].commands[0]).matches("/project/abb/x")


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            GLOB % "~bob/x",
            '4:26: error: whose home folder that is isn\'t known: write its path: "~bob/x"',
        ),
        (
            RULE % ", subcommands: [--version]",
            '4:60: error: an option is no subcommand: "--version" '
            "(did you mean \"args_patterns: ['^--version(=|$)']\"?)",
        ),
    ],
)
def test_what_could_never_match_is_an_error(problems: Problems, sections: str, said: str) -> None:
    (problem,) = problems(sections)
    assert str(problem) == f"policy.yaml:{said}"


NO_MERGE_KEYS = (
    "merge keys of YAML are not supported: write the keys out here, or put them into a policy that "
    'this one extends; an alias (*name) stands for a whole value: "<<"'
)


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ("defaults: &d {command: deny}\ncommand_rules:\n  - {<<: *d, name: r}\n", "5:6"),
        ("defaults: &d {command: deny}\n<<: *d\n", "4:1"),
        ("limits: {'<<': {max_depth: 1}}\n", "3:10"),
        ("vars: {<<: {A: b}}\n", "3:8"),
    ],
)
def test_a_merge_key_is_said_to_be_one_and_nothing_is_missed_for_it(
    problems: Problems, sections: str, place: str
) -> None:
    (problem,) = problems(sections)
    assert str(problem).endswith(f":{place}: error: {NO_MERGE_KEYS}")


ENV = "env_policy: {remove: ['%s']}\n"
PATTERN = "signal_rules:\n  - {name: r, signals: [9], decision: deny, target: %s}\n"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            "limits: {memory: 512}\n",
            "3:18: warning: memory of 512 bytes, which is hardly meant: a size has a unit: "
            '"512" (did you mean "512M"?)',
        ),
        ("limits: {log_size: 64}\n", "3:20: warning: log_size of 64 bytes, which is hardly"),
        (GLOB % "[A-", "this [ has no ], so it is a character like others: "),
        (GLOB % "[A-*", "4:26: warning: this [ has no ], so it is a character like others: "),
        (GLOB % "/opt/[a-z/*", '"/opt/[a-z/*"'),
        (GLOB % "[!X", "this [ has no ]"),
        (GLOB % "!git", "a ! at the start negates nothing: it is a character like others"),
        (GLOB % "!bin/git", 'negates nothing: it is a character like others: "!bin/git"'),
        (GLOB % "[^a-z]*", "a set with ^ among its characters: what none of a set matches is [!.."),
        (GLOB % "{npm,yarn}", "braces stand for themselves: write each word out"),
        (RULE % ", paths: ['!/etc']", "a ! at the start"),
        (RULE % ", sources: ['/x[']", "this [ has no ]"),
        (PATTERN % "{type: process, pattern: 'a[b'}", "this [ has no ]"),
        (ENV % "FOO_[A-", "3:23: warning: this [ has no ], so it is a character like others: "),
        (ENV % "!PATH", "a ! at the start"),
        (ENV % "[^A-Z]", "a set with ^"),
        ("env_policy: {remove: ['*'], keep: ['![A]']}\n", "a ! at the start"),
    ],
)
def test_what_is_hardly_meant_is_doubted(parse: Parse, sections: str, said: str) -> None:
    (warning,) = parse(f"version: 1\nname: x\n{sections}").warnings
    assert said in str(warning)


@pytest.mark.parametrize(
    "sections",
    [
        "limits: {memory: 0, log_size: 1048576}\n",
        "limits: {memory: 512K, log_size: 1K}\n",
        GLOB % "[",
        GLOB % "/usr/bin/[",
        GLOB % "x[[]y",
        GLOB % "[!a]*",
        GLOB % "[]a]",
        GLOB % "[^]",
        GLOB % "a!b",
        GLOB % "{a}",
        GLOB % "${X:-a,b}/bin",
        "vars: {V: '[x!'}\n" + GLOB % "${V}/bin/*",
        ENV % "[A-F]*",
    ],
)
def test_what_may_well_be_meant_is_not_doubted(parse: Parse, sections: str) -> None:
    assert parse(f"version: 1\nname: x\n{sections}").warnings == ()


def test_a_base_is_doubted_by_a_check_of_its_own(parse: Parse) -> None:
    base = "version: 1\nname: b\nlimits: {memory: 512}\n"
    assert parse("version: 1\nname: x\nextends: base\n", {"base": base}).warnings == ()
