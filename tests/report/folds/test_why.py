"""Each test is a log and the sentence that is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from signal import Signals
from typing import Any

import pytest

from sigwrap.cli.app import run_app
from sigwrap.events import Event
from sigwrap.report.folds.cause import Cause, Why
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.why import WhyFold
from tests.report.conftest import Scenarios

COMMAND = 100


class Log:
    def __init__(self) -> None:
        self.fold = WhyFold()
        self.seq = 0
        self.add("session_started", 1, command_pid=COMMAND)
        self.exec(COMMAND, 1, "npm", "start")

    def add(self, type_name: str, pid: int, **payload: Any) -> None:
        self.seq += 1
        self.fold.add(Event(self.seq, self.seq, type_name, pid, payload, ""))

    def exec(self, pid: int, ppid: int, *argv: str, type_name: str = "exec_audited") -> None:
        self.add(type_name, pid, ppid=ppid, argv=list(argv), path=argv[0])

    def signal(
        self, source: int, target: Any, name: str, type_name: str = "signal_sent", **more: Any
    ) -> None:
        sent = {"signal": Signals[name], "signal_name": name, "original_signal": Signals[name]}
        by = {"source_pid": source, "source_cmd": "comm", "rule_name": "own-children"}
        to = {"target_pid": target, "decision": "allow"}
        self.add(type_name, source, **{**sent, **by, **to, **more})

    def exit(self, pid: int, code: int | None = 0, ppid: int = COMMAND) -> None:
        self.add("process_exited", pid, ppid=ppid, comm="comm", exit_code=code, signal=None)

    def die(self, pid: int, name: str, ppid: int = COMMAND, **told: Any) -> None:
        died = {"exit_code": None, "signal": Signals[name], "signal_name": name}
        self.add("process_exited", pid, ppid=ppid, comm="comm", **died, **told)

    def key(self, name: str = "SIGINT", **more: Any) -> None:
        self.add("interrupt_received", 0, signal_name=name, origin="terminal", **more)

    def interrupted_from(self, place: str) -> None:
        sender = {"sender_pid": 9, "sender_uid": 33, "sender_place": place, "sender_cmd": "systemd"}
        self.add("interrupt_received", 9, signal_name="SIGTERM", origin="process", **sender)

    def forwarded(self, name: str, pid: int = COMMAND, **sender: Any) -> None:
        self.add("interrupt_forwarded", pid, signal=Signals[name], signal_name=name, **sender)

    def end(self, exit_status: int, reason: str = "the command ended") -> None:
        self.add("session_ended", 1, exit_status=exit_status, reason=reason)

    def why(self, pid: int = 0, ending: Ending = Ending.RUNNING) -> Why:
        found = self.fold.of(pid, ending)
        assert found is not None
        return found


@pytest.fixture
def log() -> Log:
    return Log()


# Who sent it


def test_a_process_that_waits_for_approval_is_named_so_even_before_its_first_exec(
    log: Log,
) -> None:
    log.exec(8, COMMAND, "sh")
    for pid in (8, COMMAND):
        log.add("approval_requested", pid, approval_id=f"a{pid}", kind="exec", what="npm ci")
    assert log.why(8).text == "waiting for approval (sigwrap approve a8)"
    assert log.why().cause is Cause.RUNNING
    assert log.why().text == f"waiting for approval (sigwrap approve a{COMMAND})"
    log.add("approval_granted", 8, approval_id="a8")
    assert log.why(8).text == "still running"
    assert log.why(ending=Ending.NOT_CLEAN).cause is Cause.SUPERVISOR_DIED


def test_a_signal_names_its_sender_and_what_started_that(log: Log) -> None:
    log.exec(4290, COMMAND, "bash", "-c", "pkill -f redis")
    log.exec(4312, 4290, "pkill", "-f", "redis")
    log.exec(4700, COMMAND, "redis-server")
    log.signal(4312, 4700, "SIGTERM")
    log.exit(4312, ppid=4290)
    log.exit(4290)
    log.die(4700, "SIGTERM")
    why = log.why(4700)
    assert why.sentence == (
        'exit 143: SIGTERM from 4312 "pkill -f redis", started by 4290 '
        "\"bash -c 'pkill -f redis'\", allowed by rule own-children"
    )
    assert (why.cause, why.command) == (Cause.RECORDED, "redis-server")
    assert why.sender is not None
    assert (why.sender.pid, why.sender.parent_pid, why.sender.rule) == (4312, 4290, "own-children")
    assert log.fold.deaths == (why,)


def test_a_signal_that_was_blocked_or_went_to_no_process_ended_none(log: Log) -> None:
    log.signal(7, COMMAND, "SIGKILL", type_name="signal_blocked", decision="deny")
    for target in (None, 0, -5, "8"):
        log.signal(COMMAND, target, "SIGKILL")
        assert not log.fold.knows(target)  # type: ignore[arg-type]
    log.die(COMMAND, "SIGKILL", ppid=1)
    assert log.why().cause is Cause.OUTSIDE


def test_a_redirected_signal_says_what_was_asked_for(log: Log) -> None:
    log.exec(7, COMMAND, "kill", "-KILL", "8")
    softly = {"original_signal": 9, "decision": "redirect", "rule_name": "softly"}
    log.signal(7, 8, "SIGTERM", type_name="signal_redirected", **softly)
    log.die(8, "SIGTERM")
    assert log.why(8).sentence == (
        'exit 143: SIGTERM in place of SIGKILL from 7 "kill -KILL 8", '
        'started by 100 "npm start", redirected by rule softly'
    )


def test_of_several_signals_the_last_of_the_same_name_counts(log: Log) -> None:
    log.signal(7, 8, "SIGTERM", rule_name="first")
    log.signal(7, 8, "SIGUSR1", rule_name="other")
    log.signal(9, 8, "SIGTERM", rule_name="last", decision="audit")
    log.die(8, "SIGTERM")
    assert "SIGTERM from 9" in log.why(8).text
    assert log.why(8).text.endswith("audited by rule last")


def test_a_pid_that_is_used_again_is_another_process(log: Log) -> None:
    log.exec(8, COMMAND, "first")
    log.signal(7, 8, "SIGTERM")
    log.exit(8)
    log.exec(8, COMMAND, "second")
    log.die(8, "SIGTERM")
    assert (log.why(8).command, log.why(8).cause) == ("second", Cause.UNKNOWN)


def test_an_exec_that_was_denied_or_failed_changed_nothing(log: Log) -> None:
    log.exec(8, COMMAND, "sh")
    log.exec(8, COMMAND, "rm", "-rf", "/", type_name="exec_denied")
    log.exit(8, 126)
    log.exec(9, COMMAND, "sh")
    log.exec(9, COMMAND, "missing")
    log.add("exec_failed", 9, path="missing", error="ENOENT")
    log.add("exec_failed", 10, path="missing", error="ENOENT")
    log.exit(9)
    assert [log.why(pid).command for pid in (8, 9)] == ["sh", "sh"]


def test_a_process_is_called_what_is_known_of_it(log: Log) -> None:
    for pid, exec_payload, exit_payload in (
        (5, {"replacement_argv": ["safe-rm", "x"], "argv": ["rm", "x"]}, {"comm": "safe-rm"}),
        (6, {"path": "/bin/ls"}, {"comm": "ls"}),
        (7, {}, {"comm": "ls"}),
    ):
        log.add("exec_audited", pid, ppid=COMMAND, **exec_payload)
        log.add("process_exited", pid, exit_code=0, **exit_payload)
    log.add("process_exited", 8, exit_code=0, comm="forked")
    log.add("process_exited", 9, exit_code=0)
    found = [log.why(pid).command for pid in (5, 6, 7, 8, 9)]
    assert found == ["safe-rm x", "/bin/ls", "'?'", "forked", "?"]


def test_names_can_not_paint_on_the_terminal(log: Log) -> None:
    log.exec(7, COMMAND, "kill\x1b[2J", "x" * 500)
    log.signal(7, 8, "SIGTERM", rule_name="r\x1b]0;\x07")
    log.die(8, "SIGTERM")
    assert log.why(8).sentence.isprintable()
    assert len(log.why(8).sentence) < 400


# What the signal and the kernel tell


OOM_KILLER = " from the kernel's OOM killer"


@pytest.mark.parametrize(
    ("name", "told", "cause", "said"),
    [
        ("SIGSEGV", {}, Cause.KERNEL, " from the kernel: an invalid memory access"),
        (
            "SIGINT",
            {},
            Cause.OUTSIDE,
            " from the terminal (Ctrl+C) or from outside the session: no proc",
        ),
        (
            "SIGTERM",
            {},
            Cause.UNKNOWN,
            " from an unknown sender: no process in the session sent it",
        ),
        (
            "SIGKILL",
            {},
            Cause.OUTSIDE,
            f"{OOM_KILLER} or a process outside the session: no process",
        ),
        ("SIGKILL", {"oom_kills": 2, "cpu_limit_s": 0}, Cause.OUTSIDE, f"{OOM_KILLER} or a proc"),
        (
            "SIGKILL",
            {"oom_kills": 0, "cpu_limit_s": 0},
            Cause.OUTSIDE,
            " from a process outside the session: ",
        ),
        ("SIGKILL", {"oom_kills": 0}, Cause.OUTSIDE, " from the kernel (a hard ulimit -t) or a p"),
        (
            "SIGKILL",
            {"oom_kills": 2},
            Cause.OUTSIDE,
            f"{OOM_KILLER}, the kernel (a hard ulimit -t)",
        ),
        ("SIGKILL", {"cpu_limit_s": 5}, Cause.KERNEL, " from the kernel: its hard CPU time limit"),
        ("SIGKILL", {"cpu_limit_s": "5", "oom_kills": []}, Cause.OUTSIDE, f"{OOM_KILLER}, the"),
    ],
)
def test_without_a_record_the_signal_itself_tells(
    name: str, told: dict[str, Any], cause: Cause, said: str
) -> None:
    log = Log()
    log.die(8, name, **told)
    assert log.why(8).cause is cause
    assert log.why(8).text.startswith(f"{name}{said}")
    assert log.why(8).status == 128 + Signals[name]


def test_the_limit_of_memory_explains_a_kill_before_and_after_it_was_recorded(log: Log) -> None:
    log.die(8, "SIGKILL")
    why = "memory: the kernel killed a process at the limit of 100M"
    log.add("limit_exceeded", COMMAND, limit="memory", effect="terminated", reason=why)
    log.die(9, "SIGKILL", oom_kills=1)
    log.die(10, "SIGKILL")
    log.exit(COMMAND, 137, ppid=1)
    log.end(124, why)
    said = f"SIGKILL from the kernel's OOM killer: {why}"
    assert (log.why(8).text, log.why(8).cause) == (said, Cause.KERNEL)
    assert log.fold.deaths[0].text == log.why(9).text == said
    assert log.why(10).text == f"SIGKILL from sigwrap: {why}"


# Interrupts


def test_the_terminals_key(log: Log) -> None:
    log.key(signal=2)
    log.forwarded("SIGTERM")
    log.die(8, "SIGINT")
    log.die(COMMAND, "SIGTERM", ppid=1)
    log.end(130, "interrupted")
    assert log.why(8).sentence == "exit 130: SIGINT from the terminal (Ctrl+C)"
    assert log.why().sentence == (
        "exit 130: interrupted; SIGTERM from sigwrap, "
        "which received SIGINT from the terminal (Ctrl+C)"
    )


def test_the_terminals_key_ends_only_what_its_signal_ended_until_it_is_taken_back() -> None:
    for origin, name, cause in (
        ("terminal", "SIGQUIT", Cause.TERMINAL),
        ("terminal", "SIGINT", Cause.OUTSIDE),
        ("process", "SIGQUIT", Cause.OUTSIDE),
    ):
        log = Log()
        log.add("interrupt_received", 0, signal_name="SIGQUIT", origin=origin)
        log.die(8, name)
        assert log.why(8).cause is cause
    log = Log()
    log.key()
    log.add("interrupt_withdrawn", COMMAND)
    log.die(8, "SIGINT")
    assert log.why(8).cause is Cause.OUTSIDE


def test_a_signal_that_was_passed_on_names_its_sender() -> None:
    timeout: dict[str, Any] = {"sender_pid": 9, "sender_cmd": "timeout 5"}
    for sender, said in (
        (timeout, ', which received SIGTERM from 9 "timeout 5"'),
        ({}, ", which forwarded it"),
    ):
        log = Log()
        log.forwarded("SIGTERM", **sender)
        log.die(COMMAND, "SIGTERM", ppid=1)
        assert log.why().text == f"SIGTERM from sigwrap{said}"


def test_what_a_command_that_joined_got_went_to_its_job(log: Log) -> None:
    caller = {"sender_pid": 9, "sender_place": "caller-ended", "sender_cmd": "bash -c make"}
    for pid, ppid in ((20, COMMAND), (21, 20), (30, COMMAND)):
        log.exec(pid, ppid, "make")
    log.forwarded("SIGKILL", 20, **caller)
    for pid, ppid in ((21, 20), (20, COMMAND), (30, COMMAND)):
        log.die(pid, "SIGKILL", ppid=ppid)
    said = 'SIGKILL from sigwrap, which received SIGKILL when its caller ended, 9 "bash -c make"'
    assert [log.why(pid).text for pid in (20, 21)] == [said, said]
    assert log.why(30).cause is Cause.OUTSIDE


OF_PLACES = {
    "outside": 'SIGTERM from 9 "systemd", outside the session',
    "inside": 'SIGTERM from 9 "systemd", inside the session',
    "ended": "SIGTERM from 9, of user 33, which ended before sigwrap could identify it",
    "elsewhere": "SIGTERM from a process of another pid namespace",
    "timer": "SIGTERM from a timer that sigwrap's caller set",
    "outer-process": "SIGTERM through sigwrap's outer process, sender unknown",
}
INTERRUPTED = f"exit 130: interrupted by {OF_PLACES['outside']}"


def test_an_interrupt_that_command_handled_names_its_sender() -> None:
    for place, said in OF_PLACES.items():
        log = Log()
        log.interrupted_from(place)
        log.exit(COMMAND, 0)
        log.end(130, "interrupted")
        assert log.why().sentence == f"exit 130: interrupted by {said}; it ended by itself"


def test_what_else_is_told_of_a_command_that_was_interrupted() -> None:
    def ended(*deeds: Callable[[Log], None], reason: str = "interrupted") -> str:
        log = Log()
        log.interrupted_from("outside")
        for deed in deeds:
            deed(log)
        log.end(130, reason)
        return log.why().sentence

    def dies(name: str) -> Callable[[Log], None]:
        return lambda log: log.die(COMMAND, name, ppid=1)

    status_is_hidden = ended(lambda log: log.exit(COMMAND, 7))
    assert status_is_hidden == f"{INTERRUPTED}; it ended by itself, with exit status 7"
    assert ended(dies("SIGTERM")) == INTERRUPTED  # a signal to the whole group
    raised_again = ended(  # as npm does
        lambda log: log.forwarded("SIGTERM"),
        lambda log: log.signal(COMMAND, COMMAND, "SIGTERM"),
        dies("SIGTERM"),
    )
    assert raised_again == (INTERRUPTED)
    why = {"reason": "the grace period ended", "processes": 1}
    killed = ended(
        lambda log: log.add("interrupt_escalated", COMMAND, **why),
        dies("SIGKILL"),
        reason="killed: the grace period ended",
    )
    assert killed == f"{INTERRUPTED}; killed: the grace period ended"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_shell_that_raises_the_keys_signal_again_names_the_key(is_first: bool) -> None:
    """dash and bash do; its raising may be seen before the key's signal is."""
    log = Log()
    if is_first:
        log.key(taken_by="sigwrap")
    log.signal(COMMAND, COMMAND, "SIGINT")
    if not is_first:
        log.key(taken_by="sigwrap")
    log.signal(8, 8, "SIGINT")
    log.die(8, "SIGINT")
    log.die(COMMAND, "SIGINT", ppid=1)
    log.end(130, "interrupted")
    said = "exit 130: interrupted by SIGINT from the terminal (Ctrl+C)"
    assert log.why(8).sentence == log.why().sentence == said


