"""Each test is a log and the sentence that is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sigwrap.cli.app import run_app
from sigwrap.events import Event
from sigwrap.report.folds.cause import Cause, Why
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.why import WhyFold

COMMAND = 100


class Log:
    def __init__(self) -> None:
        self.fold = WhyFold()
        self.seq = 0
        self.add("session_started", 1, command_pid=COMMAND)
        self.exec(COMMAND, 1, "npm", "start")

    def add(self, type_name: str, pid: int, **payload: Any) -> None:
        self.seq += 1
        event = Event(
            seq=self.seq, time_ns=self.seq, type=type_name, pid=pid, payload=payload, hash=""
        )
        self.fold.add(event)

    def exec(self, pid: int, ppid: int, *argv: str, type_name: str = "exec_audited") -> None:
        self.add(type_name, pid, ppid=ppid, argv=list(argv), path=argv[0])

    def signal(
        self,
        source: int,
        target: int,
        number: int,
        name: str,
        type_name: str = "signal_sent",
        **more: Any,
    ) -> None:
        payload = {
            "signal": number,
            "signal_name": name,
            "original_signal": number,
            "source_pid": source,
            "source_cmd": "comm",
            "target_pid": target,
            "decision": "allow",
            "rule_name": "own-children",
            **more,
        }
        self.add(type_name, source, **payload)

    def exit(self, pid: int, code: int | None = 0, ppid: int = COMMAND) -> None:
        self.add("process_exited", pid, ppid=ppid, comm="comm", exit_code=code, signal=None)

    def die(self, pid: int, number: int, name: str, ppid: int = COMMAND) -> None:
        self.add(
            "process_exited",
            pid,
            ppid=ppid,
            comm="comm",
            exit_code=None,
            signal=number,
            signal_name=name,
        )

    def end(self, exit_status: int, reason: str = "COMMAND ended") -> None:
        self.add("session_ended", 1, exit_status=exit_status, reason=reason)

    def why(self, pid: int = 0) -> Why:
        found = self.fold.of(pid)
        assert found is not None
        return found


def test_who_waits_for_an_answer_is_said_to_and_so_is_command_before_its_first_exec() -> None:
    log = Log()
    log.exec(8, COMMAND, "sh")
    for pid in (8, COMMAND):
        log.add("approval_requested", pid, approval_id=f"a{pid}", kind="exec", what="npm ci")
    assert log.why(8).text == "it waits for an answer (sigwrap approve a8)"
    assert (log.why().cause, log.why().text) == (
        Cause.RUNNING,
        f"it waits for an answer (sigwrap approve a{COMMAND})",
    )
    log.add("approval_granted", 8, approval_id="a8")
    assert log.why(8).text == "no end of it is recorded yet"
    ended = log.fold.of(ending=Ending.NOT_CLEAN)
    assert ended is not None and ended.cause is Cause.SUPERVISOR_DIED


def test_a_signal_names_its_sender_and_whoever_started_that() -> None:
    log = Log()
    log.exec(4290, COMMAND, "bash", "-c", "pkill -f redis")
    log.exec(4312, 4290, "pkill", "-f", "redis")
    log.exec(4700, COMMAND, "redis-server")
    log.signal(4312, 4700, 15, "SIGTERM")
    log.exit(4312, ppid=4290)
    log.exit(4290)
    log.die(4700, 15, "SIGTERM")
    why = log.why(4700)
    assert why.sentence == (
        'exit 143: SIGTERM from 4312 "pkill -f redis", started by 4290 '
        "\"bash -c 'pkill -f redis'\", allowed by rule own-children"
    )
    assert (why.cause, why.command) == (Cause.RECORDED, "redis-server")
    assert why.sender is not None
    assert (why.sender.pid, why.sender.parent_pid, why.sender.rule) == (4312, 4290, "own-children")
    assert log.fold.deaths == (why,)


def test_a_signal_that_was_blocked_ended_nobody() -> None:
    log = Log()
    log.signal(7, COMMAND, 9, "SIGKILL", type_name="signal_blocked", decision="deny")
    log.die(COMMAND, 9, "SIGKILL", ppid=1)
    assert log.why().cause is Cause.OUTSIDE


@pytest.mark.parametrize("target", [None, 0, -5, "8"])
def test_a_signal_to_a_group_or_to_nobody_reached_no_process(target: Any) -> None:
    log = Log()
    log.signal(COMMAND, target, 9, "SIGKILL")
    assert not log.fold.knows(target)


def test_a_redirected_signal_says_what_was_asked_for() -> None:
    log = Log()
    log.exec(7, COMMAND, "kill", "-KILL", "8")
    log.signal(
        7,
        8,
        15,
        "SIGTERM",
        type_name="signal_redirected",
        original_signal=9,
        decision="redirect",
        rule_name="softly",
    )
    log.die(8, 15, "SIGTERM")
    assert log.why(8).sentence == (
        'exit 143: SIGTERM in place of SIGKILL from 7 "kill -KILL 8", '
        'started by 100 "npm start", redirected by rule softly'
    )


def test_of_several_signals_the_last_of_the_same_name_counts() -> None:
    log = Log()
    log.signal(7, 8, 15, "SIGTERM", rule_name="first")
    log.signal(7, 8, 10, "SIGUSR1", rule_name="other")
    log.signal(9, 8, 15, "SIGTERM", rule_name="last", decision="audit")
    log.die(8, 15, "SIGTERM")
    assert "SIGTERM from 9" in log.why(8).text
    assert log.why(8).text.endswith("audited by rule last")


def test_a_process_that_signals_itself() -> None:
    log = Log()
    log.exec(8, COMMAND, "abort")
    log.signal(8, 8, 6, "SIGABRT")
    log.die(8, 6, "SIGABRT")
    assert 'SIGABRT from 8 "abort" itself' in log.why(8).text


def test_a_pid_that_is_used_again_is_another_process() -> None:
    log = Log()
    log.exec(8, COMMAND, "first")
    log.signal(7, 8, 15, "SIGTERM")
    log.exit(8)
    log.exec(8, COMMAND, "second")
    log.die(8, 15, "SIGTERM")
    assert (log.why(8).command, log.why(8).cause) == ("second", Cause.UNKNOWN)


def test_a_denied_exec_is_not_what_a_process_runs() -> None:
    log = Log()
    log.exec(8, COMMAND, "sh")
    log.exec(8, COMMAND, "rm", "-rf", "/", type_name="exec_denied")
    log.exit(8, 126)
    assert log.why(8).command == "sh"


def test_an_exec_that_failed_changed_nothing() -> None:
    log = Log()
    log.exec(8, COMMAND, "sh")
    log.exec(8, COMMAND, "missing")
    log.add("exec_failed", 8, path="missing", error="ENOENT")
    log.add("exec_failed", 9, path="missing", error="ENOENT")
    log.exit(8)
    assert log.why(8).command == "sh"


def test_a_process_is_called_what_is_known_of_it() -> None:
    log = Log()
    for pid, exec_payload, exit_payload in (
        (5, {"replacement_argv": ["safe-rm", "x"], "argv": ["rm", "x"]}, {"comm": "safe-rm"}),
        (6, {"path": "/bin/ls"}, {"comm": "ls"}),
        (7, {}, {"comm": "ls"}),
    ):
        log.add("exec_audited", pid, ppid=COMMAND, **exec_payload)
        log.add("process_exited", pid, exit_code=0, **exit_payload)
    log.add("process_exited", 8, exit_code=0, comm="forked")
    log.add("process_exited", 9, exit_code=0)
    assert [log.why(pid).command for pid in (5, 6, 7, 8, 9)] == [
        "safe-rm x",
        "/bin/ls",
        "'?'",
        "forked",
        "?",
    ]


@pytest.mark.parametrize(
    ("number", "name", "cause", "said"),
    [
        (11, "SIGSEGV", Cause.KERNEL, "from the kernel: it touched memory that isn't its own"),
        (13, "SIGPIPE", Cause.KERNEL, "it wrote to a pipe that nobody reads"),
        (9, "SIGKILL", Cause.OUTSIDE, "OOM killer or a sender outside"),
        (2, "SIGINT", Cause.OUTSIDE, "the terminal (Ctrl+C) or a sender outside"),
        (15, "SIGTERM", Cause.UNKNOWN, "by whom is unknown: no process of the session sent it"),
    ],
)
def test_without_a_record_the_signal_itself_tells(
    number: int, name: str, cause: Cause, said: str
) -> None:
    log = Log()
    log.die(8, number, name)
    assert log.why(8).cause is cause
    assert said in log.why(8).sentence
    assert log.why(8).status == 128 + number


def test_the_terminals_key() -> None:
    log = Log()
    log.add("interrupt_received", 0, signal=2, signal_name="SIGINT", origin="terminal")
    log.add("interrupt_forwarded", COMMAND, signal=15, signal_name="SIGTERM")
    log.die(8, 2, "SIGINT")
    log.die(COMMAND, 15, "SIGTERM", ppid=1)
    log.end(130, "interrupted")
    assert log.why(8).sentence == "exit 130: SIGINT from the terminal (Ctrl+C)"
    assert log.why().sentence == (
        "exit 130: interrupted; SIGTERM from sigwrap, which got SIGINT from the terminal (Ctrl+C)"
    )


@pytest.mark.parametrize(
    ("origin", "name", "cause"),
    [
        ("terminal", "SIGQUIT", Cause.TERMINAL),
        ("terminal", "SIGINT", Cause.OUTSIDE),
        ("process", "SIGQUIT", Cause.OUTSIDE),
    ],
)
def test_the_terminals_key_ends_only_whom_its_signal_ended(
    origin: str, name: str, cause: Cause
) -> None:
    log = Log()
    log.add("interrupt_received", 0, signal_name="SIGQUIT", origin=origin)
    log.die(8, 3, name)
    assert log.why(8).cause is cause


def test_an_interrupt_from_elsewhere_names_its_sender() -> None:
    log = Log()
    log.add(
        "interrupt_received",
        9,
        signal=15,
        signal_name="SIGTERM",
        origin="process",
        sender_pid=9,
        sender_cmd="timeout 5 sigwrap",
    )
    log.add("interrupt_forwarded", COMMAND, signal=15, signal_name="SIGTERM")
    log.die(COMMAND, 15, "SIGTERM", ppid=1)
    assert log.why().cause is Cause.SIGWRAP
    assert 'which got SIGTERM from 9 "timeout 5 sigwrap"' in log.why().text


def test_what_a_command_that_joined_got_went_to_its_job() -> None:
    log = Log()
    caller = {"sender_pid": 9, "sender_place": "caller-ended", "sender_cmd": "bash -c make"}
    for pid, ppid in ((20, COMMAND), (21, 20), (30, COMMAND)):
        log.exec(pid, ppid, "make")
    log.add("interrupt_forwarded", 20, signal=9, signal_name="SIGKILL", **caller)
    for pid, ppid in ((21, 20), (20, COMMAND), (30, COMMAND)):
        log.die(pid, 9, "SIGKILL", ppid=ppid)
    said = 'SIGKILL from sigwrap, which got SIGKILL at the end of its caller, 9 "bash -c make"'
    assert [log.why(pid).text for pid in (20, 21)] == [said, said]
    assert log.why(30).cause is Cause.OUTSIDE


OF_PLACES = {
    "outside": 'SIGTERM from 9 "systemd", outside the session',
    "inside": 'SIGTERM from 9 "systemd", inside the session',
    "ended": "SIGTERM from 9, of user 33, which ended before it could be looked at",
    "elsewhere": "SIGTERM from a process of another pid namespace",
    "timer": "SIGTERM from a timer that sigwrap's caller had set",
    "outer-process": ("SIGTERM by way of sigwrap's outer process, which doesn't tell who sent it"),
}


def interrupted_from(log: Log, place: str) -> None:
    sender = {"sender_pid": 9, "sender_uid": 33, "sender_place": place, "sender_cmd": "systemd"}
    log.add("interrupt_received", 9, signal_name="SIGTERM", origin="process", **sender)


@pytest.mark.parametrize("place", OF_PLACES)
def test_an_interrupt_that_command_handled_names_its_sender(place: str) -> None:
    log = Log()
    interrupted_from(log, place)
    log.exit(COMMAND, 0)
    log.end(130, "interrupted")
    expected = f"exit 130: interrupted by {OF_PLACES[place]}; it ended by itself"
    assert log.why().sentence == expected


def test_a_status_that_the_runs_own_hides_is_told() -> None:
    log = Log()
    interrupted_from(log, "outside")
    log.exit(COMMAND, 7)
    log.end(130, "interrupted")
    assert log.why().sentence.endswith("; it ended by itself, with exit status 7")


def test_a_signal_to_the_whole_group_is_told_once() -> None:
    log = Log()
    interrupted_from(log, "outside")
    log.die(COMMAND, 15, "SIGTERM")
    log.end(130, "interrupted")
    assert log.why().sentence == f"exit 130: interrupted by {OF_PLACES['outside']}"


def test_who_raises_the_signal_again_was_interrupted_by_somebody_else() -> None:
    """npm does."""
    log = Log()
    interrupted_from(log, "outside")
    log.add("interrupt_forwarded", COMMAND, signal=15, signal_name="SIGTERM")
    log.signal(COMMAND, COMMAND, 15, "SIGTERM")
    log.die(COMMAND, 15, "SIGTERM", ppid=1)
    log.end(130, "interrupted")
    assert log.why().sentence == (
        f"exit 130: interrupted by {OF_PLACES['outside']}; "
        'SIGTERM from 100 "npm start" itself, allowed by rule own-children'
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_a_shell_that_raises_the_keys_signal_again_names_the_key(is_first: bool) -> None:
    """dash and bash do; its raising may be seen before the key's signal is."""
    log = Log()
    key = {"signal_name": "SIGINT", "origin": "terminal", "taken_by": "sigwrap"}
    if is_first:
        log.add("interrupt_received", 0, **key)
    log.signal(COMMAND, COMMAND, 2, "SIGINT")
    if not is_first:
        log.add("interrupt_received", 0, **key)
    log.signal(8, 8, 2, "SIGINT")
    log.die(8, 2, "SIGINT")
    log.die(COMMAND, 2, "SIGINT", ppid=1)
    log.end(130, "interrupted")
    key_and_shell = "exit 130: interrupted by SIGINT from the terminal (Ctrl+C); SIGINT from "
    assert log.why(8).sentence.startswith(f'{key_and_shell}8 "comm" itself, ')
    assert log.why().sentence == (
        f'{key_and_shell}100 "npm start" itself, allowed by rule own-children'
    )


