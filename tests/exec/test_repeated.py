"""Execs that go on by an earlier decision about the very same facts: with the extension and without
it, the log says the same, and nothing runs that would not have run."""

from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sigwrap.events import Event
from tests.support.harness import EXECS, PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.repeated import assert_repeated, noting_its_stack, repeated
from tests.support.waiting import PATIENCE_S, await_that

WITH = {"SIGWRAP_PURE_PYTHON": ""}
WITHOUT = {"SIGWRAP_PURE_PYTHON": "1"}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sigwrap.exec._repeated") is None,
    reason="needs the extension: a C compiler and Python's headers at make setup",
)

# What differs between two runs of the same.
_OF_A_RUN = ("evaluation_us", "ppid", "below")
# Of an end not everything is known each time, whoever writes it down.
_OF_AN_END = ("exit_code", "cpu_limit_s", "oom_kills")
_LINES = {
    "the same again": "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done",
    "several": "for i in 1 2 3 4 5 6; do /bin/true a; /bin/false; /bin/echo '\"$i\\'; done",
    "by exec again": "for i in 1 2 3; do sh -c 'exec sh -c \"exec /bin/true $i\"'; done",
    "subshells": "for i in 1 2 3; do (/bin/true; ( (/bin/true); /bin/echo a)); ( (id)); done",
    "by exec": "for i in 1 2 3 4 5; do sh -c 'exec /bin/true'; sh -c '/bin/true; exec id'; done",
    "in a pipe": "for i in 1 2 3 4 5; do /bin/echo a | /bin/cat | /bin/cat; done",
    "missing": "for i in 1 2 3 4; do /bin/nothing; nothing; /bin/true/x; /bin/true; done",
    "denied": "for i in 1 2 3 4; do /bin/date; /bin/true; done",
    "killed": "for i in 1 2 3 4; do sh -c 'kill -9 $$'; sh -c 'kill $$'; done",
    "elsewhere": "for i in 1 2 3; do (cd /; /bin/pwd); (cd /usr; /bin/pwd); /bin/pwd; done",
    "denied by its words": "for i in 1 2 3; do /bin/echo $i; /bin/echo secret; date=$i; done",
    "a loader": "for i in 1 2 3; do /lib64/ld-linux-x86-64.so.2 /bin/true; done",
    "wrappers": "for i in 1 2 3; do env >/dev/null; env A=1 /bin/true; nice -n 1 date; nice; done",
    "another's name": "for i in 1 2 3; do (exec -a date /bin/true); /bin/true; done",
    "odd words": "for i in 1 2 3; do /bin/echo '' \"$(printf '\\377\\t')\" é; done",
    "links": "for i in 1 2 3; do awk 'BEGIN {}'; /usr/bin/awk 'BEGIN {}'; done",
    "deeper": "f() { for i in 1 2 3; do (/bin/true; (/bin/true)); done; }; f; (f; (f))",
    "many words": "for i in 1 2 3; do /bin/true $(seq 1 40); /bin/true $(seq 1 200); done",
    "orphans": "for i in 1 2 3 4; do (/bin/true & ) ; sh -c '(id & ) ' ; done; wait; sleep 0.2",
}
_RULES = """
  - {name: no-date, commands: [date], decision: deny}
  - {name: no-secret, commands: [echo], args_patterns: [^secret$], decision: deny}
  - {name: noticed, commands: [pwd, awk], decision: audit, message: it was noticed}
"""
_COUNTED = (
    "limits: {max_depth: 64, max_processes: 4096, max_children: 500}",
    "watch: {loop: {same_exec: 5, within: 60s, action: log}}",
)
_IN_ANY_ORDER = ("in a pipe", "orphans")
_IN_ORDER = tuple(name for name in _LINES if name not in _IN_ANY_ORDER)


Told = tuple[str, str]