def test_a_command_that_ended_before_the_key_was_seen_is_named_with_it_as_well(log: Log) -> None:
    log.signal(COMMAND, COMMAND, "SIGINT")
    log.die(COMMAND, "SIGINT", ppid=1)
    log.key(taken_by="sigwrap")
    log.end(130, "interrupted")
    assert log.why().text == "interrupted by SIGINT from the terminal (Ctrl+C)"


def test_a_key_that_a_prompt_took_ended_no_run_but_maybe_others_on_the_terminal(log: Log) -> None:
    log.key(taken_by="command")
    log.signal(COMMAND, COMMAND, "SIGINT")
    log.die(COMMAND, "SIGINT", ppid=1)
    log.end(130)
    assert log.why().text == "it sent itself SIGINT"
    log = Log()
    log.interrupted_from("outside")
    log.key(taken_by="command")
    log.die(8, "SIGINT")
    log.exit(COMMAND, 0)
    log.end(130, "interrupted")
    assert log.why(8).cause is Cause.TERMINAL
    assert log.why().sentence == f"{INTERRUPTED}; it ended by itself"


# What sigwrap did


def test_what_was_loaded_otherwise_than_judged_is_killed_by_sigwrap(log: Log) -> None:
    for pid in (8, 9):
        log.add("exec_verification_failed", pid, path="/bin/x", reason="another file")
    log.die(8, "SIGKILL")
    log.die(9, "SIGTERM")
    log.die(8, "SIGKILL")  # the number's next process
    said = "SIGKILL from sigwrap: the loaded program is not the one that sigwrap checked"
    assert log.fold.deaths[0].text == said
    causes = [death.cause for death in log.fold.deaths]
    assert causes == [Cause.SIGWRAP, Cause.UNKNOWN, Cause.OUTSIDE]