def test_who_ended_before_the_key_was_seen_is_named_with_it_as_well() -> None:
    log = Log()
    log.signal(COMMAND, COMMAND, 2, "SIGINT")
    log.die(COMMAND, 2, "SIGINT", ppid=1)
    log.add("interrupt_received", 0, signal_name="SIGINT", origin="terminal", taken_by="sigwrap")
    log.end(130, "interrupted")
    assert log.why().text.startswith("interrupted by SIGINT from the terminal (Ctrl+C); SIGINT ")


def test_a_key_that_a_prompt_took_explains_no_signal_of_its_own() -> None:
    log = Log()
    log.add("interrupt_received", 0, signal_name="SIGINT", origin="terminal", taken_by="command")
    log.signal(COMMAND, COMMAND, 2, "SIGINT")
    log.die(COMMAND, 2, "SIGINT", ppid=1)
    log.end(130)
    assert log.why().text.startswith('SIGINT from 100 "npm start" itself')


def test_who_is_killed_after_an_interrupt_was_interrupted_by_somebody() -> None:
    log = Log()
    interrupted_from(log, "outside")
    log.add("interrupt_escalated", COMMAND, reason="the grace ran out", processes=1)
    log.die(COMMAND, 9, "SIGKILL", ppid=1)
    log.end(130, "killed: the grace ran out")
    assert log.why().sentence == (
        f"exit 130: interrupted by {OF_PLACES['outside']}; killed: the grace ran out"
    )


