"""A rule that can never fire is a bug; so is one that allows more than it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sigwrap.policy.judge.match import Glob
from sigwrap.policy.language import lint as lint_module
from sigwrap.policy.language.lint import lint
from tests.policy.conftest import Parse

Warnings = Callable[[str], list[str]]


@pytest.fixture
def warnings(parse: Parse) -> Warnings:
    return lambda sections: [
        each.message for each in lint(parse("version: 1\nname: x\n" + sections))
    ]


def test_dev_tools_above_package_installs_swallow_npm_and_pip(warnings: Warnings) -> None:
    assert warnings(
        """
command_rules:
  - {name: dev-tools, commands: [ls, git, node, npm, npx, python3, pip, make], decision: allow}
  - name: pkg-install
    commands: [apt, yum, brew, pip, npm]
    args_patterns: [install, add, upgrade]
    decision: approve
"""
    ) == ["rule pkg-install can't match for pip, npm: rule dev-tools (line 5) decides first"]


COMMANDS = "command_rules:\n  - {name: a, %s, decision: deny}\n  - {name: b, %s, decision: deny}\n"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("commands: [x]", "commands: [x]"),
        ("commands: ['*']", "commands: [x], depth: {min: 1}"),
        ("commands: ['x*']", "commands: [xyz]"),
        ("commands: ['x*']", "commands: ['x*']"),
        ("commands: ['/usr/**']", "commands: [/usr/bin/x]"),
        ("commands: [x]", "commands: [/usr/bin/x]"),
        ("commands: [x], args_patterns: [a, b]", "commands: [x], args_patterns: [b]"),
        ("commands: [x], args_patterns: [a, b]", "commands: [x], args_patterns: [b, a]"),
        ("commands: [x], subcommands: [a, b]", "commands: [x], subcommands: [b], truncated: true"),
        ("commands: [x], depth: {min: 1}", "commands: [x], depth: {min: 2, max: 3}"),
        ("commands: [x], depth: {max: 3}", "commands: [x], depth: {max: 3}"),
        ("commands: [x], traced: true", "commands: [x], traced: true"),
    ],
)
def test_a_shadowed_rule_is_found(warnings: Warnings, above: str, below: str) -> None:
    assert warnings(COMMANDS % (above, below)) == [
        "rule b can never match: rule a (line 4) decides first"
    ]


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("commands: [x]", "commands: [y]"),
        ("commands: [x]", "commands: ['*']"),
        ("commands: ['x*']", "commands: ['y*']"),
        ("commands: ['/usr/**']", "commands: [x]"),
        ("commands: ['**/x']", "commands: [x]"),
        ("commands: [x], args_patterns: [a]", "commands: [x]"),
        ("commands: [x], args_patterns: [a]", "commands: [x], args_patterns: [a, b]"),
        ("commands: [x], depth: {min: 2}", "commands: [x], depth: {min: 1}"),
        ("commands: [x], depth: {max: 2}", "commands: [x]"),
        ("commands: [x], truncated: true", "commands: [x]"),
        ("commands: [x], subcommands: [a]", "commands: [x], subcommands: [a, b]"),
    ],
)
def test_a_rule_that_can_match_is_left_alone(warnings: Warnings, above: str, below: str) -> None:
    assert warnings(COMMANDS % (above, below)) == []


SIGNALS = "signal_rules:\n  - {name: a, %s, decision: deny}\n  - {name: b, %s, decision: deny}\n"


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ("signals: ['@all'], target: session", "signals: [9], target: children", "can never match"),
        ("signals: ['@all']", "signals: [9], target: external", "can never match"),
        (
            "signals: ['@all'], target: external",
            "signals: [9], target: [user, children]",
            "can't match for user",
        ),
        (
            "signals: [9], target: {type: pid_range, min: 1, max: 9}",
            "signals: [9], target: {type: pid_range, min: 2, max: 3}",
            "can never match",
        ),
        (
            "signals: [9], target: [self, {type: pid_range, min: 1, max: 9}]",
            "signals: [9], target: [user, {type: pid_range, min: 1, max: 9}]",
            "can't match for pids 1 to 9",
        ),
        (
            "signals: [9], target: {type: pid_range, min: 1, max: 9}",
            "signals: [9], target: {type: pid_range, min: 1, max: 10}",
            "",
        ),
        (
            "signals: [9], target: {type: pid_range, min: 2, max: 9}",
            "signals: [9], target: {type: pid_range, min: 1, max: 9}",
            "",
        ),
        (
            "signals: [9], target: {type: process, pattern: a}",
            "signals: [9], target: {type: process, pattern: a}",
            "can never match",
        ),
        ("signals: ['@ignore'], target: self", "signals: ['@all'], target: self", ""),
        ("signals: [9], target: children", "signals: [9], target: session", ""),
        ("signals: [9], target: self", "signals: [9]", ""),
        (
            "signals: [9], target: {type: process, pattern: a}",
            "signals: [9], target: {type: user, pattern: a}",
            "can never match",
        ),
        (
            "signals: [9], target: external",
            "signals: [9], target: [{type: user, pattern: a}, self]",
            "can't match for user a",
        ),
        (
            "signals: [9], target: {type: user, pattern: a}",
            "signals: [9], target: {type: process, pattern: a}",
            "",
        ),
        (
            "signals: [9], target: {type: process, pattern: a}",
            "signals: [9], target: {type: process, pattern: b}",
            "",
        ),
    ],
)
def test_unreachable_targets_of_signals(
    warnings: Warnings, above: str, below: str, message: str
) -> None:
    found = [each for each in warnings(SIGNALS % (above, below)) if "to itself" not in each]
    assert len(found) == (1 if message else 0) and all(message in each for each in found)


@pytest.mark.parametrize(
    ("above", "below", "shadows"),
    [("", "true", True), ("", "", True), ("true", "true", True), ("true", "", False),
     ("true", "false", False)],
)  # fmt: skip
def test_a_rule_for_those_that_handle_it_shadows_only_such_rules(
    warnings: Warnings, above: str, below: str, shadows: bool
) -> None:
    def rule(handled: str) -> str:
        condition = f", handled: {handled}" if handled else ""
        return f"signals: [USR1], target: siblings{condition}"

    assert bool(warnings(SIGNALS % (rule(above), rule(below)))) is shadows


ONESELF = "rule r is also about signals of a process to itself"


@pytest.mark.parametrize("decision", ["deny", "approve", "absorb"])
@pytest.mark.parametrize(
    ("target", "warned"),
    [("session", True), ("[siblings, session]", True), ("{type: process, pattern: node}", True),
     ("{type: session, pattern: node}", True), ("{type: user, pattern: node}", False),
     ("{type: pid_range, min: 1, max: 9}", True), ("", True), ("self", False),
     ("[agent, ancestors, root]", False), ("external", False), ("children", False)],
)  # fmt: skip
def test_a_rule_that_would_hit_a_process_that_signals_itself(
    warnings: Warnings, decision: str, target: str, warned: bool
) -> None:
    for_whom = f", target: {target}" if target else ""
    rule = f"  - {{name: r, signals: [PWR, TERM]{for_whom}, decision: {decision}}}\n"
    found = warnings(f"signal_rules:\n{rule}")
    assert [each for each in found if ONESELF in each] == found
    assert bool(found) is warned
    own = "  - {name: own, signals: [%s], target: self, decision: allow}\n"
    assert not any(
        ONESELF in each for each in warnings(f"signal_rules:\n{own % 'PWR, TERM'}{rule}")
    )
    half = warnings(f"signal_rules:\n{own % 'PWR'}{rule}")
    assert any(ONESELF in each for each in half) is warned


def test_several_rules_together_can_shadow_one(warnings: Warnings) -> None:
    assert warnings(
        "signal_rules:\n"
        "  - {name: a, signals: [9], target: self, decision: deny}\n"
        "  - {name: b, signals: [15], target: self, decision: deny}\n"
        "  - {name: c, signals: [9, 15], target: self, decision: deny}\n"
    ) == ["rule c can never match: rule a (line 4) decides first"]


def test_a_rule_on_sigwrap_itself_is_never_asked(warnings: Warnings) -> None:
    rule = "signal_rules: [{name: r, signals: [HUP], target: parent, decision: approve}]\n"
    assert "never reaches its target parent" in warnings(rule)[0]
    assert warnings(rule.replace("approve", "deny")) == []


def test_an_allow_rule_that_any_argument_satisfies(warnings: Warnings) -> None:
    rule = "command_rules: [{name: r, commands: [git], args_patterns: ['%s'], decision: %s}]\n"
    assert "one of its args_patterns fits all" in warnings(rule % (".*", "allow"))[0]
    for pattern in ("^status$", "^$", ".+"):
        assert "as long as one of them fits" in warnings(rule % (pattern, "allow"))[0]
    assert warnings(rule % ("^push$", "deny")) == []


def test_a_rule_of_the_base_may_be_shadowed(parse: Parse) -> None:
    base = "version: 1\nname: b\ncommand_rules: [{name: r, commands: [x], decision: deny}]\n"
    child = base.replace("name: b", "name: c\nextends: b").replace("name: r", "name: s")
    assert lint(parse(child, {"b": base})) == ()


def test_of_very_many_words_only_those_are_compared_that_could_match(
    warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each held against each, a policy of 256 KB took 43 s."""
    above = ", ".join(f"a{number}*" for number in range(2_000))
    below = ", ".join(f"b{number}" for number in range(2_000))
    matched: list[str] = []

    def matches(self: Glob, text: str) -> bool:
        matched.append(text)
        return False

    monkeypatch.setattr(Glob, "matches", matches)
    assert warnings(COMMANDS % (f"commands: [{above}]", f"commands: [{below}]")) == []
    assert matched == []