def test_a_limit_that_ends_the_run_kills_and_one_that_refuses_a_fork_does_not() -> None:
    for effect, cause in (("terminated", Cause.SIGWRAP), ("refused", Cause.OUTSIDE)):
        log = Log()
        log.add("limit_exceeded", 8, limit="max_execs", effect=effect)
        for pid, name in ((8, "SIGKILL"), (9, "SIGTERM")):
            log.die(pid, name)
            said = f"{name} from sigwrap: max_execs"
            assert log.why(pid).text.startswith(said) is (effect == "terminated")
        assert log.why(8).cause is cause


def test_the_second_interrupt_and_what_is_left_behind(log: Log) -> None:
    log.add("interrupt_escalated", COMMAND, reason="second interrupt", processes=2)
    log.die(COMMAND, "SIGKILL", ppid=1)
    log.die(8, "SIGTERM")
    assert log.why().text == "SIGKILL from sigwrap: second interrupt"
    assert (
        log.why(8).text
        == "SIGTERM from sigwrap, which ends the processes that the command left behind"
    )


# Ends by themselves


@pytest.mark.parametrize("is_seen_first", [True, False], ids=["first", "last"])
def test_a_shell_passes_on_what_ended_its_child(is_seen_first: bool) -> None:
    """Of two that end at once, either end may be seen first."""
    for shell, childs_end_is_seen in ((COMMAND, True), (7, True), (COMMAND, False)):
        log = Log()
        log.exec(7, COMMAND, "sh")
        log.exec(8, shell, "sleep", "9")
        log.signal(6, 8, "SIGUSR1")
        log.signal(6, 8, "SIGTERM")
        if not is_seen_first:
            log.exit(shell, 143, ppid=1)
        if childs_end_is_seen:
            log.die(8, "SIGTERM", ppid=shell)
        else:
            log.exit(8, None)
        if is_seen_first:
            log.exit(shell, 143, ppid=1)
        if shell == COMMAND:
            log.end(143)
        assert log.why(shell).sentence.startswith(
            'exit 143: it passed on the exit status of its child 8 "sleep 9": SIGTERM from 6'
        )
    assert log.why(8).text == "its exit status is unknown"
    assert log.fold.deaths == ()