def test_a_prompts_interrupt_ended_no_run_but_maybe_others_on_the_terminal() -> None:
    log = Log()
    interrupted_from(log, "outside")
    interrupt = {"signal_name": "SIGINT", "origin": "terminal", "taken_by": "command"}
    log.add("interrupt_received", 0, **interrupt)
    log.die(8, 2, "SIGINT")
    log.exit(COMMAND, 0)
    log.end(130, "interrupted")
    assert log.why(8).cause is Cause.TERMINAL
    assert log.why().text == f"interrupted by {OF_PLACES['outside']}; it ended by itself"


def test_a_signal_that_was_passed_on_as_it_came_names_its_sender() -> None:
    log = Log()
    sender = {"sender_pid": 9, "sender_cmd": "watchdog"}
    log.add("interrupt_forwarded", COMMAND, signal=6, signal_name="SIGABRT", **sender)
    log.die(COMMAND, 6, "SIGABRT", ppid=1)
    assert log.why().text == 'SIGABRT from sigwrap, which got SIGABRT from 9 "watchdog"'


def test_an_interrupt_that_was_taken_back_explains_nothing() -> None:
    log = Log()
    log.add("interrupt_received", 0, signal=2, signal_name="SIGINT", origin="terminal")
    log.add("interrupt_withdrawn", COMMAND)
    log.die(8, 2, "SIGINT")
    assert log.why(8).cause is Cause.OUTSIDE