def test_what_has_too_much_to_compare_is_not_compared_for_ever(
    warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = COMMANDS % ("commands: ['*x', '*y']", "commands: [ax, ay, az]")
    (warning,) = warnings(rules)
    assert warning == "rule b can't match for ax, ay: rule a (line 4) decides first"
    monkeypatch.setattr(lint_module, "_MOST_COMPARISONS", 4)
    (warning,) = warnings(rules)
    assert warning == "rule b can't match for ax: rule a (line 4) decides first"


PATH_IS_NEEDED = "remove takes PATH, which programs need"
HOME_IS_NEEDED = "remove takes HOME, which programs need"
ALL_IS_TAKEN = "remove takes every variable, and keep gives none back: programs need PATH and HOME"
KEEPS_NOTHING = "this keep keeps nothing: no pattern of remove has such a name"


@pytest.mark.parametrize(
    ("env_policy", "expected"),
    [
        ("{remove: [API_KEY, 'AWS_*']}", []),
        ("{remove: [PATH]}", [PATH_IS_NEEDED]),
        ("{remove: ['*H*']}", [PATH_IS_NEEDED, HOME_IS_NEEDED]),
        ("{remove: ['*H*'], keep: [PATH, HOME]}", []),
        ("{remove: ['*']}", [ALL_IS_TAKEN]),
        ("{remove: ['?*']}", [ALL_IS_TAKEN]),
        ("{remove: ['*'], keep: [PATH]}", [HOME_IS_NEEDED]),
        ("{remove: ['*'], keep: [PATH, HOME, 'LC_*']}", []),
        ("{remove: ['*_KEY'], keep: [A_KEY, 'B_*', B_KEYS]}", [KEEPS_NOTHING]),
        ("{remove: [A_KEY], keep: ['A_*', 'B_*']}", [KEEPS_NOTHING]),
        ("{remove: ['A_*'], keep: ['A_B*', 'B_*']}", [KEEPS_NOTHING]),
        ("{keep: [A]}", [KEEPS_NOTHING]),
        ("{remove: ['*_KEY'], keep: [SIGWRAP_KEY]}", ["SIGWRAP_KEY is removed whatever keep says"]),
    ],
)
def test_an_environment_that_lacks_too_much_or_keeps_nothing(
    warnings: Warnings, env_policy: str, expected: list[str]
) -> None:
    assert warnings(f"env_policy: {env_policy}\n") == expected


def test_the_environment_of_a_base_is_its_own_affair(parse: Parse) -> None:
    base = {"base": "version: 1\nname: base\nenv_policy: {remove: ['*']}\n"}
    policy = parse("version: 1\nname: x\nextends: base\n", base)
    assert [each.message for each in lint(policy)] == []


@pytest.mark.parametrize(
    ("pattern", "warned"),
    [
        ("^-rf /srv/x$", False),
        (r"^-u [^ ]+ http://x\.y/$", False),
        ("^production$", True),
        ("^[^ ]+$", True),
        ("-rf /srv/x", True),
        ("^-rf .*$", True),
        (r"^-rf \S$", True),
        (r"^-rf x\$", True),
    ],
)
def test_a_pattern_that_only_a_whole_line_of_several_words_fits_is_not_loose(
    warnings: Warnings, pattern: str, warned: bool
) -> None:
    rule = f"{{name: r, commands: [x], args_patterns: ['{pattern}'], decision: allow}}"
    assert bool(warnings(f"command_rules:\n  - {rule}\n")) is warned


NETWORK = "network_rules:\n  - {name: a, %s, decision: allow}\n  - {name: b, %s, decision: audit}\n"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("destinations: ['*']", "destinations: [a.example, 192.0.2.1, private]"),
        ("destinations: [private]", "destinations: [10.1.0.0/16], ports: [1]"),
        ("destinations: [192.0.2.0/24], ports: [1, 2]", "destinations: [192.0.2.7], ports: [2]"),
        ("destinations: [A.example]", "destinations: [a.example.], protocol: tcp"),
        ("destinations: ['unix:*']", "destinations: ['unix:docker', 'unix:/x']"),
        ("destinations: ['unix:/x/*']", "destinations: ['unix:/x/y']"),
        ("destinations: ['unix:docker']", "destinations: ['unix:docker']"),
        (
            "direction: bind, destinations: [loopback]",
            "direction: bind, destinations: ['127.0.0.1']",
        ),
    ],
)
def test_a_shadowed_network_rule_is_found(warnings: Warnings, above: str, below: str) -> None:
    assert warnings(NETWORK % (above, below)) == [
        "rule b can never match: rule a (line 4) decides first"
    ]


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("destinations: ['*']", "destinations: ['unix:*']"),
        ("destinations: ['*']", "direction: bind, destinations: ['*']"),
        ("destinations: ['*'], ports: [1]", "destinations: ['*']"),
        ("destinations: ['*'], protocol: udp", "destinations: ['*'], protocol: tcp"),
        ("destinations: [192.0.2.7]", "destinations: [192.0.2.0/24]"),
        ("destinations: [a.example]", "destinations: [192.0.2.1]"),
        ("destinations: [192.0.2.0/24]", "destinations: [a.example]"),
        ("destinations: ['unix:docker']", "destinations: ['unix:/run/docker.sock']"),
        ("destinations: ['unix:/x/*']", "destinations: ['unix:/x/**']"),
    ],
)
def test_a_network_rule_that_may_still_match_is_left_alone(
    warnings: Warnings, above: str, below: str
) -> None:
    assert warnings(NETWORK % (above, below)) == []


