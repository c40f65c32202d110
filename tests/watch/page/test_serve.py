"""`sigwrap serve` over real sessions: what is answered there, and who is refused."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import CHROMIUM, Browser, Tab
from tests.support.harness import PYTHON, REFUSED, Running, Sigwrap
from tests.support.terminal import hold_descriptor_count
from tests.support.waiting import PATIENCE_S, Reader, reader

PROGRAMS = Path(__file__).parents[1] / "programs"
CLIENT, HOARDS = str(PROGRAMS / "client.py"), str(PROGRAMS / "hoards.py")
ASKS = """
version: 1
name: asks
defaults: {command: audit, signal: allow}
command_rules:
  - {name: ask-first, commands: [uname], decision: approve, message: uname is looked at}
"""
pytestmark = pytest.mark.tier("ci")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


def serving(sigwrap: Sigwrap, *words: str) -> tuple[Running, str]:
    page = sigwrap.start("serve", *words)
    return page, reader(page.stdout).line().decode()


def asking(sigwrap: Sigwrap) -> Running:
    policy = sigwrap.folder / "asks.yaml"
    policy.write_text(ASKS)
    policy.chmod(0o644)
    return sigwrap.start("-p", str(policy), "--approvals", "control", "--", "/bin/uname", "-s")


def client(sigwrap: Sigwrap, address: str, *words: str) -> list[Any]:
    """Outside of all sessions, as the same user."""
    done = sigwrap.native(*PYTHON, CLIENT, address, *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def supervised(sigwrap: Sigwrap, address: str, *words: str) -> list[Any]:
    done = sigwrap.run("--no-report", "--", *PYTHON, CLIENT, address, *words)
    return [json.loads(line) for line in done.stdout.splitlines()]


def opened(browser: Browser, address: str) -> Tab:
    tab = browser.tab()
    tab.tell("Page.navigate", url=address)
    tab.until("document.querySelector('.question .yes')?.disabled === false")
    return tab


@needs_chromium
def test_a_yes_on_the_page_lets_the_command_run(sigwrap: Sigwrap, browser: Browser) -> None:
    _, address = serving(sigwrap)
    session = asking(sigwrap)
    tab = opened(browser, address)
    shown = tab.value("document.querySelector('.question').innerText")
    assert "/bin/uname -s" in shown and "ask-first: uname is looked at" in shown
    tab.click(".question .yes")
    assert session.wait(PATIENCE_S) == 0
    assert reader(session.stdout).rest() == b"Linux\n"
    assert sigwrap.events("approval_granted")
    tab.until("document.querySelector('.session .badge').textContent === 'ended'")


@needs_chromium
def test_a_session_is_stopped_and_its_report_is_apart(sigwrap: Sigwrap, browser: Browser) -> None:
    _, address = serving(sigwrap)
    session, _ = sigwrap.start_ready("--no-report", "--", "sh", "-c", "echo ready; read line")
    tab = browser.tab()
    tab.tell("Page.navigate", url=address)
    tab.until("document.querySelectorAll('.row').length > 0")
    tab.click(".session .small")
    tab.until("document.querySelector('#ask').open")
    tab.click("#ask-yes")
    assert session.wait(PATIENCE_S) == 130
    tab.until("document.querySelector('.session .badge').textContent === 'ended'")
    path = tab.value("document.querySelector('.session a').getAttribute('href')")
    tab.tell("Page.navigate", url=address.partition("/in/")[0] + path)
    # Its script runs.
    tab.until("origin === 'null' && document.querySelector('.row') !== null")
    tab.value("fetch('/killswitch/on', { method: 'POST' }).catch(() => {})")
    assert "Content Security Policy" in "".join(tab.complaints)


# Who is inside a session


def test_a_supervised_process_is_refused_whatever_it_presents(sigwrap: Sigwrap) -> None:
    page, address = serving(sigwrap)
    errors = reader(page.stderr)
    for far in ((), ("far",)):  # as it is, and forked away
        for status, said in supervised(sigwrap, address, *far, "in", "get", "/"):
            assert (status, "it is in a supervised session" in said) == ("403", True)
        errors.until(rb"the page refused .*client.py.*: it is in a supervised session")
    events = sigwrap.sealed_events("control_refused")
    assert {event.payload["inside_session"] for event in events} == {True}
    assert {"the page of sigwrap serve" in event.payload["reason"] for event in events} == {True}
    assert [status for status, _ in client(sigwrap, address, "in", "get", "/")] == ["303", "200"]


def test_a_browser_of_another_user_reads_who_may_open_the_page(alone: Sigwrap) -> None:
    page, address = serving(alone)
    other = Sigwrap(alone.folder, alone.store, 65534)
    [[status, said]] = client(other, address, "in")
    why = f"only uid {alone.user} may open this page, and this browser runs as uid 65534"
    assert status == "403" and f"the page refused this browser: {why};" in said
    reader(page.stderr).until(f"the page refused a process: {why};".encode())
    assert [status for status, _ in client(alone, address, "in")] == ["303"]


@pytest.fixture
def no_terminals() -> Iterator[None]:
    lock = hold_descriptor_count(fcntl.LOCK_EX)
    yield
    os.close(lock)


@pytest.mark.usefixtures("no_terminals")
def test_descriptors_that_are_hoarded_inside_keep_no_browser_out(sigwrap: Sigwrap) -> None:
    page, address = serving(sigwrap)
    session, _ = sigwrap.start_ready("--no-report", "--", *PYTHON, HOARDS, address)
    reader(page.stderr).until(rb"the page refused ")
    assert [status for status, _ in client(sigwrap, address, "in", "get", "/")] == ["303", "200"]
    session.terminate()
    session.wait(PATIENCE_S)


@pytest.mark.promise("serve")
def test_at_a_file_the_user_is_served_and_what_is_supervised_refused(
    sigwrap: Sigwrap, private: Path
) -> None:
    path = str(private / "page")
    page, printed = serving(sigwrap, "--socket", path)
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    reader(page.stderr).until(rb"ssh -N -L 8000:")
    address = f"http://unix:{path}/in/{printed.partition('/in/')[2]}"
    [(status, said), *_] = supervised(sigwrap, address, "in")
    assert (status, "it is in a supervised session" in said) == ("403", True)
    assert [status for status, _ in client(sigwrap, address, "in", "get", "/")] == ["303", "200"]


def test_a_file_that_isn_t_its_own_any_more_ends_it(sigwrap: Sigwrap, private: Path) -> None:
    """What opens it would see another's page."""
    path = private / "page"
    for is_replaced in (False, True):
        page, _ = serving(sigwrap, "--socket", str(path))
        path.unlink()
        fake = socket.socket(socket.AF_UNIX)
        if is_replaced:
            fake.bind(str(path))
        assert page.wait(PATIENCE_S) == REFUSED
        assert b"another program removed" in page.stderr.read()
        assert path.exists() == is_replaced
        fake.close()