def test_a_signal_that_was_passed_on_without_a_word_from_where() -> None:
    log = Log()
    log.add("interrupt_forwarded", COMMAND, signal=15, signal_name="SIGTERM")
    log.die(COMMAND, 15, "SIGTERM", ppid=1)
    assert log.why().text == "SIGTERM from sigwrap, which passed it on"


def test_what_was_loaded_otherwise_than_judged_is_killed_by_sigwrap() -> None:
    log = Log()
    for pid in (8, 9):
        log.add("exec_verification_failed", pid, path="/bin/x", reason="another file")
    log.die(8, 9, "SIGKILL")
    log.die(9, 15, "SIGTERM")
    log.die(8, 9, "SIGKILL")  # the number's next process
    assert log.fold.deaths[0].text == (
        "SIGKILL from sigwrap: what was loaded is not what had been judged"
    )
    assert [death.cause for death in log.fold.deaths] == [
        Cause.SIGWRAP,
        Cause.UNKNOWN,
        Cause.OUTSIDE,
    ]


@pytest.mark.parametrize(
    ("effect", "cause"), [("terminated", Cause.SIGWRAP), ("refused", Cause.OUTSIDE)]
)
def test_a_limit_that_ends_the_run_kills_and_one_that_refuses_a_fork_does_not(
    effect: str, cause: Cause
) -> None:
    log = Log()
    log.add("limit_exceeded", 8, limit="max_execs", effect=effect)
    log.die(8, 9, "SIGKILL")
    assert log.why(8).cause is cause
    assert log.why(8).text.startswith("SIGKILL from sigwrap: max_execs") is (effect == "terminated")
    log.die(9, 15, "SIGTERM")
    assert log.why(9).text.startswith("SIGTERM from sigwrap: max_execs") is (effect == "terminated")