def _told(event: Event) -> Told:
    left_out = (*_OF_A_RUN, *(_OF_AN_END if event.type == "process_exited" else ()))
    payload = {name: value for name, value in event.payload.items() if name not in left_out}
    return event.type, repr(sorted(payload.items()))


def _execs(told: list[Told]) -> list[Told]:
    return [each for each in told if each[0].startswith("exec_")]


def _run(subject: Sigwrap, env: dict[str, str], *words: str, **options: Any) -> tuple[int, bytes]:
    shutil.rmtree(subject.store, ignore_errors=True)
    done = subject.run(*words, env=env, cwd="/tmp", **options)
    return done.returncode, done.stdout


def _noted(subject: Sigwrap, text: str, shell: str = "sh") -> tuple[str, ...]:
    """A shell's `text`, and where the shell has its stack."""
    text = noting_its_stack(subject, text)
    return ("-p", policy(subject.folder, _RULES), "--", shell, "-c", text)


@pytest.mark.parametrize("lines", [_IN_ORDER, _IN_ANY_ORDER], ids=["in order", "in any"])
def test_the_log_says_the_same(as_user: Sigwrap, lines: tuple[str, ...]) -> None:
    """In another order where the processes themselves come in any; how many there are depends then
    on who is quicker, so there they aren't counted."""
    name = policy(as_user.folder, _RULES, *(() if lines is _IN_ANY_ORDER else _COUNTED))
    text = "\n".join(_LINES[line] for line in lines)
    words = ("-p", name, "--", "sh", "-c", text)
    kinds = (*EXECS, "exec_denied", "exec_failed", "process_exited", "agent_signal")
    without = _run(as_user, WITHOUT, *words)
    assert repeated(as_user) == 0
    told_without = [_told(event) for event in as_user.events(*kinds)]
    assert _run(as_user, WITH, *words) == without
    told = [_told(event) for event in as_user.sealed_events(*kinds)]
    if lines is _IN_ANY_ORDER:
        assert set(_execs(told)) == set(_execs(told_without))
    else:
        assert Counter(told) == Counter(told_without)
        assert _execs(told) == _execs(told_without)


def test_most_of_a_loop_is_repeated(as_user: Sigwrap) -> None:
    line = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"
    assert _run(as_user, WITH, *_noted(as_user, line)) == (0, b"")
    assert_repeated(as_user, 270)  # 296 on a quiet machine, 289 on a busy one
    assert len(as_user.events("process_exited")) == 301
    assert len(as_user.events(*EXECS)) == 301


def test_most_of_what_subshells_run_is_repeated(as_user: Sigwrap) -> None:
    """Their processes are known only by what they run, or ran before."""
    line = """
i=0; while [ $i -lt 50 ]; do
    (/bin/true; /bin/true); dash -c 'exec dash -c "exec /bin/true"'; i=$((i+1))
done
"""
    assert _run(as_user, WITH, *_noted(as_user, line, shell="dash")) == (0, b"")
    execs = as_user.sealed_events(*EXECS)
    assert len(execs) == 251
    assert len({event.pid for event in execs}) == 151
    assert len(as_user.events("process_exited")) == 151
    assert_repeated(as_user, 220)


def test_another_file_of_the_same_name_is_judged(as_user: Sigwrap) -> None:
    """Renamed over it, linked over it, and changed in place."""
    folder = as_user.folder / "programs"
    rules = f"\n  - {{name: no-bad, commands: [{folder}/bad], decision: deny}}\n"
    made = f"mkdir {folder}; cp /bin/echo {folder}/good; cp /usr/bin/printf {folder}/bad"
    as_user.native("sh", "-c", made)
    text = f"""
cd {folder}
again() {{ for i in 1 2 3 4; do {folder}/tool $1; done; }}
sleep 0.3
ln good tool; again good
ln -f bad tool; again bad
cp --remove-destination good tool; again copy; sleep 0.3; again copy
mv bad tool; again moved
"""
    done = as_user.run("-p", policy(as_user.folder, rules), "--", "sh", "-c", text, env=WITH)
    said = done.stdout.decode().split()
    assert set(said) == {"good", "copy"}
    denied = as_user.sealed_events("exec_denied")
    assert {event.payload["argv"][1] for event in denied} == {"bad", "moved"}


