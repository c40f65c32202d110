"""A helper changes the shell that runs it (`renice -p $$`), and nothing beyond that."""

from __future__ import annotations

import pytest

from tests.support.harness import PYTHON
from tests.support.signal_lab import Lab

HELPERS = (
    "renice -n 5 -p $$",
    "ionice -c3 -p $$",
    "taskset -pc 0 $$",
    "chrt -i -p 0 $$",
    "prlimit --pid $$ --nofile=100:150",
)
CALLS = {"setpriority", "ioprio_set", "sched_setaffinity", "sched_setscheduler", "prlimit64"}
LIMITS = """
import ctypes, errno, itertools, os, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
NOFILE, PARENT = 7, os.getppid()
new, old = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
def limit(*wanted, at=new):
    if wanted: struct.pack_into('QQ', new, 0, *wanted)
    failed = libc.prlimit(PARENT, NOFILE, at, old)
    return errno.errorcode[ctypes.get_errno()] if failed else struct.unpack('QQ', old.raw)
"""
GIVES_OLD_ONES = f"""{LIMITS}
print(limit(90, 120), limit(80, 120), limit(80, 121), limit(80, 100), limit(90, 100))
print(limit(at=None), limit(at=ctypes.c_void_p(8)), limit(70, 90))
print(libc.prlimit(PARENT, NOFILE, new, ctypes.c_void_p(8)), limit(at=None))
"""
SWAPS = f"""{LIMITS}
limit(50, 90)
def swap():
    while True:
        new[0] = 60
        new[0] = 50
threading.Thread(target=swap, daemon=True).start()
sys.setswitchinterval(1e-6)
seen, until = set(), time.monotonic() + 30
for at in itertools.count():
    seen.add(str(limit()))
    if at >= 500 and (len(seen) > 1 or time.monotonic() > until): break
print(*sorted(seen))
"""


def _says(lab: Lab, line: list[str], said: str) -> None:
    done = lab.subject.run("--", *line)
    assert done.stdout.decode().splitlines() == said.splitlines(), done.stderr.decode()


def _is_denied(lab: Lab, *lines: str, calls: set[str]) -> None:
    text = "".join(f"{{ {line}; }} >/dev/null 2>&1 && echo {at}\n" for at, line in enumerate(lines))
    _says(lab, ["bash", "-c", text], "")
    assert {each["syscall"] for each in lab.payloads("signal_blocked")} == calls


def test_a_helper_changes_its_shell(users_lab: Lab) -> None:
    """The command itself too, where it is a shell."""
    each = "".join(f"{{ {line}; }} >/dev/null || echo '{line}'\n" for line in HELPERS)
    shows = "cut -d' ' -f19 /proc/$$/stat; ulimit -Sn; ulimit -Hn"
    # The inner shell's limits are low already.
    text = f"{each}{shows}\ndash -c '{each.replace(chr(39), '')}{shows.replace(chr(39), chr(34))}'"
    done = users_lab.subject.run("--", "bash", "-c", text)
    assert (done.stdout.split(), done.stderr) == ([b"5", b"100", b"150"] * 2, b"")
    sent = [each for each in users_lab.payloads() if each["rule_name"] == "builtin:parent"]
    assert {each["syscall"] for each in sent} == CALLS
    assert {(each["type"], each["decision"]) for each in sent} == {("signal_sent", "allow")}
    assert len(sent) == 2 * len(HELPERS)


def test_nothing_of_it_is_raised_and_no_group_or_realtime_class(users_lab: Lab) -> None:
    set_low = "prlimit --pid $$ --nofile=100:"
    _is_denied(
        users_lab,
        f"{set_low} && prlimit --pid $$ --nofile=101:",
        "prlimit --pid $$ --nofile=100:99999999",
        "chrt -f -p 1 $$",
        "ionice -c1 -p $$",
        "prlimit --pid $$ --cpu=0:",
        "prlimit --pid $$ --fsize=0:",
        "renice -n 5 -g $(cut -d' ' -f5 /proc/$$/stat)",
        calls=CALLS - {"sched_setaffinity"},
    )


def test_a_grandchild_changes_nothing(users_lab: Lab) -> None:
    lines = (f"(sh -c '{line.replace('$$', '$PPID')}; exit $?')" for line in HELPERS)
    _is_denied(users_lab, *lines, calls=CALLS)


@pytest.mark.parametrize("below", [[], ["bash", "-c", '"$@"; exit $?', "bash"]])
def test_a_parent_that_is_no_shell_stays_as_it_is(users_lab: Lab, below: list[str]) -> None:
    """A shell that an agent runs can become the helper itself."""
    lines = [f"exec {line.replace('$$', '$PPID')}" for line in HELPERS]
    agent = "import subprocess, sys\nfor x in sys.argv[1:]: print(subprocess.call(['sh', '-c', x]))"
    done = users_lab.subject.run("--", *below, *PYTHON, "-c", agent, *lines)
    failed = [line for line in done.stdout.splitlines() if line.isdigit()]
    assert failed == [b"1"] * len(HELPERS)
    assert {each["syscall"] for each in users_lab.payloads("signal_blocked")} == CALLS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            GIVES_OLD_ONES,
            "(100, 150) (90, 120) EPERM (80, 120) EPERM\n(80, 100) EPERM (80, 100)\n-1 (70, 90)",
            id="old ones",
        ),
        pytest.param(SWAPS, "(50, 90) EPERM", id="swapped meanwhile"),
    ],
)
def test_limits_are_the_ones_that_were_judged(users_lab: Lab, text: str, said: str) -> None:
    """The caller gets the old ones as from the kernel."""
    file = users_lab.subject.folder / "limits.py"
    file.write_text(text)
    file.chmod(0o644)
    set_first = "ulimit -Sn 100; ulimit -Hn 150"
    _says(users_lab, ["bash", "-c", f"{set_first}; {PYTHON[0]} {file}; :"], said)