def test_the_second_interrupt_and_what_is_left_behind() -> None:
    log = Log()
    log.add("interrupt_escalated", COMMAND, reason="second interrupt", processes=2)
    log.die(COMMAND, 9, "SIGKILL", ppid=1)
    log.die(8, 15, "SIGTERM")
    assert log.why().text == "SIGKILL from sigwrap: second interrupt"
    assert log.why(8).text == "SIGTERM from sigwrap, which clears what COMMAND left behind"


@pytest.mark.parametrize("is_seen_first", [True, False], ids=["first", "last"])
def test_a_shell_passes_on_what_ended_its_child(is_seen_first: bool) -> None:
    """Of two that end at once, either end may be seen first."""
    for shell in (COMMAND, 7):
        log = Log()
        log.exec(7, COMMAND, "sh")
        log.exec(8, shell, "sleep", "9")
        log.signal(6, 8, 15, "SIGTERM")
        if is_seen_first:
            log.die(8, 15, "SIGTERM", ppid=shell)
        log.exit(shell, 143, ppid=1)
        if not is_seen_first:
            log.die(8, 15, "SIGTERM", ppid=shell)
        if shell == COMMAND:
            log.end(143)
        assert log.why(shell).sentence.startswith(
            'exit 143: it ended by itself, as its child 8 "sleep 9" had: SIGTERM from 6'
        )


@pytest.mark.parametrize("is_seen_first", [True, False])
def test_a_shell_passes_on_what_its_child_had_got_where_the_childs_end_was_not_seen(
    is_seen_first: bool,
) -> None:
    log = Log()
    log.exec(8, COMMAND, "sleep", "9")
    log.signal(6, 8, 10, "SIGUSR1")
    log.signal(6, 8, 15, "SIGTERM")
    if is_seen_first:
        log.exit(8, None)
    log.exit(COMMAND, 143, ppid=1)
    if not is_seen_first:
        log.exit(8, None)
    log.end(143)
    assert log.why().sentence.startswith(
        'exit 143: it ended by itself, as its child 8 "sleep 9" had: SIGTERM from 6'
    )
    assert log.why(8).text == "how it ended could not be seen"
    assert log.fold.deaths == ()


def test_a_child_whose_end_was_not_seen_ended_by_no_signal_where_the_status_is_another() -> None:
    log = Log()
    log.exec(8, COMMAND, "sleep", "9")
    log.signal(6, 8, 15, "SIGTERM")
    log.exit(8, None)
    log.exit(COMMAND, 3, ppid=1)
    log.end(3)
    assert log.why().sentence == "exit 3: it ended by itself"


def test_an_end_by_itself() -> None:
    log = Log()
    assert log.why().sentence == "no end of it is recorded yet"
    assert log.why().cause is Cause.RUNNING
    log.exit(COMMAND, 3, ppid=1)
    log.end(3)
    assert log.why().sentence == "exit 3: it ended by itself"
    assert log.fold.of(12345) is None


def test_an_end_that_nobody_saw() -> None:
    log = Log()
    log.exec(8, COMMAND, "sleep", "9")
    log.exit(9, None)
    assert log.why(8).text == "no end of it is recorded yet"
    assert (log.why(9).cause, log.why(9).text) == (Cause.UNKNOWN, "how it ended could not be seen")
    log.end(3)
    assert (log.why(8).cause, log.why(8).text) == (Cause.UNKNOWN, "its end was not seen")
    assert (log.why().cause, log.why().sentence) == (Cause.UNKNOWN, "exit 3: COMMAND ended")