def test_what_the_kernel_refuses_the_next_time(as_user: Sigwrap, compiled: Path) -> None:
    """The variables are no fact that it is judged by, and too many of them are E2BIG."""
    text = """
import os, subprocess
open("stat", "w").write(open("/proc/self/stat").read())
def run(**env):
    pid = os.fork()
    if not pid:
        try:
            os.execve("/bin/true", ["true"], env)
        except OSError as failure:
            os._exit(failure.errno)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print([run() for _ in range(5)], run(A="x" * 200_000), [run() for _ in range(5)])
"""
    name = policy(as_user.folder, _RULES)
    done = as_user.run("-p", name, "--", *PYTHON, "-c", text, env=WITH)
    assert done.stdout == b"[0, 0, 0, 0, 0] 7 [0, 0, 0, 0, 0]\n", done.stderr
    (failed,) = as_user.sealed_events("exec_failed")
    assert failed.payload["error"] == "E2BIG"
    assert not as_user.events("exec_verification_failed", "mediation_failed")
    assert_repeated(as_user, 5)


def test_side_by_side(as_user: Sigwrap) -> None:
    """More at once than there are processors: some exec stops come later than is waited for."""
    each = "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done"
    text = f"for j in 1 2 3 4 5 6 7 8; do ({each}) & done; wait"
    assert _run(as_user, WITH, *_noted(as_user, text)) == (0, b"")
    execs = as_user.sealed_events(*EXECS)
    assert len(execs) == 481
    ends = {event.pid: event.seq for event in as_user.events("process_exited")}
    assert all(event.seq < ends[event.pid] for event in execs), "an end came before its exec"
    assert not as_user.events("exec_verification_failed", "mediation_failed", "exec_failed")
    assert_repeated(as_user, 301)


def test_a_full_disk_denies_what_was_allowed_before(sigwrap: Sigwrap, small_disk: Path) -> None:
    text = f"""
i=0; while [ $i -lt 50 ]; do /bin/true || exit 1; i=$((i+1)); done
cat /dev/zero >{small_disk}/filled 2>/dev/null
i=0; while [ $i -lt 20 ]; do /bin/true && echo ran; i=$((i+1)); done
rm -f {small_disk}/filled
exit 0
"""
    sigwrap.store = small_disk / "store"
    sigwrap.env["SIGWRAP_STORE"] = str(sigwrap.store)
    line = ("-p", policy(sigwrap.folder, _RULES), "--", "sh", "-c", text)
    done = sigwrap.run(*line, env=WITH)
    assert b"sigwrap denies every exec and signal" in done.stderr
    assert done.stdout.count(b"ran") < 20
    assert b"Permission denied" in done.stderr


def test_a_process_group_that_is_killed_meanwhile(as_user: Sigwrap) -> None:
    """At any moment of its execs; what is left of them has an end in the log."""
    text = """
import os, signal, subprocess, time
for attempt in range(40):
    line = "while :; do /bin/true; done"
    run = subprocess.Popen(["sh", "-c", line], start_new_session=True)
    time.sleep(0.005 + attempt * 0.0007)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
"""
    name = policy(as_user.folder, _RULES)
    done = as_user.run("-p", name, "--", *PYTHON, "-c", text, env=WITH)
    assert done.returncode == 0, done.stderr
    events = as_user.sealed_events(*EXECS, "process_exited")
    ends = Counter(event.pid for event in events if event.type == "process_exited")
    execs = {event.pid for event in events if event.type != "process_exited"}
    assert execs <= set(ends)
    assert not as_user.events("mediation_failed", "exec_verification_failed")