def test_a_cookie_that_was_stolen_is_of_no_use_to_it(sigwrap: Sigwrap) -> None:
    """Another server on this host may receive it: cookies ignore ports."""
    _, address = serving(sigwrap)
    answered = _raw(address, "/in/" + address.partition("/in/")[2])
    cookie = answered.partition(b"Set-Cookie: ")[2].partition(b";")[0].decode()
    assert b"HTTP/1.1 200" in _raw(address, "/", cookie)
    steal = "import socket, sys; end = socket.create_connection(sys.argv[1].split(':'))\n"
    steal += "end.sendall(sys.argv[2].encode())\nprint(end.recv(1 << 16).decode())"
    place = address.removeprefix("http://").partition("/")[0]
    request = f"GET / HTTP/1.1\r\nHost: {place}\r\nCookie: {cookie}\r\n\r\n"
    done = sigwrap.run("--no-report", "--", *PYTHON, "-c", steal, place, request)
    assert done.stdout.startswith(b"HTTP/1.1 403") and b"token" not in done.stdout


def test_a_flood_of_supervised_processes_keeps_no_browser_out(sigwrap: Sigwrap) -> None:
    """Each connection is from a new process, which needs a search."""
    page, address = serving(sigwrap)
    place = address.removeprefix("http://").partition("/")[0]
    flood = (
        "import os, socket, sys\nprint('ready', flush=True)\n"
        "while True:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        end = socket.create_connection(sys.argv[1].split(':'))\n"
        "        end.recv(100); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
    )
    session = sigwrap.start("--no-report", "--", *PYTHON, "-c", flood, place)
    reader(session.stdout).until(rb"ready")
    reader(page.stderr).until(rb"and \d+ more since the last line")
    words = ["in"] + ["get", "/page.js"] * 20
    assert {status for status, _ in client(sigwrap, address, *words)} == {"303", "200"}
    session.send_signal(signal.SIGTERM)
    session.wait(PATIENCE_S)


