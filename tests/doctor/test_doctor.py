"""The doctor's findings agree with what a run prints on the same machine."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sigwrap.doctor import items
from sigwrap.errors import DOCTOR
from sigwrap.log.catalog import list_sessions, open_session
from tests.support.harness import EXECS, IS_BINARY, PYTHON, REFUSED, UNDER_TEST, Sigwrap
from tests.support.programs import Library, needs
from tests.support.waiting import PATIENCE_S, await_that

SECCOMP, PTRACE, IOCTL, CREATE_RULESET = 317, 101, 16, 444
SET_FLAGS, WITH_KILLABLE_WAIT = 0x40082104, 8 | 32
pytestmark = pytest.mark.tier("ci")
NEEDS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

Line = list[str | bytes]
Confined = Callable[..., tuple[str, ...]]


class Said(NamedTuple):
    status: int
    items: dict[str, dict[str, Any]]
    text: dict[str, Any]

    def short(self) -> dict[str, str]:
        """Return the shortfalls that do not depend on the test machine."""
        elsewhere = {items.TERMINAL, items.CGROUP, items.USER_NAMESPACES, items.ACCELERATOR}
        return {
            name: each["level"]
            for name, each in self.items.items()
            if each["level"] not in ("ok", "unknown") and name not in elsewhere
        }


def ask(subject: Sigwrap, *before: str | bytes, **options: Any) -> Said:
    """Run the doctor behind the command `before`, which sets up the circumstances."""
    done = subject.native(*subject_line(subject, before, "doctor", "--json"), **options)
    assert done.stderr == b""
    document = json.loads(done.stdout)
    assert document["status"] == done.returncode
    assert [each["item"] for each in document["items"]] == list(items.ITEMS)
    left_nothing(subject)
    return Said(done.returncode, {each["item"]: each for each in document["items"]}, document)


def subject_line(subject: Sigwrap, before: tuple[str | bytes, ...], *words: str) -> Line:
    return [*before, *subject.line(*words)]


def run(subject: Sigwrap, *before: str | bytes) -> subprocess.CompletedProcess[bytes]:
    return subject.native(*subject_line(subject, before, "--no-report", "--", "true"))


def left_nothing(subject: Sigwrap) -> None:
    assert subject.alive() == []
    left = [path.name for path in subject.folder.iterdir()]
    assert not [name for name in left if name.startswith(("sigwrap-doctor", "_MEI"))]
    assert not subject.store.exists() or not list((subject.store / "sessions").glob("*"))


@pytest.fixture
def confined(library: Library) -> Confined:
    """Return a command that installs a seccomp filter by which one call fails."""
    folder = library.beside(Path(__file__).parents[1] / "process")

    def before(number: int, argument: int, code: int) -> tuple[str, ...]:
        return (*PYTHON, str(folder / "confined.py"), str(number), str(argument), str(code))

    return before


@pytest.mark.promise("doctor")
def test_on_this_machine(as_user: Sigwrap) -> None:
    """The machine has everything that the other tests need, as root and as a user."""
    said = ask(as_user)
    assert (said.status, said.short()) == (0, {})
    assert not as_user.store.exists()
    done = run(as_user)
    assert (done.returncode, done.stderr) == (0, b"")
    assert as_user.sealed_events("session_started")[0].payload["missing"] == []


def test_an_outer_filter_refuses_the_listener(as_user: Sigwrap, confined: Confined) -> None:
    before = confined(SECCOMP, 0, errno.EPERM)
    said, done = ask(as_user, *before), run(as_user, *before)
    assert said.status == done.returncode == REFUSED
    assert said.short() == {items.LISTENER: "fail", items.RUN: "fail"}
    (line,) = done.stderr.decode().splitlines()
    assert said.items[items.LISTENER]["a_run_says"] == line
    assert said.items[items.RUN]["a_run_says"] == line
    assert os.strerror(errno.EPERM) in line and DOCTOR in line
    assert said.text["verdict"] == "Runs are refused here: listener."


def test_ptrace_is_forbidden(sigwrap: Sigwrap, confined: Confined) -> None:
    before = confined(PTRACE, 0, errno.EPERM)
    said, done = ask(sigwrap, *before), run(sigwrap, *before)
    assert (said.status, done.returncode) == (REFUSED, 126)
    assert said.short() == {items.TRACING: "fail", items.RUN: "fail"}
    lines = done.stderr.decode().splitlines()
    assert said.items[items.TRACING]["a_run_says"] == lines[-1]
    assert said.items[items.RUN]["a_run_says"] == " / ".join(lines)
    assert DOCTOR in lines[-1]


def test_there_is_no_landlock(sigwrap: Sigwrap, confined: Confined) -> None:
    before = confined(CREATE_RULESET, 0, errno.ENOSYS)
    said, done = ask(sigwrap, *before), run(sigwrap, *before)
    assert (said.status, done.returncode) == (1, 0)
    expected = {
        items.SIGNAL_SANDBOX: "limited",
        items.FILE_SANDBOX: "limited",
        items.RUN: "limited",
    }
    assert {name: said.short().get(name) for name in expected} == expected
    assert said.items[items.FILE_SANDBOX]["a_run_says"] == done.stderr.decode().strip()
    missing = sigwrap.sealed_events("session_started")[0].payload["missing"]
    assert said.items[items.RUN]["found"] == f"true ran; missing: {'; '.join(missing)}"


@pytest.mark.parametrize(
    ("filtered", "item", "level"),
    [
        ((IOCTL, SET_FLAGS, errno.EINVAL), items.WAKE_UP, "note"),
        ((SECCOMP, WITH_KILLABLE_WAIT, errno.EINVAL), items.KILLABLE_WAIT, "limited"),
    ],
)
def test_an_older_kernel_does_with_less(
    sigwrap: Sigwrap, confined: Confined, filtered: tuple[int, int, int], item: str, level: str
) -> None:
    """A filter sees the lower half of an argument, which has all flags of the listener."""
    before = confined(*filtered)
    said, done = ask(sigwrap, *before), run(sigwrap, *before)
    assert said.short() == {item: level}
    assert (said.status, done.returncode) == (1 if level == "limited" else 0, 0)
    started = sigwrap.sealed_events("session_started")[0].payload
    assert ("waits_through_signals" in started["capabilities"]) == (item != items.KILLABLE_WAIT)


@needs("strace")
def test_a_tracer_follows_everything(sigwrap: Sigwrap) -> None:
    before = ("strace", "-f", "-qq", "-o", "/dev/null")
    said, done = ask(sigwrap, *before), run(sigwrap, *before)
    assert (said.status, done.returncode) == (1, 0)
    assert said.short() == {items.TRACING: "limited"}
    (event,) = sigwrap.sealed_events(*EXECS)
    assert event.payload["verified"] is False


@NEEDS_ROOT
@pytest.mark.skipif(IS_BINARY, reason="the bootloader has to unpack somewhere")
def test_only_the_store_may_be_written(sigwrap: Sigwrap) -> None:
    """In a hardened container, the test run has its log beside the store."""
    text = """
        for folder in /tmp /var/tmp /usr/tmp; do
            test -d $folder && mount --bind $folder $folder && mount -o remount,bind,ro $folder
        done
        mount --bind "$SIGWRAP_STORE" "$SIGWRAP_STORE"
        mount -o remount,bind,rw "$SIGWRAP_STORE"
        exec "$@"
    """
    sigwrap.store.mkdir()
    del sigwrap.env["TMPDIR"]
    said = ask(sigwrap, "unshare", "-m", "sh", "-c", text, "sh", cwd="/")
    assert (said.status, said.short()) == (0, {items.TEMPORARY: "note"})
    assert list(sigwrap.store.iterdir()) == []


@NEEDS_ROOT
def test_there_is_no_proc(sigwrap: Sigwrap) -> None:
    before = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "sh")
    said, done = ask(sigwrap, *before), run(sigwrap, *before)
    assert said.status == done.returncode == REFUSED
    assert said.short() == {items.PROC: "fail"}
    assert said.items[items.PROC]["a_run_says"] == done.stderr.decode().strip()
    assert said.items[items.LISTENER]["level"] == said.items[items.RUN]["level"] == "unknown"


@NEEDS_ROOT
def test_a_temporary_folder_without_code(sigwrap: Sigwrap) -> None:
    """An installed sigwrap still runs; the binary's bootloader cannot start."""
    folder = sigwrap.folder / "noexec"
    folder.mkdir()
    text = f'mount -t tmpfs -o noexec none {folder}; TMPDIR={folder} exec "$@"'
    before = ("unshare", "-m", "sh", "-c", text, "sh")
    if IS_BINARY:
        asked = sigwrap.native(*subject_line(sigwrap, before, "doctor"))
        done = run(sigwrap, *before)
        said_by = [re.sub(rb"_MEI\w+", b"", each.stderr) for each in (done, asked)]
        assert said_by[0] == said_by[1] and b"(noexec /tmp? set TMPDIR)" in said_by[0]
        assert done.returncode == asked.returncode == 255
    else:
        said = ask(sigwrap, *before)
        assert (said.status, said.short()) == (0, {items.TEMPORARY: "note"})
        assert str(folder) in said.items[items.TEMPORARY]["found"]
        assert run(sigwrap, *before).returncode == 0


