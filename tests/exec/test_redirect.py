"""The replacement runs, or the exec fails cleanly: never the original, whoever asks and however
little the caller or sigwrap has left of anything."""

from __future__ import annotations

import errno
import shlex
from pathlib import Path

import pytest

from tests.exec.calls import WAYS, by_way, calls
from tests.support.harness import PYTHON, REFUSED, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, reader

FEW_OF_OUR_OWN = 48
ORIGINAL_SAYS = "only-ls-would-say-this"


@pytest.fixture(params=["exec", "stub"])
def redirecting(as_user: Sigwrap, compiled: Path, request: pytest.FixtureRequest) -> Sigwrap:
    """/bin/ls, a path that is shorter than any replacement's, becomes a program that needs no
    descriptor and no memory to speak of."""
    (as_user.folder / ORIGINAL_SAYS).touch()
    rules = f"""
  - {{name: r, commands: [ls], decision: redirect,
     redirect_to: {{command: {compiled}/first, args: [replaced], append_args: true,
                   via: {request.param}}}}}
"""
    policy(as_user.folder, rules)
    return as_user


def _run(subject: Sigwrap, *words: str, **options: object) -> tuple[int, str, str]:
    line = ("-p", str(subject.folder / "policy.yaml"), "--", *words)
    done = subject.run(*line, **options)
    assert ORIGINAL_SAYS.encode() not in done.stdout
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def _limited(subject: Sigwrap, limit: int, *words: str) -> tuple[str, ...]:
    """With so few descriptors for sigwrap itself."""
    line = subject.line("-p", str(subject.folder / "policy.yaml"), "--", *words)
    return ("sh", "-c", f"ulimit -n {limit}; exec {shlex.join(map(str, line))}")


def test_bin_ls(redirecting: Sigwrap, compiled: Path) -> None:
    ways = [*WAYS, "fulltable"]
    code, out, err = _run(redirecting, "sh", "-c", calls(compiled, ways, "/bin/ls", "word"))
    assert (code, err) == (0, "")
    said = by_way(out)
    for way, lines in said.items():
        assert (lines[0], lines[-1]) == ("first replaced", "0"), way
    assert list(said) == ways
    assert "changed" not in out
    events = redirecting.sealed_events("exec_redirected")
    assert [event.payload["verified"] for event in events] == [True] * len(ways)


def test_a_caller_that_may_open_next_to_nothing(redirecting: Sigwrap) -> None:
    text = "for limit in 256 5 3; do (ulimit -n $limit; exec /bin/ls word); done"
    assert _run(redirecting, "sh", "-c", text) == (0, "first replaced\n" * 3, "")


def test_a_caller_that_has_no_standard_streams(redirecting: Sigwrap, compiled: Path) -> None:
    text = f"exec 3>&1; ({compiled}/call execve /bin/ls <&- >&- 2>&-); echo $? >&3"
    code, out, _ = _run(redirecting, "sh", "-c", text)
    assert (code, out) == (0, "0\n")
    assert len(redirecting.sealed_events("exec_redirected")) == 1


def test_a_caller_that_may_map_no_more(redirecting: Sigwrap, programs: Path) -> None:
    """There is no room for the replacement's words, so the exec fails; and so the log says."""
    code, out, _ = _run(redirecting, *PYTHON, str(programs / "may_map_no_more.py"))
    assert (code, out) == (errno.EACCES, "")
    (event,) = redirecting.sealed_events("exec_failed")
    assert (event.payload["rule_name"], event.payload["error"]) == ("r", "EACCES")


@pytest.mark.parametrize(("limit", "count"), [(256, 20), (FEW_OF_OUR_OWN, 4)])
def test_sigwrap_with_few_descriptors(
    redirecting: Sigwrap, limit: int, count: int, programs: Path
) -> None:
    words = (*PYTHON, str(programs / "side_by_side.py"), str(count))
    done = redirecting.native(*_limited(redirecting, limit, *words))
    assert (done.returncode, done.stderr) == (0, b"")
    said = done.stdout.decode().splitlines()
    assert sorted(said) == [str(count), *(["first replaced"] * count)]
    events = redirecting.sealed_events("exec_allowed", "exec_redirected")
    assert [event.payload["verified"] for event in events] == [True] * (1 + count)


@pytest.mark.parametrize("redirecting", ["exec"], indirect=True)
def test_sigwrap_with_too_few_descriptors(redirecting: Sigwrap) -> None:
    for limit in (FEW_OF_OUR_OWN - 1, 30, 16, 10, 8):
        done = redirecting.native(*_limited(redirecting, limit, "/bin/ls"))
        assert (done.returncode, done.stdout) == (REFUSED, b""), limit
        assert done.stderr.count(b"\n") == 1
        assert b"ulimit -n" in done.stderr
    assert not redirecting.has_sessions()


def test_more_processes_than_it_can_watch(redirecting: Sigwrap, programs: Path) -> None:
    """Those beyond are judged and verified all the same."""
    words = (*PYTHON, str(programs / "sixty_and_one.py"))
    line = _limited(redirecting, FEW_OF_OUR_OWN, *words)
    process = redirecting.start_line([*redirecting.as_user(), *line])
    reader(process.stdout).until(rb"first replaced\n")
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    events = redirecting.sealed_events("exec_allowed", "exec_redirected")
    assert [event.payload["verified"] for event in events] == [True] * 62
    assert any(event.pid == events[0].pid for event in redirecting.events("process_exited"))