def test_a_child_whose_end_was_not_seen_ended_by_no_signal_where_the_status_is_another(
    log: Log,
) -> None:
    log.exec(8, COMMAND, "sleep", "9")
    log.signal(6, 8, "SIGTERM")
    log.exit(8, None)
    log.exit(COMMAND, 3, ppid=1)
    log.end(3)
    assert log.why().sentence == "exit 3: it ended by itself"


def test_an_end_by_itself(log: Log) -> None:
    assert log.why().sentence == "still running"
    assert log.why().cause is Cause.RUNNING
    log.exit(COMMAND, 3, ppid=1)
    died = "the session's end was not recorded: sigwrap was killed or could not write the log"
    assert log.why(ending=Ending.NOT_CLEAN).sentence == f"exit 3: it ended by itself; {died}"
    log.end(3)
    assert log.why().sentence == "exit 3: it ended by itself"
    assert log.fold.of(12345) is None


def test_an_end_that_was_not_seen(log: Log) -> None:
    log.exec(8, COMMAND, "sleep", "9")
    log.exit(9, None)
    assert log.why(8).text == "still running"
    assert (log.why(9).cause, log.why(9).text) == (Cause.UNKNOWN, "its exit status is unknown")
    log.end(3)
    assert (log.why(8).cause, log.why(8).text) == (Cause.UNKNOWN, "its end was not recorded")
    assert (log.why().cause, log.why().sentence) == (Cause.UNKNOWN, "exit 3: the command ended")