@NEEDS_ROOT
@pytest.mark.skipif(IS_BINARY, reason="the bootloader dies of some of them")
@pytest.mark.parametrize(
    ("limit", "item", "status"),
    [
        ("-n 40", items.OPEN_FILES, REFUSED),
        ("-v 90000", items.LIMITS, 0),
    ],
)
def test_a_low_limit(alone: Sigwrap, limit: str, item: str, status: int) -> None:
    """Set the limits of an ordinary user: root can lift some of them."""
    before = ("bash", "-c", f'ulimit {limit}; exec "$@"', "bash")
    said, done = ask(alone, *before), run(alone, *before)
    assert done.returncode == status
    assert said.status == (status or 1)
    assert said.short()[item] == ("fail" if status else "limited")
    assert _any_id(said.items[item]["a_run_says"]) == _any_id(done.stderr.decode().strip())


@NEEDS_ROOT
def test_the_kill_switch_is_on_and_the_store_may_not_be_written(alone: Sigwrap) -> None:
    assert alone.run("killswitch", "on", "--reason", "a test").returncode == 0
    said, done = ask(alone), run(alone)
    assert said.status == done.returncode == REFUSED
    assert said.items[items.KILL_SWITCH]["a_run_says"] == done.stderr.decode().strip()
    assert alone.run("killswitch", "off", "--yes").returncode == 0
    above = alone.folder / "roots"
    above.mkdir(mode=0o755)
    alone.env["SIGWRAP_STORE"] = str(above / "store")
    said, done = ask(alone), run(alone)
    assert said.status == done.returncode == REFUSED
    assert said.short() == {items.STORE: "fail"}
    assert _any_id(said.items[items.STORE]["a_run_says"]) == _any_id(done.stderr.decode().strip())