def test_the_page_is_not_served_from_inside(sigwrap: Sigwrap) -> None:
    sigwrap_itself = [str(each) for each in sigwrap.line("serve")]
    done = sigwrap.run("--no-report", "--", *sigwrap_itself)
    assert done.returncode == REFUSED
    assert b"processes in a session can't serve the page" in done.stderr


# The kill switch, which ends all sessions of a user


def test_the_red_button_ends_every_session_until_it_is_lifted(alone: Sigwrap) -> None:
    _, address = serving(alone)
    session, _ = alone.start_ready("--no-report", "--", "sh", "-c", "echo ready; read line")
    on, off = '{"reason": "it deletes"}', "{}"
    orders = ("post", "/killswitch/on", on, "post", "/killswitch/off", off)
    [_, (status, said), (lifted, _)] = client(alone, address, "in", *orders)
    assert (status, lifted, "1 session ended" in said) == ("200", "200", True)
    assert session.wait(PATIENCE_S) != 0
    (ended,) = alone.events("session_ended")
    assert "it deletes" in str(ended.payload)
    assert alone.run("--no-report", "--", "true").returncode == 0


# The command


def test_the_address_is_printed_once_and_said_what_for(sigwrap: Sigwrap) -> None:
    page, address = serving(sigwrap)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/in/[0-9a-f]{32}", address)
    page.send_signal(signal.SIGINT)
    assert page.wait(PATIENCE_S) == 0
    assert page.stdout.read() == b""
    assert page.stderr.read().count(b"\n") == 1


def test_a_port_that_is_taken_is_said(sigwrap: Sigwrap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = sigwrap.run("serve", "--port", port)
    assert done.returncode == REFUSED
    assert f"port {port} is in use".encode() in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "65536"], b"65536 is not in the range"),
        (["--socket", "/tmp/page"], b"other users may write to its directory"),
        (["--socket", "/nowhere/page"], b"No such file or directory"),
        (["--socket", "x" * 120], b"AF_UNIX path too long"),
        (["--socket", "page", "--port", "1"], b"can't be combined"),
        (["--socket", "page", "--open"], b"--socket can't be combined with"),
    ],
)
def test_what_can_t_be_served_is_said(sigwrap: Sigwrap, words: list[str], said: bytes) -> None:
    done = sigwrap.run("serve", *words)
    assert done.returncode == REFUSED
    assert said in done.stderr and b"Traceback" not in done.stderr


def test_a_file_that_is_left_over_is_replaced_and_another_is_kept(
    sigwrap: Sigwrap, private: Path
) -> None:
    left = private / "left"
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(left))
    page, _ = serving(sigwrap, "--socket", str(left))
    again = sigwrap.run("serve", "--socket", str(left))
    assert again.returncode == REFUSED and b"the file exists" in again.stderr
    page.terminate()
    assert page.wait(PATIENCE_S) == 0
    assert not left.exists()
    left.write_text("mine")
    assert sigwrap.run("serve", "--socket", str(left)).returncode == REFUSED
    assert left.read_text() == "mine"


def test_it_is_opened_in_the_browser_that_one_has(sigwrap: Sigwrap) -> None:
    told = sigwrap.folder / "told"
    os.mkfifo(told)
    program = sigwrap.folder / "some-browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {told}\n')
    program.chmod(0o755)
    page = sigwrap.start("serve", "--open", env={"BROWSER": str(program)})
    fd = os.open(told, os.O_RDWR)
    assert Reader(fd).line() == reader(page.stdout).line()
    os.close(fd)


def _raw(address: str, path: str, cookie: str = "") -> bytes:
    """Send a request from this process."""
    host = address.removeprefix("http://").partition("/")[0]
    name, _, port = host.partition(":")
    received = b""
    with socket.create_connection((name, int(port))) as end:
        end.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
        while data := end.recv(1 << 16):
            received += data
    return received
