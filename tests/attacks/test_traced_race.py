"""Execs of traced callers. Sigwrap holds their tracer, and compares what was loaded before its
first instruction. A caller that would run on after its exec may not make one."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import TRACING, policy
from tests.support.waiting import PATIENCE_S

ROUNDS = 3
AT_MOST_S = 10
RULES = """
  - {name: no-bad, commands: [bad], decision: deny}
  - {name: no-push, commands: ["*"], args_patterns: [^push$], decision: deny}
"""


@pytest.mark.parametrize(
    "how",
    [
        "path",
        "word",
        "path attached",
        "word i386",
        "word attached i386",
        "path ends",
        "path attached ends",
        "path attached other",
    ],
)
def test_what_a_tracer_flips_never_runs(
    as_user: Sigwrap, compiled: Path, first: Path, how: str
) -> None:
    for name in ("good", "bad"):
        shutil.copy(first, as_user.folder / name)
    names = (str(as_user.folder / "good"), str(as_user.folder / "bad"))
    path = policy(as_user.folder, RULES, TRACING)
    line = ("-p", path, "--", str(compiled / "traced_race"), how, *names, str(PATIENCE_S))
    done = as_user.run(*line, within_s=2 * PATIENCE_S)
    said, counts = _said_and_counted(done)
    assert counts["ran"] and counts["killed"], done
    assert set(said) == {"good pull"}
    failed = as_user.sealed_events("exec_verification_failed")
    assert failed and len(failed) <= counts["killed"]


@pytest.mark.parametrize("how", ["forges", "stops", "ends"])
def test_an_exec_that_looks_over_is_compared_and_its_tracer_sees_the_end(
    as_user: Sigwrap, compiled: Path, first: Path, how: str
) -> None:
    shutil.copy(first, as_user.folder / "bad")
    path, bad = policy(as_user.folder, RULES, TRACING), str(as_user.folder / "bad")
    line = ("-p", path, "--", str(compiled / "traced_slowly"), how, bad, str(ROUNDS))
    done = as_user.run(*line, str(AT_MOST_S), "pulk", within_s=2 * PATIENCE_S)
    said, counts = _said_and_counted(done)
    assert set(said) <= {"good pull"}
    if how == "ends":
        assert sum(counts.values()) == ROUNDS
    else:
        assert counts["ran"] + counts["killed"]


def test_a_tracer_that_is_killed_while_it_dumps_core_lets_nothing_run(
    as_user: Sigwrap, compiled: Path, first: Path
) -> None:
    for name in ("good", "bad"):
        shutil.copy(first, as_user.folder / name)
    names = (str(as_user.folder / "good"), str(as_user.folder / "bad"))
    path = policy(as_user.folder, RULES, TRACING)
    line = ("-p", path, "--", str(compiled / "traced_dumps"), *names, str(AT_MOST_S))
    said, counts = _said_and_counted(as_user.run(*line, within_s=2 * PATIENCE_S))
    assert set(said) == {"good pull"}
    assert counts["denied"] and counts["killed"]


def test_what_looks_as_before_is_compared(as_user: Sigwrap, compiled: Path) -> None:
    path = policy(as_user.folder, RULES, TRACING)
    line = ("-p", path, "--", str(compiled / "traced_alike"), str(ROUNDS), str(AT_MOST_S))
    said, counts = _said_and_counted(as_user.run(*line, within_s=2 * PATIENCE_S))
    assert set(said) <= {"ran pull"}
    assert counts["ran"] + counts["killed"]


def test_nobody_runs_on_after_an_exec(as_user: Sigwrap, compiled: Path, first: Path) -> None:
    program = as_user.folder / "first"
    shutil.copy(first, program)
    line = (
        "-p",
        policy(as_user.folder, RULES, TRACING),
        "--",
        str(compiled / "traced_how"),
        str(program),
    )
    done = as_user.run(*line)
    said = [line for line in done.stdout.decode().splitlines() if line != "first x"]
    assert said == [
        "asked for: ran",
        "blocked: errno 13",
        "attached without a stop: errno 0",
        "attached: ran",
        "seized: errno 1",
        "seized as i386: errno 1",
        "not seized: ran",
        "with threads: errno 13",
        "tracer traced: errno 13",
    ]
    denied = as_user.sealed_events("exec_denied")
    assert {event.payload["rule_name"] for event in denied} == {"builtin:traced"}
    assert all(event.payload["verified"] for event in as_user.sealed_events("exec_allowed"))


EXECS_AGAIN = """
import ctypes, os, sys
child = os.fork()
if not child:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)  # PTRACE_TRACEME
    libc, none = ctypes.CDLL(None), ctypes.c_char_p()
    libc.execvp(sys.argv[1].encode(), (ctypes.c_char_p * 2)(b"script", none))  # then /bin/sh
    os._exit(1)
while os.WIFSTOPPED(status := os.waitpid(child, 0)[1]):
    ctypes.CDLL(None).ptrace(7, child, 0, 0)  # PTRACE_CONT
print(os.waitstatus_to_exitcode(status))
"""


def test_a_traced_caller_whose_exec_fails_may_make_another_at_once(as_user: Sigwrap) -> None:
    script = as_user.folder / "script"
    script.write_text("exit 3\n")  # no first line: the kernel refuses it
    script.chmod(0o755)
    path = policy(as_user.folder, RULES, TRACING)
    done = as_user.run(
        "-p", path, "--", *PYTHON, "-c", EXECS_AGAIN, str(script), within_s=AT_MOST_S
    )
    assert done.stdout == b"3\n", done
    assert not as_user.sealed_events("exec_verification_failed")


TRACES = """
import ctypes, os, signal
call = ctypes.CDLL(None, use_errno=True).syscall
child = os.fork()
while not child:
    signal.pause()
me, here = os.getpid(), ctypes.create_string_buffer(64)
calls = [(101, request, child, 0, 0) for request in (0, 8, 16, 0x4206)]
calls += [(number, child, here, 1, here, 1, 0) for number in (310, 311)]
calls += [(438, os.pidfd_open(me), 0, 0), (440, os.pidfd_open(me), 0, 0, 20, 0)]
calls.append((298, ctypes.create_string_buffer(128), child, -1, -1, 0))
print([ctypes.get_errno() for each in calls if call(*each) < 0])
os.kill(child, 9)
"""


def test_without_tracing_no_process_gets_at_another(
    as_user: Sigwrap, compiled: Path, first: Path
) -> None:
    """Under a policy without the key. The filter refuses, so there are no events."""
    for name in ("good", "bad"):
        shutil.copy(first, as_user.folder / name)
    names = (str(as_user.folder / "good"), str(as_user.folder / "bad"))
    start = ("-p", policy(as_user.folder, RULES), "--")
    done = as_user.run(*start, str(compiled / "traced_race"), "path attached", *names, "1")
    assert done.returncode == 3 and b"bad" not in done.stdout
    done = as_user.run(*start, *PYTHON, "-c", TRACES)
    assert done.stdout.decode() == f"{9 * [errno.EPERM]}\n"
    assert as_user.sealed_events("signal_blocked") == []


def _said_and_counted(
    done: subprocess.CompletedProcess[bytes],
) -> tuple[list[str], dict[str, int]]:
    *said, last = done.stdout.decode().splitlines()
    words = last.split()
    return said, dict(zip(words[::2], map(int, words[1::2]), strict=True))