@pytest.mark.parametrize(
    ("status", "reason", "sentence"),
    [
        (143, "interrupted", "exit 143: SIGTERM from 7"),
        (124, "the run took too long", "exit 124: the run took too long; SIGTERM from 7"),
        (3, "COMMAND ended", "exit 3: SIGTERM from 7"),
    ],
)
def test_what_sigwrap_exited_with_may_say_more_than_how_command_died(
    status: int, reason: str, sentence: str
) -> None:
    log = Log()
    log.signal(7, COMMAND, 15, "SIGTERM")
    log.die(COMMAND, 15, "SIGTERM", ppid=1)
    log.end(status, reason)
    assert log.why().sentence.startswith(sentence)


def test_a_run_that_ended_for_a_reason_though_command_ended_by_itself() -> None:
    log = Log()
    log.exit(COMMAND, 3, ppid=1)
    log.end(3, "interrupted")
    assert log.why().sentence == "exit 3: interrupted; it ended by itself"


def test_names_can_not_paint_on_the_terminal() -> None:
    log = Log()
    log.exec(7, COMMAND, "kill\x1b[2J", "x" * 500)
    log.signal(7, 8, 15, "SIGTERM", rule_name="r\x1b]0;\x07")
    log.die(8, 15, "SIGTERM")
    assert log.why(8).sentence.isprintable()
    assert len(log.why(8).sentence) < 400


def test_memory_does_not_grow_with_the_log() -> None:
    log = Log()
    for pid in range(1_000, 31_000):
        log.signal(7, pid, 15, "SIGTERM")
        log.die(pid, 15, "SIGTERM")
    assert len(log.fold._ended) == 10_000
    assert len(log.fold.deaths) == 50
    assert log.why(30_999).cause is Cause.RECORDED


def test_commands_end_is_kept_whatever_ends_after_it() -> None:
    log = Log()
    log.exit(COMMAND, 3, ppid=1)
    for pid in range(1_000, 11_001):
        log.exit(pid)
    assert log.why().status == 3
    assert not log.fold.knows(1_000) and log.fold.knows(11_000)


# What a process raises at itself


def test_who_raises_a_signal_again_had_it_from_another_process() -> None:
    log = Log()
    log.signal(7, 8, 15, "SIGTERM", rule_name="first")
    log.signal(8, 8, 15, "SIGTERM")
    log.die(8, 15, "SIGTERM")
    why = log.why(8)
    assert why.text == (
        'SIGTERM from 7 "comm", allowed by rule first; '
        'SIGTERM from 8 "comm" itself, allowed by rule own-children'
    )
    assert why.sender is not None and why.sender.pid == 7


def test_who_is_signalled_after_it_raised_the_signal_did_not_end_itself() -> None:
    log = Log()
    log.signal(8, 8, 15, "SIGTERM")
    log.signal(7, 8, 15, "SIGTERM")
    log.die(8, 15, "SIGTERM")
    assert log.why(8).text == 'SIGTERM from 7 "comm", allowed by rule own-children'


def test_who_raises_what_sigwrap_had_sent_for_a_limit() -> None:
    log = Log()
    log.add("limit_exceeded", COMMAND, limit="wall_time", effect="terminated")
    log.signal(8, 8, 15, "SIGTERM")
    log.die(8, 15, "SIGTERM")
    assert log.why(8).text.startswith("SIGTERM from sigwrap: wall_time; SIGTERM from 8 ")
    assert log.why(8).cause is Cause.SIGWRAP


# What was denied


def test_an_exec_that_was_denied_explains_an_exit_and_its_shells() -> None:
    log = Log()
    denied = {"argv": ["rm", "-rf", "/"], "rule_name": "no-rm"}
    log.add("exec_denied", 8, ppid=COMMAND, **denied)
    log.exit(8, 126)
    log.exit(COMMAND, 126, ppid=1)
    said = "it ended by itself, after its exec of rm -rf / was denied by rule no-rm"
    assert (log.why(8).text, log.why(8).cause) == (said, Cause.DENIED)
    assert log.why().text == f'it ended by itself, as its child 8 "comm" had: {said}'
    assert log.why().cause is Cause.DENIED


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_denial_explains_nothing_where_something_ran_or_all_went_well(goes_on: bool) -> None:
    log = Log()
    log.exec(8, COMMAND, "missing", type_name="exec_denied")
    if goes_on:
        log.exec(8, COMMAND, "found")
    log.exit(8, 3 if goes_on else 0)
    assert log.why(8).text == "it ended by itself"


