from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from sigwrap.events import Event
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.documents import report_document
from sigwrap.report.forms.markdown import render_markdown
from sigwrap.report.forms.page import html_page
from sigwrap.report.forms.text import Page, render_text
from sigwrap.report.forms.verdict import News, verdict
from tests.report.conftest import SECOND, STARTED_NS, Scenarios, summarise

NOW_NS = STARTED_NS + 90 * SECOND
RUNNING = "Running for 1 min 30 s so far"
INTERRUPTED = "Interrupted by Ctrl+C, exit {}, 2.50 s"
NO_END = "Did not end cleanly: sigwrap was killed or could not write the log, 3.00 s into the run"
MOMENT = "State after event 4, 3.00 s into the run"
STOPPED = ", stopped since 2025-11-21 06:03:22 UTC by agent signal SIGSTOP from ann"


@pytest.fixture
def summary(scenario: Scenarios) -> Callable[..., Summary]:
    def make(ending: Ending, exit_status: int | None, *, stopped: bool) -> Summary:
        log = scenario()
        log.execute(10, 1, "npm")
        log.add("agent_signal", 10, signal="SIGSTOP", source="ann", outcome="delivered")
        if stopped:
            log.add("tree_frozen", 10, processes=1, held=0)
        else:
            log.execute(11, 10, "node")
        if exit_status is not None:
            log.end(exit_status, reason="interrupted by Ctrl+C")
        return summarise(log, ending)

    return make


@pytest.mark.parametrize(
    ("ending", "exit_status", "stopped", "sentence", "news"),
    [
        (Ending.NOT_CLEAN, 130, False, INTERRUPTED.format(130), News.BAD),
        (Ending.NOT_CLEAN, 0, False, INTERRUPTED.format(0), News.GOOD),
        (Ending.RUNNING, None, False, RUNNING, News.OPEN),
        (Ending.RUNNING, None, True, RUNNING + STOPPED, News.OPEN),
        (Ending.MOMENT, None, False, MOMENT, News.OPEN),
        (Ending.MOMENT, None, True, MOMENT + STOPPED, News.OPEN),
        (Ending.NOT_CLEAN, None, True, NO_END, News.BAD),
    ],
)
def test_every_form_says_the_same_of_how_a_session_ended(
    summary: Callable[..., Summary],
    ending: Ending,
    exit_status: int | None,
    stopped: bool,
    sentence: str,
    news: News,
) -> None:
    made = summary(ending, exit_status, stopped=stopped)
    ended = verdict(made, now_ns=NOW_NS, utc=True)
    sentence += ". Nothing was denied."
    assert ended == (sentence, news)
    how = Page(utc=True, now_ns=NOW_NS)
    assert render_text(made, None, how).partition("\n")[0] == sentence
    bold = render_markdown(made, None, how).split("\n")[2]
    assert re.sub(r"\\(.)", r"\1", bold) == f"**{sentence}**"
    first, _, more = sentence.partition(". ")
    assert f"<strong>{first}.</strong> {more}</p>" in "".join(
        html_page(report_document(made), ended, [])
    )


def test_a_log_of_hooks_says_how_many_tool_calls_were_judged() -> None:
    fold = Summary()
    fold.add(Event(1, 1, "session_started", 0, {"kind": "hook", "command": ["sigwrap"]}, ""))
    for seq, answer in enumerate(("no opinion", "ask", "deny", "deny"), 2):
        payload = {"tool": "Bash", "what": f"make {seq}", "answer": answer, "reason": "why"}
        fold.add(Event(seq, seq, "tool_call_judged", 0, payload, ""))
    summary = fold.end(Ending.HOOKS)
    said = "Hooks judged 4 tool calls of one conversation: 2 denied, 1 left to the user."
    assert verdict(summary, now_ns=NOW_NS) == (said, News.OPEN)
    text = render_text(summary, None, Page(utc=True, now_ns=NOW_NS))
    assert "\n  left to the user  Bash: make 3  (why)\n  denied  Bash: make 4  (why)\n" in text


FILES = """\
version: 1
name: mine
file_rules:
  - name: here
    paths: ["${PROJECT_ROOT}", /tmp]
    operations: [write, create, delete]
    decision: allow
%s
  - {name: elsewhere, paths: [/**], operations: [write, create, delete], decision: deny}
"""
CACHE = "  - {name: cache, paths: [/var/cache], operations: [write], decision: allow}"


@pytest.mark.parametrize(
    ("rules", "capabilities", "more", "said"),
    [
        (FILES % "", ["file_wall"], {}, "outside the project and temporary directories."),
        (
            FILES % CACHE,
            ["file_wall"],
            {},
            "the other paths that policy mine allows.",
        ),
        (FILES % "", [], {}, ""),
        ("version: 1\nname: mine\n", ["file_wall"], {}, ""),
        ("version: 1\nname: mine\n", ["file_wall"], {"policy_sources": 3}, ""),
    ],
)
def test_what_could_not_be_changed_is_said_only_where_the_kernel_enforced_it(
    rules: str, capabilities: list[str], more: dict[str, object], said: str
) -> None:
    started = {
        "policy_sources": [{"name": "p.yaml", "text": rules}],
        "policy_variables": {"PROJECT_ROOT": "/p", "HOME": "/home/u", "TMPDIR": "/tmp"},
        "capabilities": capabilities,
        **more,
    }
    fold = Summary()
    fold.add(Event(1, 1, "session_started", 0, started, ""))
    tcp = {"direction": "connect", "protocol": "tcp", "destination": "example.com:443"}
    fold.add(Event(2, 2, "connection_allowed", 7, tcp, ""))
    sentence = verdict(fold.end(Ending.RUNNING), now_ns=NOW_NS).sentence
    assert ("Nothing could be changed" in sentence) == bool(said)
    assert said in sentence
    # A server of the user may do what the command cannot.
    fold.add(Event(3, 3, "connection_audited", 7, {**tcp, "destination": "unix:/run/bus"}, ""))
    sentence = verdict(fold.end(Ending.RUNNING), now_ns=NOW_NS).sentence
    assert "Nothing could be changed" not in sentence
    judged = {"tool": "Read", "what": "read /x", "answer": "deny"}
    fold.add(Event(4, 4, "tool_call_judged", 7, judged, ""))
    sentence = verdict(fold.end(Ending.RUNNING), now_ns=NOW_NS).sentence
    assert ". Hooks denied 1 tool call." in sentence
