"""Profile, then lock: programs, subcommands and signals that were observed are allowed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sigwrap.events import Event
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.globs import readable
from sigwrap.policy.judge.network import Endpoint
from sigwrap.policy.judge.request import (
    Action,
    CommandRequest,
    Operation,
    Program,
    SignalRequest,
    TargetType,
)
from sigwrap.policy.language.lint import lint
from sigwrap.policy.tools.again import decide, request_of
from sigwrap.policy.tools.generate import generate_policy
from tests.policy.conftest import Parse
from tests.policy.test_learn import event_of
from tests.policy.test_properties import requests, signals
from tests.policy.test_suggest import base


def event(kind: str, **payload: Any) -> Event:
    return Event(seq=1, time_ns=0, type=kind, pid=9, payload=payload, hash="")


def ran(path: str, *args: str, kind: str = "exec_audited", **more: Any) -> Event:
    argv = [path.rpartition("/")[2], *args]
    return event(kind, path=path, argv=argv, depth=1, decision="audit", truncated=False, **more)


def sent(number: int, target_type: str, kind: str = "signal_sent", **more: Any) -> Event:
    return event(kind, signal=number, target_type=target_type, target_pid=5, target_cmd="x", **more)


OBSERVED = [
    ran("/usr/bin/git", "status"),
    ran("/usr/bin/git", "-C", "sub", "commit", "-m", "push"),
    ran("/usr/bin/git", "--version"),
    ran("/usr/bin/make", "-j2"),
    ran("/usr/bin/[", "a"),
    ran("/home/user/true", kind="exec_allowed"),
    ran("/usr/bin/rm", "-rf", "/", kind="exec_denied"),
    event("process_exited", ppid=1),
    sent(15, "children"),
    sent(9, "children"),
    sent(23, "self"),
    sent(28, "self"),
    sent(17, "self"),
    sent(15, "external", kind="signal_blocked"),
    sent(0, "user"),
]


def test_the_policy_is_minimal_and_readable() -> None:
    assert generate_policy(OBSERVED, name="locked") == (
        "version: 1\n"
        "name: locked\n"
        "description: Generated from recorded sessions. Programs and subcommands may have any "
        "arguments, and signals any target of their type.\n"
        "defaults: {command: deny, signal: deny}\n"
        "\n"
        "command_rules:\n"
        '  - {name: run, commands: ["["], decision: allow}\n'
        '  - {name: run-git, commands: [git], subcommands: ["", commit, status], decision: allow}\n'
        "  - {name: run-make, commands: [make], decision: allow}\n"
        '  - {name: run-true, commands: ["true"], decision: allow}\n'
        "\n"
        "signal_rules:\n"
        "  - {name: to-self, signals: [SIGCHLD, SIGURG, SIGWINCH], target: self, decision: allow}\n"
        "  - {name: to-children, signals: [SIGKILL, SIGTERM], target: children, decision: allow}\n"
        "\n"
        "# The sessions recorded no connections, so this policy restricts none.\n"
        "\n"
        "# The sessions audited no files, so this policy restricts none.\n"
    )


def test_a_program_with_a_denial_keeps_its_arguments(parse: Parse) -> None:
    text = generate_policy(
        [
            ran("/usr/bin/rm", "-rf", "build"),
            ran("/usr/bin/git", "push", "origin"),
            ran("/usr/bin/git", "status"),
            ran("/usr/bin/git", "push", "--token", "***", masked=True),
            ran("/usr/bin/rm", "-rf", "/", kind="exec_denied"),
            ran("/usr/bin/git", "push", "--force", kind="exec_denied"),
        ],
        name="p",
    )
    engine = Engine(parse(text))
    for words, action in (
        (("rm", "-rf", "build"), "allow"),
        (("rm", "-rf", "/"), "deny"),
        (("rm", "-rf", "build", "/"), "deny"),
        (("git", "push", "origin"), "allow"),
        (("git", "push", "--force"), "deny"),
        (("git", "push", "--token", "***"), "deny"),
        (("git", "status", "-s"), "allow"),
    ):
        request = request_of(ran(f"/usr/bin/{words[0]}", *words[1:]))
        assert isinstance(request, CommandRequest)
        assert engine.decide_command(request).action.value == action, words
    assert "allow}  # with other arguments, git push was denied\n" in text


def test_a_name_in_a_comment_adds_no_rule(parse: Parse) -> None:
    name = "a\n  - {name: all, commands: ['*'], decision: allow} #"
    events = [ran(f"/w/{name}", "x"), ran(f"/w/{name}", "y", kind="exec_denied")]
    git = ("/usr/bin/git", "x\n  - {name: all, commands: ['*'], decision: allow} #")
    events += [ran(*git), ran(*git, "y", kind="exec_denied")]
    assert "*" not in {
        word
        for rule in parse(generate_policy(events, name="p")).command_rules
        for word in rule.commands
    }


def test_recorded_programs_give_the_whole_request(parse: Parse) -> None:
    programs = (
        Program(path="/w/run", name="run", argv=("run",)),
        Program(path="/usr/bin/dash", name="sh", argv=("sh", "/w/run")),
    )
    listed = [{"path": each.path, "name": each.name, "argv": [*each.argv]} for each in programs]
    recorded = ran("/w/run", programs=listed)
    request = request_of(recorded)
    assert request == CommandRequest(programs=programs, depth=1)
    policy = generate_policy([recorded], name="p")
    assert "commands: [run]" in policy and "commands: [sh]" in policy
    assert Engine(parse(policy)).decide_command(request).action is Action.ALLOW


def test_an_invalid_subcommand_is_left_out_with_a_comment(parse: Parse) -> None:
    unreadable = ran("/usr/bin/git", "caf\udce9")
    text = generate_policy([ran("/usr/bin/git", "x\ny"), unreadable], name="odd")
    engine = Engine(parse(text))
    for event_, action in ((ran("/usr/bin/git", "x\ny"), "allow"), (unreadable, "deny")):
        request = request_of(event_)
        assert isinstance(request, CommandRequest)
        assert engine.decide_command(request).action.value == action
    assert "# git with a subcommand that is not valid text\n" in text
    assert parse(generate_policy([unreadable], name="odd")).command_rules == ()


def test_a_directory_is_no_program(parse: Parse) -> None:
    assert parse(generate_policy([ran("/")], name="odd")).command_rules == ()


def test_a_relative_path_starts_at_the_directory_of_the_caller() -> None:
    request = request_of(ran("../tools/./run", cwd="/project/app"))
    assert isinstance(request, CommandRequest)
    assert request.programs[0].path == "/project/tools/run"
    request = request_of(ran("//bin/ls"))
    assert isinstance(request, CommandRequest)
    assert request.programs[0].path == "/bin/ls"


def test_a_redirected_signal_counts_as_the_original_one() -> None:
    redirected = sent(15, "children", kind="signal_redirected", original_signal=9)
    request = request_of(redirected)
    assert isinstance(request, SignalRequest)
    assert (request.signal, request.target_command, request.target_pid) == (9, "x", 5)
    assert TargetType.DESCENDANTS in request.target_types


@given(st.lists(requests, max_size=6), st.lists(signals, max_size=6))
def test_a_generated_policy_allows_what_it_was_made_from(
    commands: list[CommandRequest], sent: list[SignalRequest]
) -> None:
    observing = Engine(base("version: 1\nname: x\ndefaults: {command: audit, signal: allow}\n"))
    asked: list[CommandRequest | SignalRequest] = [*commands, *sent]
    events = [event_of(observing, each) for each in asked]
    engine = Engine(base(generate_policy(events, name="locked")))
    for request in map(request_of, events):
        assert isinstance(request, CommandRequest | SignalRequest)
        assert decide(engine, request).action is Action.ALLOW or no_rule_can_name(request)


def no_rule_can_name(request: CommandRequest | SignalRequest) -> bool:
    if isinstance(request, SignalRequest):
        return request.signal > 64 or TargetType.SIGWRAP in request.target_types
    # A subcommand that is no text: to allow the whole command for it would be to allow more.
    words = [word for program in request.programs for word in program.argv[1:]]
    return any(readable(word) != word for word in words)


def reached(destination: str, kind: str = "connection_audited", **more: Any) -> Event:
    payload: dict[str, Any] = {"direction": "connect", "protocol": "tcp", "comm": "curl", **more}
    if payload["protocol"] != "unix":
        host, _, port = destination.rpartition(":")
        payload = {"address": host.strip("[]"), "port": int(port), **payload}
    return event(kind, destination=destination, **payload)


CONNECTIONS = [
    reached("example.com:443", address="192.0.2.1"),
    reached("example.com:80", address="192.0.2.1", kind="connection_allowed"),
    reached("mirror.example:443", address="192.0.2.2", kind="connection_approved"),
    reached("files.example:80", address="192.0.2.3"),
    reached("files.example:443", address="192.0.2.4"),
    reached("[2001:db8::1]:22"),
    reached("127.0.0.1:5432"),
    reached("[::1]:5432"),
    reached("192.0.2.53:53", protocol="udp"),
    reached("127.0.0.1:41234", direction="bind"),
    reached("0.0.0.0:8080", direction="bind"),
    reached("unix:/run/postgresql/.s.PGSQL.5432", protocol="unix"),
    reached("unix:/tmp/ssh-Xy12/agent.7", protocol="unix"),
    reached("unix:/tmp/tmux-0/default", protocol="unix", own=True, names=["/tmp/other"]),
    reached("unix:@a*b", protocol="unix", direction="bind"),
    reached("denied.example:443", address="192.0.2.9", kind="connection_denied"),
    event("connection_denied", destination="io_uring", rule_name="builtin:network"),
]


def test_allowed_connections_become_rules(parse: Parse) -> None:
    text = generate_policy(CONNECTIONS, name="locked")
    assert "defaults: {command: deny, signal: deny, network: deny}\n" in text
    rules = text.partition("network_rules:\n")[2].splitlines()
    assert rules[3] == (
        '  - {name: connect-2001-db8-1-22, destinations: ["2001:db8::1"], ports: [22], '
        "protocol: tcp, decision: allow}"
    )
    assert sum("files.example" in each for each in rules) == 2
    policy = parse(text)
    for seen in CONNECTIONS:
        request = request_of(seen)
        assert isinstance(request, Endpoint)
        wanted = Action.DENY if seen.type == "connection_denied" else Action.ALLOW
        assert Engine(policy).network.decide(request).action is wanted, seen
    assert not lint(policy)


def test_no_word_of_a_hostile_log_matches_every_host(parse: Parse) -> None:
    hostile = [
        reached("*:443", address="192.0.2.1"),
        reached("private:443", address="192.0.2.1"),
        reached("a.example\n  - x:443", address="192.0.2.1"),
        reached("x:0", address="192.0.2.1"),
        reached("x:70000", address="192.0.2.1"),
        reached("x:1", address="nowhere", names=["*"]),
        reached("unix:**", protocol="unix"),
        reached("unix:/x", protocol="unix", names=["*"]),
        reached("unix:unnamed", protocol="unix"),
        event("connection_audited"),
    ]
    text = generate_policy(hostile, name="locked")
    assert parse(text).network_rules == ()
    assert "# Left out, because no rule can name them:\n" in text


def test_without_connections_there_is_no_network_default(parse: Parse) -> None:
    assert parse(generate_policy(OBSERVED, name="x")).default_network is Action.ALLOW
    only_denied = generate_policy(CONNECTIONS[-2:], name="x")
    assert parse(only_denied).default_network is Action.DENY


def audited(operation: str, path: str, to: str = "") -> Event:
    return event("file_audited", operation=operation, path=path, to=to)


def test_tracing_stays_possible(parse: Parse) -> None:
    for traces in (
        sent(9, "children", syscall="ptrace"),
        ran("/usr/bin/true", traced=True, verified=True),
    ):
        assert parse(generate_policy([*OBSERVED, traces], name="x")).session.tracing == "allow"
    for other in (
        sent(9, "children", kind="signal_blocked", syscall="ptrace"),
        ran("/usr/bin/secret", traced=True, verified=False),
    ):
        assert parse(generate_policy([*OBSERVED, other], name="x")).session.tracing == ""


def test_only_written_directories_may_be_written(parse: Parse) -> None:
    seen = [
        audited("create", "/project/a/[x] ${HOME}/f"),
        audited("write", "/project/b/f"),
        audited("rename", "/tmp/part", "/project/b/deeper/f"),
        audited("create", "/usr/lib/lib.so", "/project/c/lib.so"),
        audited("write", "/home/me/.profile"),
        audited("unseen", ""),
    ]
    policy = parse(generate_policy([*OBSERVED, *seen], name="x"))
    files = FileRules.of(policy)
    for path in ("/project/a/[x] ${HOME}/g", "/project/b/x", "/tmp/y", "/project/c/x", "/dev/null"):
        for operation in (Operation.WRITE, Operation.CREATE, Operation.DELETE):
            assert files.by_rules(operation, path).action is Action.ALLOW, path
    assert files.by_rules(Operation.WRITE, "/home/me/.profile").action is Action.ALLOW
    for path in ("/project/a/y", "/project/d", "/usr/lib/lib.so", "/home/me/.bashrc", "/etc/x"):
        assert files.by_rules(Operation.WRITE, path).action is Action.DENY, path
    assert files.by_rules(Operation.READ, "/etc/x").action is Action.ALLOW


def test_many_directories_become_a_few(parse: Parse) -> None:
    seen = [audited("create", f"/home/me/p/node_modules/{n}/lib/f") for n in range(500)]
    seen.append(audited("create", "/home/me/p/dist/f"))
    (written, *_) = parse(generate_policy(seen, name="x")).file_rules
    assert written.paths == ("/home/me/p/dist", "/home/me/p/node_modules")
