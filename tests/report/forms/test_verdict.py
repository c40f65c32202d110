from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.documents import report_document
from sigwrap.report.forms.markdown import render_markdown
from sigwrap.report.forms.page import page
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
        page(report_document(made), ended, [])
    )