@pytest.mark.parametrize(
    ("status", "reason", "died", "sentence"),
    [
        (143, "interrupted", True, "exit 143: SIGTERM from 7"),
        (124, "the run took too long", True, "exit 124: the run took too long; SIGTERM from 7"),
        (3, "the command ended", True, "exit 3: SIGTERM from 7"),
        (3, "interrupted", False, "exit 3: interrupted; it ended by itself"),
    ],
)
def test_what_sigwrap_exited_with_may_say_more_than_how_command_ended(
    status: int, reason: str, died: bool, sentence: str
) -> None:
    log = Log()
    if died:
        log.signal(7, COMMAND, "SIGTERM")
        log.die(COMMAND, "SIGTERM", ppid=1)
    else:
        log.exit(COMMAND, status, ppid=1)
    log.end(status, reason)
    assert log.why().sentence.startswith(sentence)


def test_memory_does_not_grow_with_the_log_and_commands_end_is_kept(log: Log) -> None:
    log.exit(COMMAND, 3, ppid=1)
    for pid in range(1_000, 31_000):
        log.signal(7, pid, "SIGTERM")
        log.die(pid, "SIGTERM")
    assert len(log.fold._ended) == 10_000
    assert len(log.fold.deaths) == 50
    assert not log.fold.knows(20_999) and log.fold.knows(21_000)
    assert log.why(30_999).cause is Cause.RECORDED
    assert log.why().status == 3


