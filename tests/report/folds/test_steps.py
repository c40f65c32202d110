"""What the agent did: its tool calls in order, and what ran below each."""

from __future__ import annotations

from typing import Any

from sigwrap.events import Event, outcome
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.steps import STEPS_KEPT, Exec, Step, Steps
from sigwrap.report.folds.tree import command_line

AGENT = 10
WRAPPED = "eval 'make test' < /dev/null && pwd -P >| /tmp/claude-1-cwd"  # as Claude Code does


class Log:
    def __init__(self, *command: str, **more: Any) -> None:
        self.fold = Steps()
        self.seq = 0
        self.steps: dict[Any, Step] = {}
        self.fold.start({"command": list(command), "command_pid": AGENT, **more})

    def event(self, kind: str, pid: int, **payload: Any) -> Event:
        self.seq += 1
        return Event(self.seq, self.seq * 10**9, kind, pid, payload, "")

    def exec(self, pid: int, ppid: int, *argv: str, became: str = "allowed", **more: Any) -> None:
        event = self.event(f"exec_{became}", pid, ppid=ppid, argv=list(argv), **more)
        meant = as_meant(given := list(argv))
        known = (self.steps.get(each) for each in (pid, ppid, more.get("below")))
        below = more.get("below", 0)
        is_wrapped, became = meant is not given, outcome(event)
        run = Exec(event, ppid, below, meant, command_line(meant), is_wrapped, became)
        step = self.fold.exec(run, next(filter(None, known), None))
        if step is not None:
            self.steps[pid] = step

    def judged(self, tool: str, what: str, answer: str = "no opinion", **more: Any) -> None:
        payload = {"tool": tool, "what": what, "answer": answer, **more}
        self.fold.judge(self.event("tool_call_judged", 0, **payload), True)

    def exit(self, pid: int, code: int | None = 0, **more: Any) -> None:
        event = self.event("process_exited", pid, exit_code=code, **more)
        if (step := self.steps.pop(pid, None)) is not None:
            step.end(event)

    def result(self) -> Steps:
        self.fold.end(is_over=True)
        return self.fold

    def shown(self) -> list[str]:
        return [" ".join(each.split()) for each in self.result().lines(0, True)]


def test_children_of_a_command_are_its_steps_with_what_ran_below() -> None:
    log = Log("bash", "job.sh")
    log.exec(AGENT, 1, "bash", "job.sh")
    log.exec(11, AGENT, "sh", "-c", "ls && cat a")
    log.exec(12, 11, "ls")
    log.exit(12)
    log.exec(11, AGENT, "cat", "a")
    log.exit(11, 1)
    log.exec(13, 99, "make", below=AGENT)  # by a subshell
    log.exec(14, 13, "rm", "-rf", "/", became="denied")
    log.steps[13].deny("SIGTERM to init")
    log.exit(13, None, signal_name="SIGKILL")
    log.exec(15, AGENT, "nope", became="denied")
    log.exec(16, AGENT, "sleep", "9")
    assert log.shown() == [
        "+2.00 s exit 1 ls && cat a (ran ls, cat)",
        "+7.00 s killed by SIGKILL make (denied: rm -rf /; denied: SIGTERM to init)",
        "+10.00 s denied nope",
        "+11.00 s no end seen sleep 9",
    ]
    assert log.result().title == "What the command did (4 steps)"


def test_an_agents_own_commands_are_counted_beside_its_tool_calls() -> None:
    log = Log("node", "/usr/bin/claude", preset="claude")
    for pid in (20, 21):
        log.exec(pid, AGENT, "/usr/bin/git", "status")
        log.exit(pid)
    log.exec(22, AGENT, "bash", "-c", "true")
    log.exit(22)
    log.exec(23, AGENT, "rg", "x")
    log.exit(23, 2)
    assert log.shown() == [
        "+5.00 s ok true",
        "+7.00 s exit 2 rg x",
        "and 2 commands of the agent itself: git (2)",
    ]
    assert log.result().title == "What the agent did (2 tool calls)"


def test_a_tool_call_below_a_wrapper_is_a_step_of_its_own() -> None:
    log = Log("npx", "claude")
    log.exec(11, AGENT, "sh", "-c", "claude")
    log.exec(12, 11, "node", "claude")
    log.exec(13, 12, "bash", "-c", WRAPPED)
    log.exec(14, 13, "make", "test")
    log.exit(13)
    assert log.shown() == ["+1.00 s no end seen claude (ran node)", "+3.00 s ok make test"]
    assert log.result().by_agent


def test_a_hooks_decision_and_the_shell_that_follows_are_one_tool_call() -> None:
    log = Log("python3", "agent.py")
    log.judged("Read", "read /home/u/.ssh/id_rsa", "deny", reason="rule secrets")
    log.judged("Bash", "make test")
    log.judged("Bash", "npm install", "ask")
    log.exec(11, AGENT, "bash", "-c", "make test")
    log.exit(11, 2)
    assert log.shown() == [
        "+1.00 s denied Read: read /home/u/.ssh/id_rsa",
        "+2.00 s exit 2 Bash: make test",
        "+3.00 s left to the user Bash: npm install",
    ]
    assert [each.what for each in log.result().judged] == [
        "read /home/u/.ssh/id_rsa",
        "npm install",
    ]


def test_equal_steps_in_a_row_are_one_line_and_problems_are_not_hidden() -> None:
    log = Log("bash", "job.sh")
    for n in range(100):
        log.exec(100 + n, AGENT, "true")
        log.exit(100 + n, 0)
    assert log.shown() == ["+1.00 s ok true x100"]
    for n in range(100):
        log.exec(300 + n, AGENT, "step", str(n))
        log.exit(300 + n, int(n == 90))
    short = list(log.result().lines(0, False))
    assert any("exit 1    step 90" in line for line in short)
    assert len(short) < 20 and "more" in short[-1]


def test_any_number_of_steps_is_bounded() -> None:
    log = Log("bash", "job.sh")
    for pid in range(100, 100 + STEPS_KEPT + 50):
        log.exec(pid, AGENT, "x")
        log.exit(pid)
    found = log.result()
    assert (len(found.found), found.more) == (STEPS_KEPT, 50)