def test_the_rest_of_a_shadowed_rule_is_named(warnings: Warnings) -> None:
    rules = NETWORK % ("destinations: [private]", "destinations: [10.0.0.1, 192.0.2.1]")
    assert warnings(rules) == ["rule b can't match for 10.0.0.1: rule a (line 4) decides first"]


def test_a_socket_is_known_by_where_it_lies(warnings: Warnings) -> None:
    head = "network_rules:\n  - {name: a, destinations: ['unix:/var/run/x.sock'], decision: "
    assert warnings(head + "allow}\n") == [
        "rule a is about where a socket lies, links resolved: that is /run/… where /var/run is a "
        "link"
    ]
    assert warnings(head + "deny}\n") == []  # what is kept is known by each of its names


def test_a_socket_has_no_port_and_one_protocol(warnings: Warnings) -> None:
    head = "network_rules:\n  - {name: a, decision: allow, "
    assert warnings(head + "destinations: ['unix:/x', loopback], ports: [1]}\n") == [
        "rule a can't match for unix sockets: these have no ports"
    ]
    assert warnings(head + "destinations: ['unix:/x'], protocol: tcp}\n") == [
        "rule a can't match there with protocol tcp"
    ]
    assert warnings(head + "destinations: [loopback], protocol: unix}\n") == [
        "rule a can't match there with protocol unix"
    ]


def test_who_denies_a_name_learns_what_that_is(warnings: Warnings) -> None:
    rule = "network_rules:\n  - {name: a, destinations: [a.example, 192.0.2.1], decision: %s}\n"
    [warning] = warnings(rule % "deny")
    assert warning.startswith("rule a denies the addresses of a name, and so every other name")
    assert warnings(rule % "allow") == warnings(rule % "approve") == []
