"""The page in a real browser: what it shows, what its reader can do, and what it never does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.events import Event
from sigwrap.report.check.verify import verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.documents import report_document
from sigwrap.report.forms.page import EventRows, Row, html_page
from sigwrap.report.forms.verdict import News, Verdict, verdict
from tests.report.conftest import STARTED_NS, Scenario
from tests.support.browser import CHROMIUM, Browser, Tab

_missing = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


def needs_chromium(test: Callable[..., None]) -> Any:
    return pytest.mark.tier("ci")(_missing(test))


FIVE_MEGABYTES = 5_000_000
WELL = Verdict("exit 0 after 2.00 s, exited", News.GOOD)
OPEN = Verdict("running for 2.00 s so far", News.OPEN)
BADLY = Verdict("exit 3 after 2.00 s, exited", News.BAD)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def recorded(scenario: Callable[..., Scenario]) -> Scenario:
    """npm runs sh, which runs git and make; a push and a signal are denied."""
    log = scenario()
    log.execute(10, 1, "npm", "start")
    log.execute(11, 10, "sh", "-c", "build && push")
    log.execute(12, 11, "make", "all")
    log.exit(12)
    push: dict[str, Any] = {
        "path": "/usr/bin/git",
        "argv": ["git", "push", "--force"],
        "ppid": 11,
        "depth": 2,
        "decision": "deny",
        "rule_name": "force-push",
        "message": "forced pushes are left to people",
    }
    log.add("exec_denied", 13, **push)
    log.add("exec_denied", 14, **push)
    log.signal("SIGTERM", "sh", "node", "user")
    log.add("interrupt_received", 1, signal=2, signal_name="SIGINT", sender_place="nobody")
    log.exit(11, None, "SIGKILL")
    log.exit(10, 1)
    log.end(130, reason="interrupted by Ctrl+C")
    return log


PUSH = 6  # the event in which git push is denied first


def written(log: Scenario, **different: Any) -> Path:
    fold, rows = Summary(), EventRows(STARTED_NS)

    def take(event: Event) -> None:
        rows.add(event)
        fold.add(event)

    verification = verify_session(log.session, None, and_also=take)
    summary = fold.end(Ending.NOT_CLEAN)
    document = {**report_document(summary, verification), **different}
    ended = verdict(summary, now_ns=STARTED_NS)
    return write(Path(log.store) / "report.html", document, rows.rows(), ended)


def write(file: Path, document: dict[str, Any], rows: list[Row], ended: Verdict = WELL) -> Path:
    with file.open("w", encoding="utf-8") as target:
        target.writelines(html_page(document, ended, rows))
    return file


def opened(browser: Browser, file: Path, *, fragment: str = "", **emulated: Any) -> Tab:
    tab = browser.tab(**emulated)
    tab.open(file.as_uri() + fragment)
    return tab


def count(tab: Tab, selector: str) -> int:
    found = tab.value(f"document.querySelectorAll({json.dumps(selector)}).length")
    assert isinstance(found, int)
    return found


def shown(tab: Tab, selector: str) -> str:
    found = tab.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? 'nothing'")
    assert isinstance(found, str)
    return found


def events_shown(tab: Tab, expected: str) -> None:
    """Filtering waits for a pause in typing."""
    tab.until(f"document.querySelector('#events-count').textContent === {json.dumps(expected)}")


def node(command: str) -> str:
    """A line of the tree, in a script."""
    return (
        "[...document.querySelectorAll('.node')].find((each) => "
        f"each.querySelector('.command').textContent.startsWith({json.dumps(command)}))"
    )


# What it shows


@needs_chromium
def test_it_makes_no_request_and_what_needs_attention_comes_first(
    browser: Browser, recorded: Scenario
) -> None:
    file = written(recorded)
    tab = opened(browser, file)
    assert shown(tab, "h1") == "npm start"
    assert shown(tab, ".verdict strong") == "Interrupted by Ctrl+C, exit 130, 2.50 s."
    assert "hash chain intact" in shown(tab, "#facts")
    assert not tab.value("document.querySelector('#needs-script').checkVisibility()")
    first = shown(tab, "#sections > section:first-child .finding")
    for part in ("denied", "git push --force", "event 6", "force-push", "left to people"):
        assert part in first
    assert "exit 1" in shown(tab, "#steps")
    assert shown(tab, "#events-note") == ""
    assert tab.complaints == []
    assert tab.requests == [file.as_uri()]
    tab = opened(browser, written(recorded, events=1_000_000))
    assert "Of 1,000,000 events, 12 are here" in shown(tab, "#events-note")


@needs_chromium
def test_every_command_line_of_a_group_and_each_folder_has_its_number(
    browser: Browser, scenario: Any
) -> None:
    log = scenario()
    for folder in ("/etc", "/usr", "/usr", "/a", "/b", "/c"):
        argv = ["rm", "-rf", folder]
        log.add("exec_denied", 13, path="/bin/rm", argv=argv, ppid=11, rule_name="r")
    for n in range(100):
        path = f"/p/node_modules/{n}/<b>/f"
        log.add("file_audited", 10, operation="create", path=path, rule_name="all")
    log.add("file_audited", 10, operation="delete", path="/p/x", rule_name="all")
    log.end()
    tab = opened(browser, written(log))
    assert shown(tab, ".finding .first-line .what") == "rm"
    lines = shown(tab, ".finding .lines").replace("\n", " ").split(" \u00d7 ")
    assert lines == ["1", "rm -rf /etc 2", "rm -rf /usr 1", "rm -rf /a 1", "rm -rf /b 1", "others"]
    assert tab.value("document.querySelector('.finding .lines').checkVisibility()")
    rows = [row.split("\t") for row in shown(tab, "#written tbody").splitlines()]
    assert rows == [["/p/node_modules/**", "100", "", "", ""], ["/p", "", "", "", "1"]]


@needs_chromium
def test_the_line_that_would_change_it_can_be_copied(browser: Browser, recorded: Scenario) -> None:
    file = written(recorded)
    line = "- {name: push, match: {command: git}, decision: allow}"
    attention = json.loads(_block(file.read_text(encoding="utf-8"), "report"))["attention"]
    attention["groups"][0]["suggestion"] = {"section": "command_rules", "line": line}
    tab = opened(browser, written(recorded, attention=attention))
    tab.click(".finding summary")
    tab.browser.tell("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    tab.tell("Page.bringToFront")
    tab.value(  # it says so for a moment only
        """new MutationObserver(([{ target }]) => { window.said ??= target.textContent; })
            .observe(document.querySelector('.suggestion button'), { childList: true })"""
    )
    tab.click(".suggestion button")
    tab.until("window.said === 'Copied'")
    assert tab.value("navigator.clipboard.readText()") == line


# What a reader does


def search(tab: Tab, typed: str, events: str) -> None:
    tab.press("/")
    tab.type(typed)
    events_shown(tab, events)


@needs_chromium
def test_typing_filters_and_names_what_the_filter_does_not_know(
    browser: Browser, recorded: Scenario
) -> None:
    tab = opened(browser, written(recorded))
    for typed, left, hint in (
        ("only:denied", 2, "2 events"),
        ("only:denid", 0, "0 events; only: doesn't know denid"),
        ("only:denied,x", 2, "2 events; only: doesn't know x"),
        ("rule:force-push", 2, "2 events"),
        ("rule:no-such", 0, "0 events; no event has the rule no-such"),
        ("rule:force pid:99", 0, "0 events"),
        ("pid:11", 2, "2 events"),
        ("type:process_exited", 3, "3 events"),
        ("-type:exec -type:exited", 4, "4 events"),
        ('"push --force" pid:14', 1, "1 event"),
        ("MAKE all", 1, "1 event"),
        ("no such thing", 0, "0 events"),
    ):
        search(tab, typed, f"{left} of 12")
        tab.until(f"document.querySelector('#found').textContent === {json.dumps(hint)}")
        assert count(tab, ".row") == left, typed
        tab.press("Escape", "Escape")  # it leaves the filter, too
        events_shown(tab, "12")


@needs_chromium
def test_retries_along_path_and_approval_requests_are_marked(
    browser: Browser, scenario: Any
) -> None:
    log = scenario()
    for n, folder in enumerate(("/usr/local/bin", "/usr/bin", "/bin")):
        rm: dict[str, Any] = {"path": f"{folder}/rm", "argv": ["rm", "x"], "ppid": 10}
        log.add("exec_denied", 9, **rm, rule_name="r", **({"retry": True} if n else {}))
    npm: dict[str, Any] = {"path": "/bin/npm", "argv": ["npm", "ci"], "ppid": 10, "rule_name": "r"}
    log.add("approval_requested", 11, approval_id="a1", what="npm ci")
    log.add("approval_denied", 11, approval_id="a1", what="npm ci")
    log.add("exec_denied", 11, **npm)
    log.add("exec_denied", 12, **{**npm, "argv": ["npm", "x"]})
    log.add("exec_allowed", 13, **npm, approval_id="a2")
    log.end()
    tab = opened(browser, written(log))
    assert "3 denied" in shown(tab, "#counts")
    assert count(tab, ".finding") == 4
    search(tab, "only:denied rm", "3 of 10")
    assert shown(tab, "#found") == "3 events, 2 of them again along PATH"
    said = tab.value("[...document.querySelectorAll('.row .said')].map((each) => each.innerText)")
    assert said == ["rm x", "again along PATH: rm x", "again along PATH: rm x"]
    tab.press("Escape", "Escape")
    search(tab, "only:asked", "4 of 10")
    assert count(tab, ".finding") == 2
    assert count(tab, ".node:not([hidden])") == count(tab, ".node")
    assert "only:asked" in shown(tab, "#tree-note")


@needs_chromium
def test_a_filter_holds_for_the_tree_and_for_what_needs_attention(
    browser: Browser, recorded: Scenario
) -> None:
    tab = opened(browser, written(recorded))
    assert shown(tab, "#processes .count").strip() == "5 processes"
    search(tab, "make", "1 of 12")
    assert shown(tab, "#processes .count").strip() == "3 of 5 processes"
    tab.press("Escape")
    tab.click(".node .badge.denied")
    events_shown(tab, "2 of 12")
    assert tab.value("document.querySelector('#filter').value") == "only:denied git"
    assert count(tab, ".finding") == 1
    assert count(tab, ".node:not([hidden])") == 3  # with what it is below


@needs_chromium
def test_the_tree_is_folded_by_click_and_by_keyboard(browser: Browser, recorded: Scenario) -> None:
    tab = opened(browser, written(recorded))
    make_is_seen = f"{node('make')}.checkVisibility()"
    assert tab.value(make_is_seen)
    tab.click(".node:nth-child(2) .twist")
    assert not tab.value(make_is_seen)
    assert "below: 2 denied" in tab.value(f"{node('sh -c')}.innerText")
    tab.click(".node:nth-child(2) .twist")
    assert tab.value(make_is_seen)

    tab.click(".node:nth-child(1) .command")
    tab.press("j", "ArrowLeft")
    assert not tab.value(make_is_seen)
    assert tab.value(f"{node('sh -c')}.getAttribute('aria-expanded')") == "false"
    tab.press("ArrowRight")
    assert tab.value(make_is_seen)
    tab.press("k", "Enter")
    assert count(tab, ".node:not([hidden])") == 1


@needs_chromium
def test_a_click_jumps_to_an_event_that_is_filtered_away(
    browser: Browser, recorded: Scenario
) -> None:
    tab = opened(browser, written(recorded))
    search(tab, "git -pid:13", "1 of 12")
    tab.click(".finding .event-link")
    events_shown(tab, "12")
    assert shown(tab, ".row.selected .seq") == str(PUSH)
    assert tab.value("location.hash") == f"#e{PUSH}"
    assert "git push --force" in shown(tab, "#detail")


@needs_chromium
def test_an_address_opens_its_event_or_filters_or_says_that_there_is_none(
    browser: Browser, recorded: Scenario
) -> None:
    file = written(recorded)
    tab = opened(browser, file, fragment="#e4")
    assert shown(tab, ".row.selected .seq") == "4"
    assert tab.value(f"{node('make')}.getAttribute('aria-current')") == "true"
    tab.click("#processes .tools button")
    assert not tab.value(f"{node('make')}.checkVisibility()")
    tab.value("location.hash = '#e1'")
    tab.until("document.querySelector('.row.selected .seq').textContent === '1'")
    tab.value("location.hash = '#e4'")
    tab.until(f"{node('make')}.checkVisibility()")
    tab = opened(browser, file, fragment="#f=rule%3Aforce-push")
    events_shown(tab, "2 of 12")
    tab.press("Escape")
    tab.click(".finding .more .narrowing")
    events_shown(tab, "2 of 12")
    tab = opened(browser, file, fragment="#e4000")
    said = "Event 4000 is not among the 12 events"
    tab.until(f"document.querySelector('#toast').innerText.includes('{said}')")


@needs_chromium
def test_keys_and_the_timeline_walk_along_the_events(browser: Browser, recorded: Scenario) -> None:
    tab = opened(browser, written(recorded))
    tab.press("j", "j", "ArrowDown", "k")
    assert shown(tab, ".row.selected .seq") == "2"
    tab.press("n", "n", "n")
    assert shown(tab, ".row.selected .seq") == str(PUSH)
    tab.press("Enter")
    assert "force-push" in shown(tab, "#detail")
    tab.press("Escape")
    assert not tab.value("document.querySelector('#detail').checkVisibility()")
    tab.click(".bars .call")
    assert shown(tab, ".row.selected .seq") == "2"
    tab.click(".bars .tick.denied")
    assert shown(tab, ".row.selected .seq") == str(PUSH)
    tab.press("?")
    assert tab.value("document.querySelector('#help').open")
    tab.press("Escape")
    tab.until("!document.querySelector('#help').open")


# How it looks

CONTRASTS = """(() => {
    const part = (value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
    const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (color) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
        return paint.getImageData(0, 0, 1, 1).data; };
    const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    const behind = (each) => { for (; each; each = each.parentElement) {
        const color = rgb(getComputedStyle(each).backgroundColor); if (color[3] === 255) return color; }
        return [255, 255, 255]; };
    const texts = [...document.querySelectorAll('body *')].filter((each) => each.checkVisibility({ visibilityProperty: true }) &&
        [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
    return texts.map((each) => { const [a, b] = [light(rgb(getComputedStyle(each).color)), light(behind(each))];
        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), each.className, each.textContent.slice(0, 40)]; });
})()"""  # noqa: E501 - a script of another language


@needs_chromium
def test_it_is_light_or_dark_as_chosen_and_every_text_stands_out_from_what_is_behind_it(
    browser: Browser, recorded: Scenario
) -> None:
    tab = opened(browser, written(recorded), dark=False, fragment=f"#e{PUSH}")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.value(ground)
    for is_dark in (False, True):
        tab.emulate(1280, 900, dark=is_dark)
        tab.until(f"({ground} !== {json.dumps(light)}) === {json.dumps(is_dark)}")
        tab.press("?")
        contrasts = tab.value(CONTRASTS)
        assert len(contrasts) > 100
        assert [each for each in contrasts if each[0] < 4.5] == []
        tab.press("Escape")
    dark = tab.value(ground)
    tab.click("#theme")
    assert tab.value(ground) == light
    tab.press("t")
    assert tab.value(ground) == dark
    tab.value("localStorage.clear()")


@needs_chromium
@pytest.mark.parametrize("width", [360, 800, 2400])
def test_it_is_never_wider_than_the_window(
    browser: Browser, recorded: Scenario, width: int
) -> None:
    recorded_width = "document.documentElement.scrollWidth"
    tab = opened(browser, written(recorded), width=width, height=740, fragment=f"#e{PUSH}")
    assert tab.value(recorded_width) == width
    tab.value(f"location.hash = '#f=rule%3A{'w' * 300}%20only%3A{'w' * 300}'")
    tab.until("document.querySelector('#found').textContent.includes('no event has the rule')")
    assert tab.value(recorded_width) == width
    tab.press("?")
    assert tab.value(recorded_width) == width


@needs_chromium
def test_paper_gets_the_events_too(browser: Browser, recorded: Scenario) -> None:
    tab = opened(browser, written(recorded))
    tab.value("addEventListener('beforeprint', () => { window.printed = 1 })")
    assert tab.tell("Page.printToPDF")["data"].startswith("JVBERi0")  # %PDF-
    assert tab.value("window.printed") == 1
    assert count(tab, "#printed li") == 12


# What it never does

BAD = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1"><!--'
STRANGE = "a\x00b\x1b[31m\u202egnp.exe\udcff\u2028"


@needs_chromium
def test_what_a_hostile_session_says_is_text(
    browser: Browser, scenario: Callable[..., Scenario]
) -> None:
    log = scenario()
    log.execute(10, 1, BAD, STRANGE, "x" * 1_000_000)
    log.execute(11, 10, *["w"] * 10_000)
    log.add(
        "exec_denied", 12, path=BAD, argv=[BAD, STRANGE], ppid=10, decision="deny", rule_name=BAD
    )
    log.add("exec_denied", 13, path=None, argv="no list", ppid=[], decision={}, rule_name=[BAD])
    log.signal(BAD, STRANGE, BAD, BAD)
    log.add("interrupt_received", 1, signal_name=BAD, sender_cmd=STRANGE, sender_pid=BAD)
    log.add("limit_near", 1, limit=BAD, used=1e308, maximum=-(1 << 70))
    log.exit(10, None, BAD)
    log.end(0, reason=BAD)
    session = {"command": [BAD, STRANGE], "name": BAD, "host": {"a": [BAD]}, "user": 7}
    session |= {"__proto__": BAD, "missing": BAD, "environment_removed": [[BAD], 1]}
    file = written(log, session=session, by_type={"__proto__": 1, BAD: 2, STRANGE: 3})
    tab = opened(browser, file, fragment="#e4", width=360, height=740)
    assert tab.complaints == []
    assert tab.requests == [file.as_uri()]
    assert tab.value("window.pwned") is None
    assert count(tab, "img") == 0 and count(tab, "script:not([type])") == 1
    said = tab.value("document.body.textContent")
    assert "<img src=x" in said and "\\u202egnp.exe\\xff\\u2028" in said
    seen = tab.value("document.body.innerText")
    assert not set(seen) & set("\x00\x1b\u202e\u2028\udcff")
    assert tab.value("document.documentElement.scrollWidth") == 360


@needs_chromium
def test_no_other_script_runs_in_it(browser: Browser, recorded: Scenario) -> None:
    tab = opened(browser, written(recorded))
    tab.value(
        "document.body.append(Object.assign(document.createElement('script'),"
        " { textContent: 'window.ran = 1' }))"
    )
    assert tab.value("window.ran") is None
    tab.until("true")
    assert "Content Security Policy" in "".join(tab.complaints)
    tab.value("fetch('https://localhost:1/').catch(() => {})")
    assert "connect-src" in "".join(tab.complaints) or "default-src" in "".join(tab.complaints)


@needs_chromium
def test_a_long_session_opens_and_filters_without_a_node_for_every_event(
    browser: Browser, tmp_path: Path, recorded: Scenario
) -> None:
    """20,000 events and a thousand lines of the tree."""
    document = json.loads(_block(written(recorded).read_text(encoding="utf-8"), "report"))
    line = {**document["processes"]["tree"][0]}
    lines = [
        {**line, "depth": at % 40, "argv": ["node", f"--part={at}", "w" * 300], "first_pid": at}
        for at in range(1_000)
    ]
    document["processes"]["tree"] = lines
    document["session"]["command"] = ["npm", "start"]
    rows: list[Row] = [
        (
            at + 1,
            at * 1_000_000,
            "exec_allowed",
            at,
            "allowed",
            f"run {at} " + "w" * 390,
            "r",
            "c",
            0,
        )
        for at in range(20_000)
    ]
    file = write(tmp_path / "long.html", document, rows)
    assert file.stat().st_size < FIVE_MEGABYTES
    tab = opened(browser, file)
    events_shown(tab, "20,000")
    assert count(tab, ".row") < 100
    search(tab, '"run 1999', "11 of 20,000")
    tab.press("Escape")
    tab.value("location.hash = '#e19000'")
    tab.until("document.querySelector('.row.selected .seq')?.textContent === '19000'")
    assert count(tab, ".row") < 100


# What is written, whatever a log holds

INTACT = {"outcome": "intact", "keyed": True}
BROKEN = {"outcome": "broken", "problem": "its hash is another one", "row": 7}
UNCHECKED = {"outcome": "unchecked", "row": None, "problem": "there is no key"}


@pytest.mark.parametrize(
    ("verification", "ended", "tone", "said"),
    [
        (None, WELL, "good", ""),
        (None, OPEN, "open", ""),
        (None, BADLY, "bad", ""),
        (INTACT, WELL, "good", ""),
        (INTACT, BADLY, "bad", ""),
        (BROKEN, OPEN, "bad", "Log NOT INTACT: row 7: its hash is another one. "),
        (UNCHECKED, WELL, "bad", "Log not checked: there is no key. "),
    ],
)
def test_the_verdict_begins_with_a_log_that_is_not_intact(
    verification: dict[str, Any] | None, ended: Verdict, tone: str, said: str
) -> None:
    whole = "".join(html_page({"verification": verification}, ended, []))
    first, _, more = ended.sentence.partition(". ")
    shown = f"{said}{first.rstrip('.')}."
    assert f'<p class="verdict {tone}"><strong>{shown}</strong> {more}</p>' in whole


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=30)
    | st.sampled_from([BAD, STRANGE]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def _block(written_page: str, block_id: str) -> str:
    found = re.findall(
        rf'<script type="application/json" id="{block_id}">(.*?)</script>', written_page, re.DOTALL
    )
    assert len(found) == 1
    assert isinstance(found[0], str)
    return found[0]


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, each in value.items():
                yield name
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


@given(
    session=st.dictionaries(st.text(max_size=8), anything, max_size=5),
    command=anything,
    reason=anything,
    said=anything,
)
def test_any_session_becomes_json_that_ends_nothing_and_can_be_seen(
    session: dict[str, Any], command: Any, reason: Any, said: Any
) -> None:
    document = {
        "session": {**session, "command": command},
        "ending": "ended",
        "exit_status": reason,
        "reason": reason,
        "verification": {"outcome": "broken", "problem": reason, "row": 3},
        "incidents": {"found": [{"text": said}]},
        "failures": {"top": [{"argv": command, "exit_code": reason}]},
        "processes": {"tree": [{"argv": command, "depth": 0}]},
    }
    rows: list[Row] = [(1, 0, "t", 1, "", said, said, said, 3)] * 2
    whole = "".join(html_page(document, BADLY, rows))
    whole.encode()
    assert "<img" not in whole
    for block_id in ("report", "events"):
        block = _block(whole, block_id)
        assert "<" not in block
        assert all(each.isprintable() for each in _texts(json.loads(block, parse_constant=_fail)))
    assert whole.count("<script") == 3


def _fail(constant: str) -> None:
    raise AssertionError(f"no JSON: {constant}")