def _any_id(line: str) -> str:
    return re.sub(r"\d{8}-\d{6}-\w{16}", "ID", line)


def test_inside_a_session(as_user: Sigwrap) -> None:
    """The checks do not attack the session, and its limits are not taken for the machine's."""
    done = as_user.run("--no-report", "--", UNDER_TEST, "doctor", "--json")
    assert (done.returncode, done.stderr) == (REFUSED, b"")
    found = {each["item"]: each for each in json.loads(done.stdout)["items"]}
    inner = as_user.run("--no-report", "--", UNDER_TEST, "--", "true")
    assert found[items.SESSION]["level"] == found[items.LISTENER]["level"] == "fail"
    says = found[items.LISTENER]["a_run_says"]
    assert _any_id(says) == _any_id(inner.stderr.decode().strip())
    for name in (items.KILLABLE_WAIT, items.TRACING, items.CGROUP, items.RUN):
        assert found[name]["level"] == "unknown"
    outer = next(each for each in list_sessions(str(as_user.store)) if each.id in says)
    types = {each.type for each in open_session(str(as_user.store), outer.id).events()}
    assert types <= {*EXECS, "session_started", "signal_sent", "process_exited", "session_ended"}


def test_an_interrupt_leaves_nothing(sigwrap: Sigwrap) -> None:
    """The interrupt comes in the middle of the test run."""
    process = sigwrap.start("doctor")
    await_that(lambda: any(sigwrap.folder.glob("sigwrap-doctor-*/sessions")))
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) in (-signal.SIGINT, 128 + signal.SIGINT)
    left_nothing(sigwrap)