# What a process raises at itself


def test_a_process_that_raises_a_signal_again_had_it_from_the_first_sender(log: Log) -> None:
    log.signal(7, 8, "SIGTERM", rule_name="first")
    log.signal(8, 8, "SIGTERM")
    log.die(8, "SIGTERM")
    why = log.why(8)
    assert why.text == 'SIGTERM from 7 "comm", allowed by rule first'
    assert why.sender is not None and why.sender.pid == 7
    log.signal(9, 9, "SIGTERM")
    log.signal(7, 9, "SIGTERM")  # after it had raised it, so it did not end itself
    log.die(9, "SIGTERM")
    assert log.why(9).text == 'SIGTERM from 7 "comm", allowed by rule own-children'
    log.add("limit_exceeded", COMMAND, limit="wall_time", effect="terminated")
    log.signal(10, 10, "SIGTERM")
    log.die(10, "SIGTERM")
    assert log.why(10).text == "SIGTERM from sigwrap: wall_time"
    assert log.why(10).cause is Cause.SIGWRAP


# What was denied


def test_an_exec_that_was_denied_explains_an_exit_and_its_shells(log: Log) -> None:
    log.add("exec_denied", 8, ppid=COMMAND, argv=["rm", "-rf", "/"], rule_name="no-rm")
    log.exit(8, 126)
    log.exit(COMMAND, 126, ppid=1)
    said = "it ended by itself, after sigwrap denied its exec of rm -rf / (rule no-rm)"
    assert (log.why(8).text, log.why(8).cause) == (said, Cause.DENIED)
    said = "sigwrap denied its exec of rm -rf / (rule no-rm)"
    assert log.why().text == f'it passed on the exit status of its child 8 "comm": {said}'
    assert log.why().cause is Cause.DENIED
    for pid, found in ((9, False), (10, True)):  # all went well, or something else ran
        log.exec(pid, COMMAND, "missing", type_name="exec_denied")
        if found:
            log.exec(pid, COMMAND, "found")
        log.exit(pid, 3 if found else 0)
        assert log.why(pid).text == "it ended by itself"


# How the log ends


@pytest.mark.parametrize(
    ("ending", "cause", "said"),
    [
        (Ending.RUNNING, Cause.RUNNING, "stopped since "),
        (Ending.MOMENT, Cause.RUNNING, "stopped since "),
        (Ending.NOT_CLEAN, Cause.SUPERVISOR_DIED, "its end was not recorded: sigwrap"),
    ],
)
def test_only_what_runs_can_be_stopped(ending: Ending, cause: Cause, said: str) -> None:
    log = Log()
    log.add("agent_signal", COMMAND, signal="SIGSTOP", source="ann", outcome="delivered")
    log.add("tree_frozen", COMMAND, processes=1, held=0)
    why = log.why(0, ending)
    assert (why.cause, why.text[: len(said)]) == (cause, said)
    assert (log.fold.explained(ending).stopped is None) is (ending is Ending.NOT_CLEAN)


