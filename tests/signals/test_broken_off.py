"""A handler without SA_RESTART doesn't break off what it never breaks off without sigwrap: the kill
that comes after another one, whose child has just ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import PYTHON
from tests.support.programs import needs
from tests.support.signal_lab import Lab

ROUNDS = 10
IN_A_ROW = f"""
i=0
while [ $i -lt {ROUNDS} ]; do
  sleep 1000 & a=$!; sleep 1000 & b=$!; sleep 1000 & c=$!
  kill $a; echo $?; kill $b $c; echo $?
  wait
  (exit 7) & sleep 1000 & kill $!; echo $?
  wait
  i=$((i+1))
done
"""

SIGNALS = ("USR1", "USR2", "ALRM", "34")
# With no SIGKILL: children that ended by one once hid that other signals were broken off.
ENDS_EACH = """
trap : CHLD
for signal; do
  i=0
  while [ $i -lt 20 ]; do
    sleep 1000 & a=$!; sleep 1000 & b=$!
    for each in $a $b; do until read c </proc/$each/comm && [ "$c" = sleep ]; do :; done; done
    for each in $a $b; do until kill -$signal $each; do echo $signal; done; done
    wait
    i=$((i+1))
  done
done
"""
ENDS_TWICE = "sleep 5 & kill -USR1 $!; kill -TERM $!; wait"
TWENTY_TIMES = 'i=0; while [ $i -lt 20 ]; do "$@"; i=$((i+1)); done'
PERL_ENDS_EACH = """
$SIG{CHLD} = sub {};
for $signal (@ARGV) {
  for (1 .. 20) {
    pipe R, W;
    @children = map { my $p = fork; if (!$p) { close R; close W; sleep 1000; exit } $p } 1 .. 3;
    close W; sysread R, $_, 1;
    for (@children) { print "$signal\n" until kill $signal, $_ }
    for (@children) { 1 while waitpid($_, 0) < 0 && $!{EINTR} }
  }
}
"""


@pytest.fixture
def empty(users_lab: Lab) -> Path:
    """What the kernel can't execute."""
    path = users_lab.subject.folder / "empty"
    path.touch(0o755)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "shell", [pytest.param(each, marks=needs(each)) for each in ("dash", "bash")]
)
def test_a_shell_ends_several_in_a_row(users_lab: Lab, shell: str) -> None:
    """dash handles SIGCHLD without SA_RESTART."""
    lab = users_lab.under(signal="audit")
    done = lab.subject.run("--", shell, "-c", IN_A_ROW)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"0"] * 3 * ROUNDS, b"")
    assert len(lab.payloads("signal_sent")) == 4 * ROUNDS


@pytest.mark.parametrize(
    ("name", "line"),
    [
        *(
            pytest.param(line[0], (*line, "-c", ENDS_EACH, "x"), id=line[0], marks=needs(line[0]))
            for line in (["dash"], ["busybox", "sh"], ["mksh"])
        ),
        pytest.param("perl", ("perl", "-e", PERL_ENDS_EACH), id="perl", marks=needs("perl")),
    ],
)
def test_children_end_by_any_signal(users_lab: Lab, name: str, line: tuple[str, ...]) -> None:
    """Each has a handler for SIGCHLD without SA_RESTART. mksh knows no realtime signals."""
    signals = SIGNALS[:3] if name == "mksh" else SIGNALS
    done = users_lab.under(signal="audit").subject.run("--", *line, *signals)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(line, id=line[0], marks=needs(line[0]))
        for line in (["dash"], ["bash"], ["zsh"], ["busybox", "sh"])
    ],
)
def test_a_signal_to_a_child_that_ends_is_not_interrupted(users_lab: Lab, shell: list[str]) -> None:
    """bash may have reaped the child before the second signal."""
    line = ("sh", "-c", TWENTY_TIMES, "sh", *shell, "-c", ENDS_TWICE)
    done = users_lab.under(signal="audit").subject.run("--", *line)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"nterrupted" not in done.stderr


def _says_of_each(lab: Lab, said: dict[str, bytes]) -> None:
    """Of programs that are run one after the other. Their own words are in place of a status."""
    done = lab.under(signal="audit").subject.run("--", "sh", "-c", "\n".join(said))
    assert done.stdout.splitlines() == list(said.values())
    assert done.stderr == b""


def test_no_call_of_a_parent_fails(users_lab: Lab, compiled: Path) -> None:
    parent = compiled / "parent"
    said = {
        **{f"{parent} {how}": b"0 1" for how in ("kill", "pidfd", "stop")},
        **{f"{parent} kill {number}": b"0 1" for number in (10, 12, 14, 34)},
        f"{parent} kill 10 restarts": b"0 1",
        # Its child doesn't end, so it is let go unnoticed.
        f"{parent} waits": b"0 0",
        # What it ignores breaks nothing off.
        f"{parent} ignores": b"0 0",
        f"{parent} traced": b"-1 4",  # another process can trace it at once
    }
    _says_of_each(users_lab, said)


def test_its_own_end_is_told_at_once(users_lab: Lab, programs: Path) -> None:
    """A tracer would get to know first."""
    line = (*PYTHON, str(programs / "awaits_ends.py"), "sleep 1000 & kill $!")
    done = users_lab.under(signal="audit").subject.run("--", *line)
    assert (done.stdout, done.stderr) == (b"told at once: 20 of 20\n", b"")


@pytest.mark.parametrize("how", ["executes", "thread executes", "executes at last"])
def test_what_a_parent_executes_is_verified(
    users_lab: Lab, compiled: Path, empty: Path, how: str
) -> None:
    """At last: after a thread could not."""
    lab = users_lab.under(signal="audit")
    tries = [str(empty)] if how == "executes at last" else []
    done = lab.subject.run("--", str(compiled / "parent"), how, *tries, "/bin/echo", "ran")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")
    events = lab.payloads("exec_audited")
    assert len(events) == 2 + len(tries)
    last = events[-1]
    assert (last["argv"], last["verified"], last["traced"]) == (["/bin/echo", "ran"], True, False)


def test_what_goes_on_as_if_nothing_had_been(users_lab: Lab, compiled: Path, empty: Path) -> None:
    """An exec that the kernel refuses, and a tracer that waits on while its tracee execs."""
    lab = users_lab.under(signal="audit")
    for line, status, said in (
        (("parent", "executes", str(empty)), 1, b""),
        (("parent", "traces", "/bin/echo", "ran"), 0, b"1 0\nran\n"),
    ):
        done = lab.subject.run("--", str(compiled / line[0]), *line[1:])
        assert (done.returncode, done.stdout, done.stderr) == (status, said, b""), line


def test_a_traced_parent(users_lab: Lab, compiled: Path) -> None:
    parent = compiled / "traced_parent"
    # One that waits for long is let go: a stop would make it wait anew for the whole of its time.
    waits = ("epoll_wait", "forever", "recv", "sigtimedwait")
    said = {
        **{f"{parent} {call}": b"1 0" for call in waits},
        f"{parent} seeks": b"0",  # a result that looks like an error in its lower half
        f"{parent} i386": b"0",  # no call by the other ABI fails
        f"{parent} attached": b"10",  # traced while it ends one child after another
    }
    _says_of_each(users_lab, said)
