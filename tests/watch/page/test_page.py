"""The page in a real browser: what it shows, what its user can do, and what it never does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.report.forms.test_page import CONTRASTS
from tests.support.browser import CHROMIUM, Browser, Tab
from tests.watch.page.conftest import Served

pytestmark = [
    pytest.mark.tier("ci"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

SESSION = {"id": "s1", "name": "build", "command": ["claude", "-p", "fix it"], "last": "run make"}
OTHER = {"id": "s2", "command": ["npm", "test"], "state": "ended", "ended": "exited with 1"}
PUSH = {"id": "q1", "runs": "/usr/bin/git"}
SAID_OF_PUSH = (
    *("build", "node (4711) wants to run", "git push --force", "/usr/bin/git"),
    *("/home/me/project", "ask-push: pushes are looked at", "mine", "expires in 4:"),
)
CLEAN = {"id": "q2", "what": "rm -rf build", "runs": "/usr/bin/rm", "may_always": False}


@pytest.fixture
def opened(browser: Browser, serve: Callable[..., Served]) -> Callable[..., tuple[Served, Tab]]:
    """The page, let in by its address, once it has been told of this board."""

    def open_it(board: dict[str, Any], **different: Any) -> tuple[Served, Tab]:
        served = serve(tick_s=0.01)
        served.tell(**board)
        tab = browser.tab(**different)
        tab.tell("Page.navigate", url=f"http://{served.host}{served.entry}")
        tab.until("document.querySelector('#state')?.textContent.includes('session')")
        return served, tab

    return open_it


Opened = Callable[..., tuple[Served, Tab]]


def text(tab: Tab, selector: str) -> str:
    found = tab.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? 'nothing'")
    assert isinstance(found, str)
    return found


def count(tab: Tab, selector: str) -> int:
    found = tab.value(f"document.querySelectorAll({json.dumps(selector)}).length")
    assert isinstance(found, int)
    return found


def may_answer(tab: Tab, number: int) -> None:
    """Once what has just come is old enough."""
    tab.until(f"document.querySelector('.question:nth-child({number}) .yes')?.disabled === false")


def answers(number: int, which: int) -> str:
    return f".question:nth-child({number}) .answers button:nth-child({which})"


def test_what_one_decides_by_is_shown_and_nothing_is_asked_of_another_host(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION, OTHER], "waiting": [PUSH, CLEAN]})
    assert tab.value("document.title") == "(2) sigwrap"
    shown = text(tab, ".question")
    for said in SAID_OF_PUSH:
        assert said in shown
    assert text(tab, ".session .command") == "claude -p 'fix it'"
    assert "exited with 1" in text(tab, ".session:nth-child(2)")
    assert tab.complaints == []
    assert tab.value("location.pathname") == "/"
    assert all(each.startswith(f"http://{served.host}/") for each in tab.requests)
    tab.value("fetch('https://localhost:1/').catch(() => {})")
    assert "connect-src" in "".join(tab.complaints)
    tab.value(
        "document.body.append(Object.assign(document.createElement('script'),"
        " { textContent: 'window.ran = 1' }))"
    )
    assert tab.value("window.ran") is None


def test_a_click_says_yes(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH, CLEAN]})
    may_answer(tab, 1)
    tab.click(answers(1, 1))
    assert served.did() == ["approve", "s1", "q1", False]
    tab.until("document.querySelector('#toast').textContent === 'approve: done'")
    assert count(tab, answers(2, 4)) == 0  # may_always is false: no such button


def test_yes_for_the_session(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH]})
    may_answer(tab, 1)
    tab.click(answers(1, 2))
    assert served.did() == ["approve", "s1", "q1", True]


def test_no_with_a_message(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH]})
    may_answer(tab, 1)
    tab.click(answers(1, 4))
    tab.until("document.activeElement.id === 'ask-text'")
    tab.type("not on main")
    tab.press("Enter")
    assert served.did() == ["deny", "s1", "q1", "not on main"]


def test_keys_answer_the_question_that_is_marked(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH, CLEAN]})
    may_answer(tab, 2)
    tab.press("y")  # none is marked
    tab.press("j", "j", "k", "ArrowDown")
    assert "rm -rf" in text(tab, ".question[aria-current]")
    tab.press("a")  # which may not be
    tab.until("document.querySelector('#toast').textContent.includes('approved once only')")
    tab.press("n")
    assert served.did() == ["deny", "s1", "q2", ""]
    tab.until("document.querySelector('.question[aria-current] .what')?.innerText.includes('git')")
    may_answer(tab, 1)  # the other one is marked, and has its while to be read
    tab.press("m")
    tab.until("document.querySelector('#ask').open")
    # Typed on, as it were: it was meant for the dialog. However slow the machine is.
    tab.value(
        """document.querySelector('#ask').addEventListener('close', () => {
            const key = new KeyboardEvent('keydown', { key: 'y', bubbles: true, cancelable: true });
            window.isMeantForThePage = !document.activeElement.dispatchEvent(key);
        })"""
    )
    tab.press("Escape")
    tab.until("window.isMeantForThePage === false")
    tab.value("new Promise((done) => setTimeout(done, 1100))")  # then it isn't any more
    tab.press("n")
    assert served.did() == ["deny", "s1", "q1", ""]


def test_a_question_that_has_just_come_or_moved_can_t_be_answered(opened: Opened) -> None:
    """A click that was meant for something else at that place."""
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH]})
    may_answer(tab, 1)
    watch = """addEventListener('click', (event) => { window.at = event.target.disabled }, true);
        new MutationObserver(() => document.querySelectorAll('.question').length === 2 &&
            (window.cameDisabled ??= document.querySelector('.question:nth-child(2) .yes').disabled)
        ).observe(document.querySelector('#waiting'), { childList: true })"""
    tab.value(watch)
    served.tell(sessions=[SESSION], waiting=[PUSH, CLEAN])
    tab.until("window.cameDisabled === true")
    may_answer(tab, 2)
    # A banner pushes everything down; then the yes below what was meant is refused.
    tab.value(
        """(() => { const yes = document.querySelector('.question:nth-child(1) .yes');
            document.querySelector('#banner').hidden = false; yes.click();
            window.isRefused = yes.disabled; })()"""
    )
    assert tab.value("window.isRefused")
    may_answer(tab, 1)
    tab.click(answers(1, 3))
    assert served.did() == ["deny", "s1", "q1", ""]  # and no yes before


def test_what_is_over_keeps_its_place_under_the_pointer(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH, CLEAN]})
    may_answer(tab, 2)
    box = "document.querySelector('.question:last-child').getBoundingClientRect().top"
    before = tab.value(box)
    x, y = tab.value(
        "(() => { const box = document.querySelector('.question:last-child .yes')"
        ".getBoundingClientRect(); return [box.x + 5, box.y + 5]; })()"
    )
    tab.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    served.tell(sessions=[SESSION], waiting=[CLEAN])
    tab.until("document.querySelector('.question.over') !== null")
    assert tab.value(box) == before
    assert tab.value("document.title") == "(1) sigwrap"
    tab.tell("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    tab.until("document.querySelectorAll('.question').length === 1")


def test_new_questions_are_spoken_and_counted_with_the_deadline_that_was_told_last(
    opened: Opened,
) -> None:
    served, tab = opened({"sessions": [SESSION]})
    assert tab.value("document.title") == "sigwrap"
    served.tell(sessions=[SESSION], waiting=[PUSH])
    tab.until("document.title === '(1) sigwrap'")
    assert "git push --force" in text(tab, "#told")
    assert tab.value("document.querySelector('#told').getAttribute('aria-live')") == "assertive"
    served.tell(sessions=[SESSION], waiting=[])
    tab.until("document.title === 'sigwrap'")
    tab.until("!document.querySelector('#nothing-waits').hidden")
    served.tell(sessions=[SESSION], waiting=[{**PUSH, "left_s": 20}])
    tab.until("document.querySelector('.left')?.classList.contains('soon')")
    served.tell(sessions=[SESSION], waiting=[{**PUSH, "left_s": 280}])
    tab.until("/^expires in 4:\\d\\d$/.test(document.querySelector('.left').textContent)")


def test_what_stops_one_session_or_all_asks_once(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION, OTHER]})
    assert not tab.value("document.querySelector('.session:nth-child(2) .small').checkVisibility()")
    tab.click(".session .small")
    tab.until("document.querySelector('#ask').open")
    assert "claude -p" in text(tab, "#ask-words")
    tab.click("#ask-yes")
    assert served.did() == ["interrupt", "s1"]
    tab.until("!document.querySelector('#ask').open")
    tab.click("#red")
    tab.until("document.querySelector('#ask').open")
    assert tab.value("document.activeElement.id") == "ask-text"
    tab.press("Escape")
    tab.until("!document.querySelector('#ask').open")
    tab.click("#red")
    tab.type("it deletes")
    tab.press("Enter")  # goes on to the button, and does nothing yet
    assert tab.value("document.activeElement.id") == "ask-yes"
    assert tab.value("document.querySelector('#ask').open")
    tab.press("Enter")
    assert served.did() == ["kill_all", "it deletes"]


def test_the_banner_tells_of_the_kill_switch_and_lifts_it(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION]})
    assert not tab.value("document.querySelector('#banner').checkVisibility()")
    switch = {"reason": "it deletes", "by": "me on host"}
    served.tell(sessions=[OTHER], killswitch=switch)
    tab.until("document.querySelector('#banner').checkVisibility()")
    assert "by me on host: it deletes" in text(tab, "#banner")
    assert tab.value("document.querySelector('#red').disabled")
    tab.click("#lift")
    tab.until("document.querySelector('#ask').open")
    tab.click("#ask-yes")
    assert served.did() == ["lift"]
    served.tell(sessions=[OTHER])
    tab.until("!document.querySelector('#banner').checkVisibility()")


@pytest.mark.tier("all")
def test_events_of_the_chosen_session_are_filtered(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION, OTHER]})
    served.tell(lines=["s1", [["allowed", "run make"], ["denied", "git push: no"]]])
    served.tell(lines=["s2", [["allowed", "run npm"]]])
    tab.until("document.querySelectorAll('.row').length === 2")
    tab.press("/")
    tab.type("PUSH")
    tab.until("document.querySelectorAll('.row').length === 1")
    assert "1 of the last 2 match" in text(tab, "#events-note")
    tab.press("Escape")
    tab.value(
        """(() => { document.querySelector('#filter').value = '';
            const outcome = document.querySelector('#outcome'); outcome.value = 'allowed';
            outcome.dispatchEvent(new Event('change')); })()"""
    )
    tab.until("document.querySelector('.row .said').textContent === 'run make'")
    tab.click(".session:nth-child(2) .choose")
    tab.until("document.querySelector('.row .said')?.textContent === 'run npm'")
    assert text(tab, "#events-of") == "of s2"


BAD = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1"><!--'
STRANGE = "a\x00b\x1b[31m\u202egnp.exe\u2028"


def test_what_a_hostile_session_says_is_text_and_fits_into_the_window(opened: Opened) -> None:
    bad = BAD + STRANGE
    question = {"id": "q1", "what": bad + "w" * 3000, "process": bad, "folder": bad, "message": bad,
                "runs": bad + "r" * 300, "loads": bad, "note": bad}  # fmt: skip
    session = {"id": "s1", "name": bad + "n" * 300, "command": [bad, "w" * 5000], "last": bad}
    served, tab = opened(
        {
            "sessions": [session, {**OTHER, "ended": bad}],
            "waiting": [question],
            "killswitch": {"reason": bad + "r" * 500, "by": bad + "b" * 100},
            "problems": [bad],
        },
        width=360,
        height=740,
    )
    served.tell(lines=["s1", [["denied", bad + "e" * 900], [bad, bad]]])
    tab.until("document.querySelectorAll('.row').length === 2")
    assert tab.complaints == []
    assert tab.value("window.pwned") is None
    assert count(tab, "img") == 0 and count(tab, "script") == 1
    seen = tab.value("document.body.innerText")
    assert "<img src=x" in seen and "\\u202egnp.exe" in seen
    assert not set(seen) & set("\x00\x1b\u202e\u2028")
    assert tab.value("document.documentElement.scrollWidth") == 360
    tab.press("?")
    assert tab.value("document.documentElement.scrollWidth") == 360
    assert tab.requests == [each for each in tab.requests if served.host in each]


def network(tab: Tab, *, offline: bool) -> None:
    unbounded = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    tab.tell("Network.emulateNetworkConditions", offline=offline, **unbounded)


def test_a_lost_connection_is_said_and_mended(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION], "waiting": [PUSH]})
    may_answer(tab, 1)
    network(tab, offline=True)
    served.tell(cut=True)
    tab.until("document.querySelector('#lost').checkVisibility()")
    assert tab.value("document.body.classList.contains('gone')")
    assert tab.value("document.querySelector('.question .yes').disabled")
    served.tell(sessions=[SESSION], waiting=[PUSH, CLEAN])
    network(tab, offline=False)
    tab.until("!document.querySelector('#lost').checkVisibility()")
    may_answer(tab, 2)
    may_answer(tab, 1)  # it has moved as well
    tab.click(answers(1, 1))
    assert served.did() == ["approve", "s1", "q1", False]


def test_when_the_server_has_ended_the_page_says_so(opened: Opened) -> None:
    served, tab = opened({"sessions": [SESSION]})
    assert served.end() == 0
    tab.until("document.querySelector('#lost').checkVisibility()")
    assert "start it again" in text(tab, "#lost")


def test_every_control_is_reached_by_tab(opened: Opened) -> None:
    _, tab = opened({"sessions": [SESSION], "waiting": [PUSH]})
    may_answer(tab, 1)
    reached = set()
    for _ in range(24):
        tab.press("Tab")
        reached.add(
            tab.value("document.activeElement.id || document.activeElement.textContent.trim()")
        )
    assert {"red", "help-button", "Approve once", "Approve for this session", "Deny",
            "Deny, say why…", "Stop…", "Report", "filter", "outcome",
            "list"} <= reached  # fmt: skip
    tab.press("?")
    assert tab.value("document.querySelector('#help').open")
    tab.press("Escape")
    tab.until("!document.querySelector('#help').open")


def test_every_text_stands_out_from_what_is_behind_it(opened: Opened) -> None:
    switch = {"reason": "r", "by": "b"}
    served, tab = opened(
        {
            "sessions": [SESSION, OTHER],
            "waiting": [PUSH, CLEAN],
            "killswitch": switch,
            "problems": ["a session doesn't answer"],
        }
    )
    outcomes = ("allowed", "audited", "approved", "redirected", "absorbed", "denied", "asked")
    served.tell(lines=["s1", [[outcome, "git push"] for outcome in outcomes]])
    tab.until("document.querySelectorAll('.row').length === 7")
    may_answer(tab, 2)
    tab.press("j", "?")
    contrasts = tab.value(CONTRASTS)
    assert len(contrasts) > 60
    weak = [each for each in contrasts if each[0] < 4.5]
    assert [each for each in weak if each[2] != "Stop everything"] == []  # it is disabled


def test_letters_from_right_to_left_change_no_order(opened: Opened) -> None:
    """A command line is read from left to right, whatever is in it."""
    word = "\u05d0\u05d1\u05d2"
    _, tab = opened(
        {"sessions": [SESSION], "waiting": [{"id": "q1", "what": f"rm {word} {word}/x"}]}
    )
    at = """(() => { const text = document.querySelector('.question .what').firstChild;
        const left = (at) => { const range = document.createRange(); range.setStart(text, at);
            range.setEnd(text, at + 1); return range.getBoundingClientRect().left; };
        return [...text.data].map((_, at) => left(at)); })()"""
    places = tab.value(at)
    assert places == sorted(places)
