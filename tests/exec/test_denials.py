"""What a denied caller reads: one line with the command, the rule, the policy and the next step."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, reader

DENY = """
  - {name: no-ok, commands: [ok], decision: deny}
  - {name: ask, commands: [asked], decision: approve, message: looked at first}
  - {name: instead, commands: [other], decision: redirect, redirect_to: {command: /no/such}}
"""
TELLS = b" (sigwrap report tells more)\n"


def program(subject: Sigwrap, name: str) -> None:
    path = subject.folder / name
    path.write_text("#!/bin/sh\necho ran\n")
    path.chmod(0o755)
    if subject.user is not None:
        os.chown(path, subject.user, subject.user)


def run(
    subject: Sigwrap, *words: str, more: tuple[str, ...] = (), **options: object
) -> subprocess.CompletedProcess[bytes]:
    for name in ("ok", "asked", "other"):
        program(subject, name)
    line = ("-p", policy(subject.folder, DENY, *more), "--no-report", "--", *words)
    return subject.run(*line, **options)


def lines_of_ours(err: bytes) -> list[bytes]:
    return [line for line in err.splitlines(keepends=True) if line.startswith(b"sigwrap: ")]


def test_a_denial_without_a_message(as_user: Sigwrap) -> None:
    done = run(as_user, "sh", "-c", "./ok --force --token=abcdefgh 'a b'; echo $?")
    assert done.stdout == b"126\n"
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: ./ok --force '--token=***' 'a b': denied by rule no-ok of test" + TELLS
    ]


def test_command_itself(as_user: Sigwrap) -> None:
    done = run(as_user, "./ok", "x")
    assert done.returncode == 126
    assert done.stderr == b"sigwrap: ./ok x: denied by rule no-ok of test" + TELLS
    (ended,) = as_user.sealed_events("session_ended")
    why = "COMMAND could not be executed: denied by rule no-ok of test"
    assert ended.payload["reason"] == why


def test_along_path_and_behind_a_wrapper_it_is_said_once(as_user: Sigwrap) -> None:
    path = f"{as_user.folder}:{as_user.folder}/.:/usr/bin:/bin"
    done = run(as_user, "sh", "-c", "ok; env ok; exit 3", env={"PATH": path})
    assert done.returncode == 3
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: ok: denied by rule no-ok of test" + TELLS,
        b"sigwrap: env ok: denied by rule no-ok of test" + TELLS,
    ]


@pytest.mark.parametrize(
    ("more", "text", "said"),
    [
        (
            "limits: {max_depth: 1}",
            "(true; sh -c 'true; /bin/true'; true)",
            b"rule limits.max_depth of test: max_depth: depth 2 is over 1",
        ),
        (
            "limits: {}",
            "./other",
            b"rule instead of test: its replacement can't be run: /no/such",
        ),
    ],
)
def test_what_no_rule_of_the_policy_words(
    as_user: Sigwrap, more: str, text: str, said: bytes
) -> None:
    done = run(as_user, "sh", "-c", text, more=(more,))
    assert b": denied by " + said in done.stderr
    assert lines_of_ours(done.stderr)[0].endswith(TELLS)


def test_what_no_rule_allows(as_user: Sigwrap) -> None:
    path = as_user.folder / "strict.yaml"
    path.write_text(
        "version: 1\nname: strict\ncommand_rules:\n"
        "  - {name: shell, commands: [sh], decision: allow}\n"
    )
    done = as_user.run("-p", str(path), "--", "sh", "-c", "/bin/ls")
    why = b"no command rule of strict matches; its default is deny"
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: /bin/ls: denied by rule builtin:default: " + why + TELLS
    ]


def test_a_path_is_said_as_it_was_typed_and_nothing_else_that_the_caller_writes(
    as_user: Sigwrap,
) -> None:
    (as_user.folder / "bin").mkdir(mode=0o755)
    program(as_user, "bin/ok")
    text = "bin/ok; (exec -a /bin/true bin/ok); PATH=$PATH:$PWD/bin; exec ok"
    done = run(as_user, "bash", "-c", text)
    assert [line.partition(b": denied")[0] for line in lines_of_ours(done.stderr)] == [
        b"sigwrap: bin/ok",
        b"sigwrap: ok",
        b"sigwrap: ok",
    ]


def test_a_link_and_a_long_path_hide_no_program(as_user: Sigwrap) -> None:
    (as_user.folder / "link").symlink_to("ok")
    text = f"./link x; exec 9<ok; /proc/self/fd/9 x; {'./' * 70}ok x"
    done = run(as_user, "bash", "-c", text)
    assert [line.partition(b": denied")[0] for line in lines_of_ours(done.stderr)] == [
        b"sigwrap: ./link x (ok)",
        b"sigwrap: /proc/self/fd/9 x (ok)",
        b"sigwrap: %s\xe2\x80\xa6/%sok x" % (b"./" * 17, b"./" * 16),
    ]


@pytest.mark.parametrize("where", ["2>&-", "2</dev/null", "2>/dev/full", "2>/dev/null"])
def test_where_nothing_can_be_written_it_is_a_denial_all_the_same(
    as_user: Sigwrap, where: str
) -> None:
    done = run(as_user, "sh", "-c", f"./ok a {where}; echo $?; ./ok b")
    assert done.stdout == b"126\n"
    assert lines_of_ours(done.stderr) == [b"sigwrap: ./ok b: denied by rule no-ok of test" + TELLS]


def test_a_caller_that_may_not_be_looked_into(as_user: Sigwrap) -> None:
    """Nor is its standard error to be had then: the line goes to sigwrap's. Root may look."""
    code = (
        "import ctypes, os; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nos.execv('/bin/true', ['true'])"
    )
    done = run(as_user, *PYTHON, "-c", code)
    if as_user.user is None and os.getuid() == 0:
        assert done.returncode == 0
    else:
        (line,) = lines_of_ours(done.stderr)
        assert line.startswith(b"sigwrap: execve by python3")
        assert b": denied by rule builtin:unreadable: the caller may not be looked into" in line
        assert done.returncode == 1