def test_a_signal_to_who_was_seen_by_the_extension(as_user: Sigwrap) -> None:
    """It is whose child it is, and its name is right."""
    text = """
for i in 1 2 3 4 5 6; do
    /bin/sleep 100 & last=$!
    while read name < /proc/$last/comm && [ "$name" != sleep ]; do :; done
done
kill $(jobs -p)
wait
"""
    _run(as_user, WITH, *_noted(as_user, text, shell="bash"))
    sent = as_user.sealed_events("signal_sent")
    assert [event.payload["target_cmd"] for event in sent] == ["sleep"] * 6
    assert all("children" in event.payload["target_types"] for event in sent)
    assert {event.payload["signal"] for event in as_user.events("process_exited")} == {None, 15}
    assert_repeated(as_user, 3)


def test_frozen_between_two_repeated_execs(as_user: Sigwrap) -> None:
    running = as_user.start(*_noted(as_user, "while :; do /bin/true; done"), env=WITH)
    as_user.await_event("process_exited")
    await_that(lambda: len(as_user.events("process_exited")) > 10)
    assert as_user.run("signal", "SIGSTOP").returncode == 0
    as_user.await_event("tree_frozen")
    assert as_user.run("signal", "SIGKILL").returncode == 0
    assert running.wait(PATIENCE_S) != 0
    kinds = [event.type for event in as_user.sealed_events()]
    assert not set(EXECS).intersection(kinds[kinds.index("tree_frozen") :])
    assert_repeated(as_user, 1)


_SEARCHES = """
import ctypes, errno, os, subprocess, sys

folder, where = sys.argv[1:]
os.mkdir(f"{folder}/all")
os.mkdir(f"{folder}/all/below")
os.mkdir(f"{folder}/own", 0o700)
os.mkdir(f"{folder}/own/below")
os.symlink(f"{folder}/own/below", f"{folder}/link")
os.symlink("/proc/self/nothing", f"{folder}/broken")
os.symlink("/proc/self", f"{folder}/process")
open(f"{folder}/file", "w").close()
places = ("", "all", "all/below", "all/nothing", "own", "own/below", "own/nothing/below", "link",
          "broken", "process", "process/task", "file", "/root", "/root/nothing", "/proc/1", "/bin")


def searched():
    if where == "another user" and os.getuid() == 0:
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    if where == "user namespace":
        yield str(ctypes.CDLL(None).unshare(0x10000000))  # CLONE_NEWUSER
    for place in places:
        try:
            os.execv(os.path.join(folder, place, "nothing-like-it"), ["x"])
        except OSError as refused:
            yield f"{place} {errno.errorcode[refused.errno]}"


subprocess.run(["/bin/true"], check=True)
for _ in range(2):
    child = os.fork()
    if not child:
        print(*searched(), sep="\\n", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("where", ["here", "another user", "user namespace"])
def test_a_missing_program_fails_as_it_does_natively(as_user: Sigwrap, where: str) -> None:
    """Each caller may search other folders, and /proc/self differs for each."""
    said = []
    for prefix in ((), ("-p", policy(as_user.folder, " []"), "--")):
        folder = str(as_user.folder / ("sigwrap" if prefix else "native"))
        as_user.native("mkdir", folder)
        words = (*PYTHON, "-c", _SEARCHES, folder, where)
        done = as_user.run(*prefix, *words, env=WITH) if prefix else as_user.native(*words)
        said.append((done.returncode, done.stdout))
    assert said[0] == said[1]
    assert b"own/below ENOENT" in said[0][1] or where != "here"


@pytest.mark.parametrize("children", ["1", "3", "6"])
def test_a_limit_counts_the_children_from_before_an_exec(
    as_user: Sigwrap, compiled: Path, children: str
) -> None:
    name = policy(as_user.folder, " []", "limits: {max_children: 4}")
    line = (str(compiled / "starts_children"), "7", children)
    assert _run(as_user, WITH, "-p", name, "--", *line) == (0, b"4\n")
