"""Where interception can't be had, COMMAND does not run, and one line says why."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.log.catalog import list_sessions, open_session
from tests.support.harness import EXECS, PYTHON, REFUSED, Sigwrap

Confined = Callable[..., subprocess.CompletedProcess[bytes]]
SECCOMP, IOCTL, PIDFD_OPEN = 317, 16, 434
IOCTLS = {"RECV": 0xC0502100, "SEND": 0xC0182101, "ID_VALID": 0x40082102, "SET_FLAGS": 0x40082104}


@pytest.fixture
def confined(programs: Path) -> Confined:
    """sigwrap where a call, or one with that second argument, gets an errno."""

    def run(
        subject: Sigwrap, number: int, argument: int, code: int, *words: str
    ) -> subprocess.CompletedProcess[bytes]:
        filtered = [str(programs / "confined.py"), str(number), str(argument), str(code)]
        return subject.native(*PYTHON, *filtered, *subject.line(*words))

    return run


def _refused(done: subprocess.CompletedProcess[bytes], sigwrap: Sigwrap) -> str:
    assert (done.returncode, done.stdout) == (REFUSED, b""), done.stderr
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("sigwrap: ")
    assert "internal error" not in line
    assert not (sigwrap.folder / "ran").exists()
    assert sigwrap.alive() == []
    return line


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(errno.EPERM, marks=pytest.mark.promise("fail closed")),
        errno.ENOSYS,
        errno.EINVAL,
    ],
)
def test_no_seccomp(sigwrap: Sigwrap, code: int, confined: Confined) -> None:
    done = confined(sigwrap, SECCOMP, 0, code, "--", "touch", "ran")
    line = _refused(done, sigwrap)
    assert os.strerror(code) in line
    assert "--best-effort" in line


@pytest.mark.parametrize("name", IOCTLS)
def test_a_listener_that_can_be_had_but_not_used(
    sigwrap: Sigwrap, name: str, confined: Confined
) -> None:
    """AppArmor, WSL2: the installation works, the answers don't."""
    _refused(confined(sigwrap, IOCTL, IOCTLS[name], errno.EPERM, "--", "touch", "ran"), sigwrap)
    words = ["--best-effort", "--", "sh", "-c", "echo ran; exit 3"]
    done = confined(sigwrap, IOCTL, IOCTLS[name], errno.EACCES, *words)
    assert (done.returncode, done.stdout) == (3, b"ran\n"), done.stderr
    started = sigwrap.sealed_events("session_started")[0].payload
    assert any("interception" in missing for missing in started["missing"])


def test_where_no_process_can_be_held_best_effort_runs_nothing_either(
    sigwrap: Sigwrap, confined: Confined
) -> None:
    for options in ((), ("--best-effort",)):
        words = (*options, "--", "touch", "ran")
        line = _refused(confined(sigwrap, PIDFD_OPEN, 0, errno.EPERM, *words), sigwrap)
        assert "pidfd_open fails: Operation not permitted" in line


@pytest.mark.promise("best effort")
def test_best_effort_runs_and_the_log_says_what_is_missing(
    as_user: Sigwrap, confined: Confined
) -> None:
    words = ["--best-effort", "--", "sh", "-c", "echo ran; exit 3"]
    done = confined(as_user, SECCOMP, 0, errno.EPERM, *words)
    assert (done.returncode, done.stdout) == (3, b"ran\n")
    (line,) = done.stderr.decode().splitlines()
    assert "without interception" in line
    started = as_user.sealed_events("session_started")[0].payload
    assert any("interception" in missing for missing in started["missing"])
    assert "interception" not in started["capabilities"]
    assert as_user.events(*EXECS) == []


# Nested


@pytest.mark.promise("nested")
def test_nested_is_refused_and_names_the_outer_session(as_user: Sigwrap) -> None:
    done = as_user.run("--", *map(str, as_user.line("--", "touch", "ran")))
    line = _refused(done, as_user)
    (outer,) = list_sessions(str(as_user.store))
    assert outer.id in line
    assert "--nested join" in line


def test_nested_is_refused_where_the_outer_one_keeps_reading_to_some_folders(
    sigwrap: Sigwrap,
) -> None:
    """A mount of /proc that is at no path is in none of them."""
    home = sigwrap.folder / "home"
    sigwrap.env["HOME"] = str(home)
    keys = home / ".ssh"
    keys.mkdir(parents=True)
    (keys / "id_ed25519").write_text("a key")
    elsewhere = sigwrap.folder / "elsewhere"
    elsewhere.mkdir()
    inner = map(str, sigwrap.line("--", "touch", "ran"))
    line = _refused(sigwrap.run("--", *inner, cwd=elsewhere), sigwrap)
    assert "already in session" in line


def test_nested_is_refused_where_the_name_was_taken_away_and_best_effort_does_not_nest(
    sigwrap: Sigwrap,
) -> None:
    """Two supervisors of one tree are not what it is for."""
    hidden = ["env", "-u", "SIGWRAP_SESSION", *map(str, sigwrap.line("--", "touch", "ran"))]
    assert "nested" in _refused(sigwrap.run("--", *hidden), sigwrap)
    inner = map(str, sigwrap.line("--best-effort", "--", "touch", "ran"))
    _refused(sigwrap.run("--", *inner), sigwrap)


def test_without_an_outer_session_a_stale_name_and_a_join_make_a_plain_run(
    sigwrap: Sigwrap,
) -> None:
    words = ("--nested", "join", "--", "echo", "ran")
    done = sigwrap.run(*words, env={"SIGWRAP_SESSION": "stale"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")
    assert "interception" in sigwrap.events("session_started")[0].payload["capabilities"]


@pytest.mark.promise("nested")
def test_joining_runs_under_the_outer_session_and_says_so(sigwrap: Sigwrap) -> None:
    inner_line = map(
        str, sigwrap.line("--nested", "join", "--", "sh", "-c", "/bin/echo ran; exit 6")
    )
    done = sigwrap.run("--", *inner_line)
    assert (done.returncode, done.stdout) == (6, b"ran\n")
    (line,) = done.stderr.decode().splitlines()
    sessions = [open_session(str(sigwrap.store), s.id) for s in list_sessions(str(sigwrap.store))]
    outer = next(s for s in sessions if s.id in line)
    argvs = [e.payload["argv"] for e in outer.events() if e.type in EXECS]
    assert ["/bin/echo", "ran"] in argvs
    for inner in sessions:
        if inner is not outer:
            first = inner.first()
            assert first is not None
            assert outer.id in first.payload["missing"][0]
    assert open_session(str(sigwrap.store), "").id == outer.id  # which has what happened


def test_under_another_programs_listener(sigwrap: Sigwrap, programs: Path) -> None:
    """strace --seccomp-bpf has none, but a container's agent may."""
    done = sigwrap.native(
        *PYTHON, str(programs / "has_a_listener.py"), *sigwrap.line("--", "touch", "ran")
    )
    line = _refused(done, sigwrap)
    assert "another supervisor" in line