# Where nobody is there


WAY_OUT = b"sigwrap watch is asked while it is open, --approvals control waits for sigwrap approve"
SAYS = b" (the rule says: looked at first)"
WAYS_OUT = WAY_OUT + b", and a rule of your own can allow it"


def test_without_a_terminal_it_is_no_at_once(as_user: Sigwrap) -> None:
    done = run(as_user, "./asked", "x", stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert done.stderr == (
        b"sigwrap: ./asked x: denied by rule ask of test: needs approval, and nobody can be asked: "
        b"there is no terminal; " + WAYS_OUT + SAYS + TELLS
    )
    (denied,) = as_user.sealed_events("approval_denied")
    assert denied.payload["reason"] == "nobody"
    (ended,) = as_user.events("session_ended")
    why = "COMMAND could not be executed: denied by rule ask of test"
    assert ended.payload["reason"] == why  # the line above has said the rest


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("npm", "install", "x"), b", and -p ci allows package installs"),
        (("env", "pip", "install", "x"), b", and -p ci allows package installs"),
        (("gh", "api", "-X", "POST", "x"), b", and a rule of your own can allow it"),
        (("brew", "bundle"), b", and a rule of your own can allow it"),
    ],
)
def test_the_policy_for_jobs_is_named_where_it_allows_what_was_asked(
    as_user: Sigwrap, words: tuple[str, ...], way: bytes
) -> None:
    for name in ("npm", "pip", "gh", "brew"):
        path = as_user.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    as_user.env["PATH"] = f"{as_user.folder}/bin:/usr/bin:/bin"
    done = as_user.run("--no-report", "--", *words, stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert b"there is no terminal; " + WAY_OUT + way + b" (the rule says: " in done.stderr


def test_it_is_not_named_under_another_policy_that_asks_by_a_rule_of_that_name(
    as_user: Sigwrap,
) -> None:
    rules = '\n  - {name: pkg-install, commands: ["true"], decision: approve}\n'
    line = ("-p", policy(as_user.folder, rules), "--no-report", "--", "true")
    assert WAYS_OUT + TELLS in as_user.run(*line, stdin=subprocess.DEVNULL).stderr


def test_a_signal_is_not_helped_by_what_helps_package_installs(as_user: Sigwrap) -> None:
    rules = "\n  []\nsignal_rules:\n  - {name: ask, signals: [USR1], decision: approve}\n"
    line = ("-p", policy(as_user.folder, rules), "--no-report", "--", "sh", "-c", "kill -USR1 $$")
    done = as_user.run(*line, stdin=subprocess.DEVNULL)
    (line_of_ours,) = lines_of_ours(done.stderr)
    assert line_of_ours.endswith(b"there is no terminal; " + WAY_OUT + TELLS)


@pytest.mark.parametrize(("ci", "asks"), [("true", False), ("1", False), ("false", True)])
def test_on_a_terminal_where_ci_is_set_it_is_no_too(sigwrap: Sigwrap, ci: str, asks: bool) -> None:
    program(sigwrap, "asked")
    line = ("-p", policy(sigwrap.folder, DENY), "--no-report", "--", "./asked")
    terminal = sigwrap.on_terminal(*line, env={"CI": ci})
    if asks:
        terminal.read_question()
        terminal.type("n\n")
        terminal.output.until(rb"denied by rule ask of test: not approved \(the rule says")
    else:
        terminal.output.until(rb"nobody can be asked: \$CI is set; " + WAYS_OUT)
    assert terminal.await_status() == 126


def test_a_terminal_is_one_to_ask_on_whatever_stdin_is(sigwrap: Sigwrap) -> None:
    program(sigwrap, "asked")
    line = ("-p", policy(sigwrap.folder, DENY), "--no-report", "--")
    terminal = sigwrap.on_terminal(*line, "sh", "-c", "./asked x </dev/null")
    said = terminal.read_question()
    assert b"rule ask of test: looked at first [" in said
    terminal.approve()
    assert terminal.await_status() == 0


def test_the_line_of_who_waits_says_until_when_and_how_to_answer(as_user: Sigwrap) -> None:
    program(as_user, "asked")
    line = ("-p", policy(as_user.folder, DENY), "--approvals", "control", "--no-report", "--")
    process = as_user.start(*line, "./asked", "--token=abcdefgh")
    said = reader(process.stderr).line()
    found = re.fullmatch(
        rb"sigwrap: \./asked '--token=\*\*\*': waits for approval \(rule ask of test\) "
        rb"until \d\d:\d\d:\d\d, as nobody watches; sigwrap watch --store \S+, or "
        rb"sigwrap (approve \w{6} --store (\S+))",
        said,
    )
    assert found is not None, said
    assert found[2] == str(as_user.store).encode()
    answer = as_user.native(UNDER_TEST, *found[1].decode().split(), env={"SIGWRAP_STORE": "/no"})
    assert answer.returncode == 0
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout.read() == b"ran\n"
