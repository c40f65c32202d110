"""What a denied caller reads: one line with the command, the rule, the policy and the next step."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, reader

DENY = """
  - {name: no-ok, commands: [ok], decision: deny}
  - {name: ask, commands: [asked], decision: approve, message: looked at first}
"""
TELLS = b" (sigwrap report tells more)\n"


def program(subject: Sigwrap, name: str) -> None:
    script(subject.folder, name, "#!/bin/sh\necho ran\n")


def under(subject: Sigwrap, *words: str, rules: str = DENY) -> tuple[str, ...]:
    for name in ("ok", "asked"):
        program(subject, name)
    return ("--policy", policy(subject.folder, rules), "--no-report", *words)


def run(subject: Sigwrap, *words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subject.run(*under(subject, "--", *words), **options)


def lines_of_ours(err: bytes) -> list[bytes]:
    return [line for line in err.splitlines(keepends=True) if line.startswith(b"sigwrap: ")]


@pytest.mark.promise("message to the caller")
def test_a_denial_without_a_message(sigwrap: Sigwrap) -> None:
    done = run(sigwrap, "sh", "-c", "./ok --force --token=abcdefgh 'a b'; echo $?")
    assert done.stdout == b"126\n"
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: ./ok --force '--token=***' 'a b': denied by rule no-ok of test" + TELLS
    ]


def test_command_itself(sigwrap: Sigwrap) -> None:
    done = run(sigwrap, "./ok", "x")
    assert done.returncode == 126
    assert done.stderr == b"sigwrap: ./ok x: denied by rule no-ok of test" + TELLS
    (ended,) = sigwrap.sealed_events("session_ended")
    why = "COMMAND could not be executed: denied by rule no-ok of test"
    assert ended.payload["reason"] == why


def test_along_path_and_behind_a_wrapper_it_is_said_once(sigwrap: Sigwrap) -> None:
    path = f"{sigwrap.folder}:{sigwrap.folder}/.:/usr/bin:/bin"
    done = run(sigwrap, "sh", "-c", "ok; env ok; exit 3", env={"PATH": path})
    assert done.returncode == 3
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: ok: denied by rule no-ok of test" + TELLS,
        b"sigwrap: env ok: denied by rule no-ok of test" + TELLS,
    ]


def test_a_path_is_said_as_it_was_typed_and_nothing_else_that_the_caller_writes(
    sigwrap: Sigwrap,
) -> None:
    (sigwrap.folder / "bin").mkdir(mode=0o755)
    program(sigwrap, "bin/ok")
    text = "bin/ok; (exec -a /bin/true bin/ok); PATH=$PATH:$PWD/bin; exec ok"
    done = run(sigwrap, "bash", "-c", text)
    assert [line.partition(b": denied")[0] for line in lines_of_ours(done.stderr)] == [
        b"sigwrap: bin/ok",
        b"sigwrap: ok",
        b"sigwrap: ok",
    ]


def test_a_link_and_a_long_path_hide_no_program(sigwrap: Sigwrap) -> None:
    (sigwrap.folder / "link").symlink_to("ok")
    text = f"./link x; exec 9<ok; /proc/self/fd/9 x; {'./' * 70}ok x"
    done = run(sigwrap, "bash", "-c", text)
    assert [line.partition(b": denied")[0] for line in lines_of_ours(done.stderr)] == [
        b"sigwrap: ./link x (ok)",
        b"sigwrap: /proc/self/fd/9 x (ok)",
        b"sigwrap: %s\xe2\x80\xa6/%sok x" % (b"./" * 17, b"./" * 16),
    ]


def test_where_nothing_can_be_written_it_is_a_denial_all_the_same(sigwrap: Sigwrap) -> None:
    lines = ("2>&-", "2</dev/null", "2>/dev/full", "2>/dev/null")
    text = "".join(f"./ok a {where}; echo $?; ./ok b\n" for where in lines)
    done = run(sigwrap, "sh", "-c", text)
    assert done.stdout == b"126\n" * len(lines)
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: ./ok b: denied by rule no-ok of test" + TELLS
    ] * len(lines)


# Where nobody is there


WAY_OUT = b"sigwrap watch is asked while it is open, --approvals control waits for sigwrap approve"
SAYS = b" (the rule says: looked at first)"
WAYS_OUT = WAY_OUT + b", and a rule of your own can allow it"


def test_without_a_terminal_it_is_no_at_once(sigwrap: Sigwrap) -> None:
    done = run(sigwrap, "./asked", "x", stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert done.stderr == (
        b"sigwrap: ./asked x: denied by rule ask of test: needs approval, and nobody can be asked: "
        b"there is no terminal; " + WAYS_OUT + SAYS + TELLS
    )
    (denied,) = sigwrap.sealed_events("approval_denied")
    assert denied.payload["reason"] == "nobody"
    (ended,) = sigwrap.events("session_ended")
    why = "COMMAND could not be executed: denied by rule ask of test"
    assert ended.payload["reason"] == why  # the line above has said the rest


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("npm", "install", "x"), b", and -p ci allows package installs"),
        (("gh", "api", "-X", "POST", "x"), b", and a rule of your own can allow it"),
    ],
)
def test_the_policy_for_jobs_is_named_where_it_allows_what_was_asked(
    sigwrap: Sigwrap, words: tuple[str, ...], way: bytes
) -> None:
    (sigwrap.folder / "bin").mkdir()
    for name in ("npm", "gh"):
        script(sigwrap.folder / "bin", name, "#!/bin/sh\n")
    sigwrap.env["PATH"] = f"{sigwrap.folder}/bin:/usr/bin:/bin"
    done = sigwrap.run("--no-report", "--", *words, stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert b"there is no terminal; " + WAY_OUT + way + b" (the rule says: " in done.stderr


def test_it_is_not_named_under_another_policy_that_asks_by_a_rule_of_that_name(
    sigwrap: Sigwrap,
) -> None:
    rules = '\n  - {name: pkg-install, commands: ["true"], decision: approve}\n'
    line = under(sigwrap, "--", "true", rules=rules)
    assert WAYS_OUT + TELLS in sigwrap.run(*line, stdin=subprocess.DEVNULL).stderr


def test_a_signal_is_not_helped_by_what_helps_package_installs(sigwrap: Sigwrap) -> None:
    rules = "\n  []\nsignal_rules:\n  - {name: ask, signals: [USR1], decision: approve}\n"
    line = under(sigwrap, "--", "sh", "-c", "kill -USR1 $$", rules=rules)
    done = sigwrap.run(*line, stdin=subprocess.DEVNULL)
    (line_of_ours,) = lines_of_ours(done.stderr)
    assert line_of_ours.endswith(b"there is no terminal; " + WAY_OUT + TELLS)


@pytest.mark.parametrize(("ci", "asks"), [("true", False), ("false", True)])
def test_on_a_terminal_where_ci_is_set_it_is_no_too(sigwrap: Sigwrap, ci: str, asks: bool) -> None:
    terminal = sigwrap.on_terminal(*under(sigwrap, "--", "./asked"), env={"CI": ci})
    if asks:
        terminal.read_question()
        terminal.type("n\n")
        terminal.output.until(rb"denied by rule ask of test: not approved \(the rule says")
    else:
        terminal.output.until(rb"nobody can be asked: \$CI is set; " + WAYS_OUT)
    assert terminal.await_status() == 126


@pytest.mark.promise("approvals on a terminal")
def test_a_terminal_is_one_to_ask_on_whatever_stdin_is(sigwrap: Sigwrap) -> None:
    line = under(sigwrap, "--", "sh", "-c", "./asked x </dev/null")
    terminal = sigwrap.on_terminal(*line)
    said = terminal.read_question()
    assert b"rule ask of test: looked at first [" in said
    terminal.approve()
    assert terminal.await_status() == 0


def test_the_line_of_who_waits_says_until_when_and_how_to_answer(sigwrap: Sigwrap) -> None:
    line = under(sigwrap, "--approvals", "control", "--", "./asked", "--token=abcdefgh")
    process = sigwrap.start(*line)
    said = reader(process.stderr).line()
    found = re.fullmatch(
        rb"sigwrap: \./asked '--token=\*\*\*': waits for approval \(rule ask of test\) "
        rb"until \d\d:\d\d:\d\d, as nobody watches; sigwrap watch --store \S+, or "
        rb"sigwrap (approve \w{6} --store (\S+))",
        said,
    )
    assert found is not None, said
    assert found[2] == str(sigwrap.store).encode()
    answer = sigwrap.native(UNDER_TEST, *found[1].decode().split(), env={"SIGWRAP_STORE": "/no"})
    assert answer.returncode == 0
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout.read() == b"ran\n"