# What the kernel tells


@pytest.mark.parametrize(
    ("told", "cause", "said"),
    [
        ({}, Cause.OUTSIDE, "the kernel's OOM killer or a sender outside: no process"),
        ({"oom_kills": 2, "cpu_limit_s": 0}, Cause.OUTSIDE, "the kernel's OOM killer or a sender "),
        ({"oom_kills": 0, "cpu_limit_s": 0}, Cause.OUTSIDE, "a sender outside: no process"),
        ({"oom_kills": 0}, Cause.OUTSIDE, "the kernel (a hard ulimit -t) or a sender outside: "),
        ({"oom_kills": 2}, Cause.OUTSIDE, "the kernel's OOM killer, the kernel (a hard ulimit -t)"),
        ({"cpu_limit_s": 5}, Cause.KERNEL, "the kernel: its hard limit of processor time, 5 s"),
        ({"cpu_limit_s": "5\x1b", "oom_kills": []}, Cause.OUTSIDE, "the kernel's OOM killer, the"),
    ],
)
def test_a_kill_that_nobody_sent(told: dict[str, Any], cause: Cause, said: str) -> None:
    log = Log()
    log.add("process_exited", 8, ppid=COMMAND, signal=9, signal_name="SIGKILL", **told)
    assert log.why(8).cause is cause
    assert log.why(8).text.startswith(f"SIGKILL from {said}")


def test_the_limit_of_memory_explains_a_kill_that_came_before_it_was_recorded() -> None:
    log = Log()
    log.die(8, 9, "SIGKILL")
    log.exit(COMMAND, 137, ppid=1)
    why = "memory: the kernel killed a process, for which 100M were not enough"
    log.add("limit_exceeded", COMMAND, limit="memory", effect="terminated", reason=why)
    log.end(124, why)
    said = f"SIGKILL from the kernel's OOM killer: {why}"
    assert (log.why(8).text, log.why(8).cause) == (said, Cause.KERNEL)
    assert log.fold.deaths[0].text == said


@pytest.mark.parametrize(
    ("told", "said"),
    [({"oom_kills": 1}, "the kernel's OOM killer: memory"), ({}, "sigwrap: memory")],
)
def test_a_kill_after_the_limit_of_memory_was_recorded(told: dict[str, Any], said: str) -> None:
    log = Log()
    log.add("limit_exceeded", COMMAND, limit="memory", effect="terminated")
    log.add("process_exited", 8, ppid=COMMAND, signal=9, signal_name="SIGKILL", **told)
    assert log.why(8).text == f"SIGKILL from {said}"


# How the log ends


@pytest.mark.parametrize(
    ("ending", "cause", "said"),
    [
        (Ending.RUNNING, Cause.RUNNING, "stopped since "),
        (Ending.MOMENT, Cause.RUNNING, "stopped since "),
        (Ending.NOT_CLEAN, Cause.SUPERVISOR_DIED, "sigwrap was killed, or could not"),
    ],
)
def test_only_who_runs_can_be_stopped(ending: Ending, cause: Cause, said: str) -> None:
    log = Log()
    log.add("agent_signal", COMMAND, signal="SIGSTOP", source="ann", outcome="delivered")
    log.add("tree_frozen", COMMAND, processes=1, held=0)
    why = log.fold.of(0, ending)
    assert why is not None
    assert (why.cause, why.text[: len(said)]) == (cause, said)
    assert (log.fold.stopped_at(ending) is None) is (ending is Ending.NOT_CLEAN)


def test_an_end_that_was_recorded_before_the_supervisor_died() -> None:
    log = Log()
    log.exit(COMMAND, 3, ppid=1)
    why = log.fold.of(0, Ending.NOT_CLEAN)
    assert why is not None
    died = "sigwrap was killed, or could not write any more, before the end of the session"
    assert why.sentence == f"exit 3: it ended by itself; {died}"


# The command


