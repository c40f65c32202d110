"""The second exec of an approved script, as transcripts: when nobody is asked about it again."""

from __future__ import annotations

from typing import Any

import pytest

from sigwrap.approve.requests import Answer
from sigwrap.exec.facts import ExecFacts
from sigwrap.exec.judge import ExecMediator
from sigwrap.policy.judge.request import Program
from sigwrap.session.effects import (
    Ask,
    KernelRefused,
    Ran,
    VerifyThenContinue,
)
from sigwrap.session.lineage import Process
from tests.mediate.transcript import Transcript, engine, facts, play_exec

RULES = """
command_rules:
  - {name: installs, commands: [npm], decision: approve}
  - {name: with-node, commands: [node], args_patterns: ["--other"], decision: approve}
defaults: {command: allow, signal: deny}
"""
NPM = Program("/lib/npm.js", "npm", ("npm", "ci"))
ENV = Program("/usr/bin/env", "env", ("/usr/bin/env", "node", "/bin/npm", "ci"))
NODE = Program("/usr/bin/node", "node", ("node", "/bin/npm", "ci"))
NODE_AS_NPM = NODE._replace(name="npm", argv=("npm", "ci"), counts_by_name=True)
CONTENT = ("script", "env", "node")
YES = Answer(True, "the terminal", "", "granted", "4a5b6c")


@pytest.fixture
def mediator() -> ExecMediator:
    return ExecMediator(engine(RULES))


def stub(pid: int) -> Process:
    """A process that waits for its approval in the kernel."""
    process = Process(pid=pid, start_time=1, parent=None, ppid=30, depth=1, comm="sh")
    process.stub_of = "sh"
    return process


@pytest.fixture
def process() -> Process:
    return stub(40)


def first(process: Process, **different: Any) -> ExecFacts:
    later = (NODE, NODE_AS_NPM)
    found = facts(process, NPM, ENV, scripts=("/bin/npm",), script_wraps=NODE)
    return found._replace(programs=(NPM, ENV, *later))._replace(**different)


def second(process: Process, **different: Any) -> ExecFacts:
    return facts(process, NODE, NODE_AS_NPM)._replace(**different)


def is_asked(transcript: Transcript) -> Transcript:
    transcript.reads(CONTENT)
    asked = transcript.next(YES)
    assert isinstance(asked, Ask)
    return transcript


def approve(mediator: ExecMediator, seen: ExecFacts, outcome: object = None) -> None:
    """The first exec: somebody says yes to it, and it goes on."""
    transcript = is_asked(play_exec(mediator, seen.process, seen)).looks(seen)
    transcript.reads(CONTENT)
    transcript.holds().records("exec_allowed", approval_id="4a5b6c")
    transcript.yields(VerifyThenContinue(), reply=outcome or Ran())
    if isinstance(outcome, KernelRefused):
        transcript.records("exec_failed")
    transcript.ends()


def goes_on(mediator: ExecMediator, seen: ExecFacts) -> Transcript:
    return play_exec(mediator, seen.process, seen).reads(("node", "script"), "/bin/npm")


def test_it_goes_on_by_the_approval_of_the_script(mediator: ExecMediator, process: Process) -> None:
    approve(mediator, first(process))
    goes_on(mediator, second(process)).holds().records(
        "exec_allowed",
        decision="approve",
        rule_name="installs",
        approval_id="4a5b6c",
        reason="approved by the terminal with /bin/npm, which it runs",
    ).runs()


def test_it_is_used_up_then(mediator: ExecMediator, process: Process) -> None:
    approve(mediator, first(process))
    goes_on(mediator, second(process))
    is_asked(play_exec(mediator, process, second(process)))


@pytest.mark.parametrize(
    "different",
    [
        {"cwd": "/other"},
        {"truncated": True},
        {"programs": (NODE._replace(path="/tmp/node"), NODE_AS_NPM)},
        {"programs": (NODE._replace(name="npm"), NODE_AS_NPM)},
        {"programs": (NODE._replace(argv=("node", "/bin/npm", "publish")), NODE_AS_NPM)},
        {"programs": (NODE_AS_NPM,)},
        {"programs": (NODE._replace(elsewhere=True), NODE_AS_NPM)},
    ],
)
def test_another_call_is_asked_about(
    mediator: ExecMediator, process: Process, different: dict[str, Any]
) -> None:
    approve(mediator, first(process))
    seen = second(process, **different)
    is_asked(play_exec(mediator, seen.process, seen._replace(here=seen.programs)))


@pytest.mark.parametrize(
    "content",
    [
        (),
        ("node", "another"),
        ("another", "script"),
        ("node", "a loader", "script"),
        ("env", "script"),
        ("script", "script"),
        ("node", "node"),
    ],
)
def test_other_files_are_asked_about(
    mediator: ExecMediator, process: Process, content: tuple[str, ...]
) -> None:
    approve(mediator, first(process))
    transcript = play_exec(mediator, process, second(process))
    is_asked(transcript.reads(content, "/bin/npm"))


@pytest.mark.parametrize("environment", ["others", ""])
def test_other_variables_are_asked_about(
    mediator: ExecMediator, process: Process, environment: str
) -> None:
    approve(mediator, first(process))
    transcript = play_exec(mediator, process, second(process))
    is_asked(transcript.reads(("node", "script"), "/bin/npm", environment=environment))


def test_another_process_is_asked(mediator: ExecMediator, process: Process) -> None:
    approve(mediator, first(process))
    is_asked(play_exec(mediator, stub(41), second(stub(41))))


def test_what_another_rule_asks_about_is_asked_about(
    mediator: ExecMediator, process: Process
) -> None:
    approve(mediator, first(process, script_wraps=NODE._replace(argv=("node", "--other"))))
    other = NODE._replace(argv=("node", "--other"))
    is_asked(play_exec(mediator, process, facts(process, other)))


def test_an_exec_in_between_ends_it(mediator: ExecMediator, process: Process) -> None:
    approve(mediator, first(process))
    play_exec(mediator, process, facts(process, Program("/bin/ls", "ls", ("ls",)))).holds().records(
        "exec_allowed"
    ).yields(VerifyThenContinue(), reply=KernelRefused(7)).records("exec_failed").ends()
    is_asked(play_exec(mediator, process, second(process)))


def test_a_script_that_did_not_run_or_was_not_all_read_covers_nothing(
    mediator: ExecMediator, process: Process
) -> None:
    approve(mediator, first(process), KernelRefused(7))
    is_asked(play_exec(mediator, process, second(process)))
    approve(mediator, first(process, truncated=True))
    is_asked(play_exec(mediator, process, second(process)))


def test_only_so_many_scripts_are_kept(mediator: ExecMediator, process: Process) -> None:
    approve(mediator, first(process))
    for pid in range(256):
        approve(mediator, first(stub(1000 + pid)))
    is_asked(play_exec(mediator, process, second(process)))