ENDED = "ended by agent signal {} from uid 0, pid 7: lunch"
TERM, BUDGET = ENDED.format("SIGTERM"), ENDED.format("SIGBUDGET")


@pytest.mark.parametrize(
    ("signals", "dies_of", "status", "reason", "said"),
    [
        (["SIGTERM"], "SIGTERM", 130, TERM, " from sigwrap"),
        (["SIGTERM"], "SIGKILL", 130, TERM, " from sigwrap after the grace period"),
        (["SIGBUDGET", "SIGTERM"], "SIGTERM", 124, BUDGET, " from sigwrap"),
        ([], "SIGHUP", 129, "killed: the front process died", ""),
    ],
)
def test_an_agent_signal_that_ended_the_run_is_named_once(
    signals: list[str], dies_of: str, status: int, reason: str, said: str
) -> None:
    log = Log()
    by: dict[str, Any] = {"source": "uid 0, pid 7", "reason": "lunch"}
    for at, name in enumerate(signals):
        for outcome in ("pending", "delivered"):
            by |= {"signal": name, "cause": at or None, "outcome": outcome}
            log.add("agent_signal", COMMAND, **by)
    log.die(COMMAND, dies_of)
    log.end(status, reason)
    assert log.why().sentence == f"exit {status}: {reason}; the command died of {dies_of}{said}"


def test_what_follows_a_limit_is_the_limits(log: Log) -> None:
    why = "wall_time: 5 s are over"
    log.add("limit_exceeded", COMMAND, limit="wall_time", reason=why, effect="terminated")
    sent = {"outcome": "delivered", "source": "limit wall_time"}
    log.add("agent_signal", COMMAND, signal="SIGBUDGET", cause=None, **sent)
    log.add("agent_signal", COMMAND, signal="SIGTERM", cause=1, **sent)
    log.die(COMMAND, "SIGTERM")
    log.end(124, why)
    assert log.why().text == f"{why}; the command died of SIGTERM from sigwrap"


# The commands


def run(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_app(list(words)) == 0
    return capfd.readouterr().out.rstrip("\n")


def test_the_command_takes_a_session_a_pid_both_or_nothing(
    scenario: Scenarios, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = scenario(session_id="20260101-s")
    recorded.execute(11, 10, "sleep", "9")
    recorded.signal("SIGTERM", "kill", "sleep", "children")
    recorded.exit(11, None, "SIGTERM")
    recorded.end(3)
    store = ("--store", recorded.store)
    sentence = 'exit 137: SIGTERM from 10 "kill", audited by rule ?'
    for words in (["11"], ["20260101-s", "11"], ["2026", "11"]):
        assert run(capfd, "why", *words, *store) == sentence
    assert run(capfd, "why", *store) == run(capfd, "why", "2026", *store)
    document = json.loads(run(capfd, "why", "--json", "11", *store))
    assert (document["schema"], document["sentence"]) == ("sigwrap.why/1", sentence)
    assert (document["cause"], document["sender"]["pid"]) == ("recorded", 10)
    assert run_app(["why", "2026", "999", *store]) == 125
    said = capfd.readouterr().err
    assert "no process 999" in said and "nearest: 11;" in said
    assert run_app(["why", "999", *store]) == 125  # a pid alone is one of the latest session
    assert "no process 999 in session 20260101-s" in capfd.readouterr().err
    assert run(capfd, "why", "11", "11", *store) == "\n".join([f'11 "sleep 9": {sentence}'] * 2)
    assert len(json.loads(run(capfd, "why", "11", "11", "--json", *store))) == 2


def test_export_by_the_command(scenario: Scenarios, capfd: pytest.CaptureFixture[str]) -> None:
    recorded = scenario()
    recorded.signal("SIGTERM", "kill", "sleep", "children")
    recorded.end(0)
    store = ("--store", recorded.store)
    lines = run(capfd, "export", "--format", "jsonl", *store).splitlines()
    types = [json.loads(line)["event_type"] for line in lines]
    assert types == ["session_started", "signal_sent", "session_ended"]
    metrics = run(capfd, "export", "--format", "prom", *store)
    assert (
        'sigwrap_signals_total{signal="SIGTERM",target_type="children",decision="audit",'
        'platform="linux"} 1'
    ) in metrics
    assert run_app(["export", *store]) == 125
    assert "--format" in capfd.readouterr().err