def run(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_app(list(words)) == 0
    return capfd.readouterr().out.rstrip("\n")


def test_the_command_takes_a_session_a_pid_both_or_nothing(
    scenario: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = scenario(session_id="20260101-s")
    recorded.execute(11, 10, "sleep", "9")
    recorded.signal("SIGTERM", "kill", "sleep", "children")
    recorded.exit(11, None, "SIGTERM")
    recorded.end(3)
    store = ("--store", recorded.store)
    sentence = 'exit 137: SIGTERM from 10 "kill", audited by rule ?'
    assert run(capfd, "why", "11", *store) == sentence
    assert run(capfd, "why", "20260101-s", "11", *store) == sentence
    assert run(capfd, "why", "2026", "11", *store) == sentence
    assert run(capfd, "why", *store) == run(capfd, "why", "2026", *store)
    document = json.loads(run(capfd, "why", "--json", "11", *store))
    assert (document["schema"], document["sentence"]) == ("sigwrap.why/1", sentence)
    assert (document["cause"], document["sender"]["pid"]) == ("recorded", 10)
    assert run_app(["why", "2026", "999", *store]) == 125
    said = capfd.readouterr().err
    assert "no process 999 was seen" in said and "there is 11;" in said
    assert run(capfd, "why", "11", "11", *store) == "\n".join([f'11 "sleep 9": {sentence}'] * 2)
    assert len(json.loads(run(capfd, "why", "11", "11", "--json", *store))) == 2


def test_export_by_the_command(
    scenario: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = scenario()
    recorded.signal("SIGTERM", "kill", "sleep", "children")
    recorded.end(0)
    store = ("--store", recorded.store)
    lines = run(capfd, "export", "--format", "jsonl", *store).splitlines()
    assert [json.loads(line)["event_type"] for line in lines] == [
        "session_started",
        "signal_sent",
        "session_ended",
    ]
    metrics = run(capfd, "export", "--format", "prom", *store)
    assert (
        'sigwrap_signals_total{signal="SIGTERM",target_type="children",decision="audit",'
        'platform="linux"} 1'
    ) in metrics
    assert run_app(["export", *store]) == 125
    assert "--format" in capfd.readouterr().err


@pytest.mark.parametrize(("dies_of", "number"), [("SIGTERM", 15), ("SIGKILL", 9)])
def test_an_agent_signal_that_ended_the_run_is_named_once(dies_of: str, number: int) -> None:
    log = Log()
    sent = {"signal": "SIGTERM", "source": "uid 0, pid 7", "reason": "lunch", "cause": None}
    log.add("agent_signal", COMMAND, **{**sent, "outcome": "pending"})
    log.add("agent_signal", COMMAND, **{**sent, "outcome": "delivered"})
    log.add("process_exited", COMMAND, comm="npm", signal=number, signal_name=dies_of)
    log.add(
        "session_ended",
        1,
        exit_status=130,
        reason="ended by agent signal SIGTERM from uid 0, pid 7: lunch",
    )
    why = log.fold.of()
    assert why is not None
    assert why.sentence == (
        "exit 130: ended by agent signal SIGTERM from uid 0, pid 7: lunch; COMMAND died of "
        + dies_of
        + " from sigwrap"
        + ", after the grace" * (dies_of == "SIGKILL")
    )


def test_what_follows_a_limit_is_the_limits() -> None:
    log = Log()
    why = "wall_time: 5 s are over"
    log.add("limit_exceeded", COMMAND, limit="wall_time", reason=why, effect="terminated")
    sent = {"outcome": "delivered", "source": "limit wall_time"}
    log.add("agent_signal", COMMAND, signal="SIGBUDGET", cause=None, **sent)
    log.add("agent_signal", COMMAND, signal="SIGTERM", cause=1, **sent)
    log.add("process_exited", COMMAND, comm="npm", signal=15, signal_name="SIGTERM")
    log.add("session_ended", 1, exit_status=124, reason=why)
    found = log.fold.of()
    assert found is not None
    assert found.text == f"{why}; COMMAND died of SIGTERM from sigwrap"


def test_whoever_sent_a_sigbudget_is_named() -> None:
    log = Log()
    sent = {"outcome": "delivered", "source": "uid 0, pid 7", "reason": "too dear"}
    log.add("agent_signal", COMMAND, signal="SIGBUDGET", cause=None, **sent)
    log.add("agent_signal", COMMAND, signal="SIGTERM", cause=1, **sent)
    log.add("process_exited", COMMAND, comm="npm", signal=15, signal_name="SIGTERM")
    why = "ended by agent signal SIGBUDGET from uid 0, pid 7: too dear"
    log.add("session_ended", 1, exit_status=124, reason=why)
    found = log.fold.of()
    assert found is not None
    assert found.text == f"{why}; COMMAND died of SIGTERM from sigwrap"


def test_a_stopped_command_whose_front_process_died() -> None:
    log = Log()
    log.add("process_exited", COMMAND, comm="sh", signal=1, signal_name="SIGHUP")
    log.add("session_ended", 1, exit_status=129, reason="killed: the front process died")
    found = log.fold.of()
    assert found is not None
    assert found.text == "killed: the front process died; COMMAND died of SIGHUP"
