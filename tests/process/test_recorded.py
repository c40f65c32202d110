"""What took effect is in the log: every exec, every signal, by every route, after any death."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import EXECS, PYTHON, REFUSED, Sigwrap
from tests.support.processes import Roles
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, Reader, reader


@pytest.fixture
def sigwrap(sigwrap: Sigwrap) -> Sigwrap:
    """Nothing is denied but signals to sigwrap itself, so every route can be walked to its end."""
    sigwrap.policy = "agent-observe"
    return sigwrap


# Plain runs


def test_every_exec_of_a_script_in_order(sigwrap: Sigwrap, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    text = "#!/bin/sh\ncd inner\n/bin/echo one 'two words' ''\nexec env true\n"
    script(tmp_path, "tool", text)
    assert sigwrap.run("--", "./tool", "x").returncode == 0
    execs = sigwrap.sealed_events(*EXECS)
    inner = str(tmp_path / "inner")
    seen = [(e.payload["path"], e.payload["argv"], e.payload["cwd"]) for e in execs]
    true = shutil.which("true")
    assert seen == [
        ("./tool", ["./tool", "x"], str(tmp_path)),
        ("/bin/echo", ["/bin/echo", "one", "two words", ""], inner),
        (shutil.which("env"), ["env", "true"], inner),
        (true, ["true"], inner),
    ]
    assert [e.payload["depth"] for e in execs] == [0, 1, 0, 0]
    command = sigwrap.events("session_started")[0].payload["command_pid"]
    assert [e.pid == command for e in execs] == [True, False, True, True]
    assert {e.payload["decision"] for e in execs} == {"audit"}


def test_depth_counts_births_not_execs(sigwrap: Sigwrap) -> None:
    text = "(sh -c '(setsid sh -c \"/bin/true deep; :\"; :); :'; :) & wait"
    assert sigwrap.run("--", "sh", "-c", text).returncode == 0
    (deep,) = (e for e in sigwrap.events(*EXECS) if "deep" in e.payload["argv"])
    assert deep.payload["depth"] >= 3


def test_a_search_along_path_leaves_only_the_hit(sigwrap: Sigwrap, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    hit = script(folders[2], "tool", "#!/bin/sh\nexit 5\n")
    path = ":".join([*map(str, folders), os.environ["PATH"]])
    text = f"import os; os.environ['PATH'] = {path!r}; os.execvp('tool', ['tool'])"
    assert sigwrap.run("--", *PYTHON, "-c", text).returncode == 5
    assert [e.payload["path"] for e in sigwrap.sealed_events(*EXECS)][1:] == [hit]


def test_an_exec_that_fails_gets_the_kernels_errno(sigwrap: Sigwrap, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    text = """
import errno, os
for path in ("", "absent", "plain", "plain/x", ".", "loop", "a" * 300, "b" * 5000, "/proc/self/x"):
    try:
        os.execv(path or "/", ["x"]) if path else os.execve(path, ["x"], {})
    except OSError as error:
        print(path[:9], errno.errorcode[error.errno])
"""
    native = sigwrap.native(*PYTHON, "-c", text)
    wrapped = sigwrap.run("--", *PYTHON, "-c", text)
    assert native.stderr == wrapped.stderr == b""
    assert wrapped.stdout == native.stdout


CALLS = """
import ctypes, os, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *words):
    words = [ctypes.c_long(w) if isinstance(w, int) else w for w in words]
    return libc.syscall(ctypes.c_long(number), *words)
USR1, WINCH = int(signal.SIGUSR1), int(signal.SIGWINCH)
signal.signal(signal.SIGUSR1, lambda *_: None)
me = os.getpid()
r, w = os.pipe()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.write(w, b"x")
    signal.pause()
os.read(r, 1)
info = ctypes.create_string_buffer(128)
struct.pack_into("iiiiiiQ", info, 0, USR1, 0, -1, 0, me, os.getuid(), 77)
garbage = 0xdeadbeef << 32
def report(name, result):
    print(name, result, ctypes.get_errno() if result < 0 else 0, flush=True)
"""


def _run_calls(sigwrap: Sigwrap, text: str) -> list[dict[str, Any]]:
    """What the calls recorded; their results must be as natively."""
    line = [*PYTHON, "-c", f"{CALLS}\n{text}\nos.kill(child, 9)\nos.wait()\n"]
    native = sigwrap.native(*line)
    wrapped = sigwrap.run("--", *line)
    assert (native.returncode, native.stderr) == (0, b"")
    assert (wrapped.returncode, wrapped.stderr) == (0, b"")
    assert wrapped.stdout == native.stdout
    payloads = [event.payload for event in sigwrap.sealed_events("signal_sent")]
    assert payloads[-1]["signal_name"] == "SIGKILL"
    return payloads[:-1]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("kill", "call(62, {target}, USR1)"),
        ("tkill", "call(200, {target}, USR1)"),
        ("tgkill", "call(234, {target}, {target}, USR1)"),
        ("rt_sigqueueinfo", "call(129, {target}, USR1, info)"),
        ("rt_tgsigqueueinfo", "call(297, {target}, {target}, USR1, info)"),
        ("pidfd_send_signal", "call(424, os.pidfd_open({target}), USR1, None, 0)"),
    ],
)
@pytest.mark.parametrize("target", ["me", "child"])
def test_each_call_is_one_event(sigwrap: Sigwrap, name: str, call: str, target: str) -> None:
    (sent,) = _run_calls(sigwrap, f"report('sent', {call.format(target=target)})")
    assert (sent["syscall"], sent["signal_name"]) == (name, "SIGUSR1")
    assert sent["target_type"] == {"me": "self", "child": "children"}[target]
    assert (sent["target_pid"] == sent["source_pid"]) == (target == "me")


def test_garbage_in_the_upper_halves_hides_nothing(sigwrap: Sigwrap) -> None:
    text = """
report("kill", call(62, garbage | child, garbage | USR1))
report("kill0", call(62, garbage | child, garbage))
report("tgkill", call(234, garbage | child, garbage | child, garbage | USR1))
report("fcntl", call(72, garbage | r, garbage | 8, garbage | me))
report("sig", call(72, garbage | r, garbage | 10, garbage | USR1))
"""
    sent = _run_calls(sigwrap, text)
    assert [p["syscall"] for p in sent] == ["kill", "tgkill", "fcntl", "fcntl"]
    assert sent[0]["target_type"] == "children"
    assert sent[0]["target_pid"] == sent[1]["target_pid"]
    assert sent[0]["signal_name"] == sent[1]["signal_name"] == "SIGUSR1"
    assert sent[2]["target_type"] == "self"
    assert sent[3]["signal_name"] == "SIGUSR1"


def test_a_question_leaves_no_event(sigwrap: Sigwrap) -> None:
    text = """
for target in (me, child, 1, 0, 999999999, -999999999):
    report(target if target in (0, 1) else "pid", call(62, target, 0))
report("tgkill", call(234, me, me, 0))
report("pidfd", call(424, os.pidfd_open(child), 0, None, 0))
"""
    assert _run_calls(sigwrap, text) == []


def test_relations(sigwrap: Sigwrap) -> None:
    text = """
grandparent = me
other = os.fork()
if other == 0:
    os.kill(grandparent, USR1)      # root, above
    os.kill(child, USR1)            # sibling
    nephew = os.fork()
    if nephew == 0:
        os.kill(grandparent, USR1)
        os._exit(0)
    os.waitpid(nephew, 0)
    os._exit(0)
os.waitpid(other, 0)
try:
    os.kill(999999999, USR1)
except ProcessLookupError:
    pass
signal.signal(signal.SIGWINCH, signal.SIG_IGN)
os.kill(0, WINCH)
os.kill(-os.getpgrp(), WINCH)
"""
    kinds = [p["target_type"] for p in _run_calls(sigwrap, text)]
    assert kinds[:3] == ["root", "siblings", "root"]
    # One event for each member of the group; nobody is there under the number that is too high.
    assert sorted(kinds[3:]) == ["children", "children", "self", "self"]
    blocked = sigwrap.events("signal_blocked")
    assert {event.payload["target_type"] for event in blocked} == {"parent"}


def test_a_signal_outside_names_its_target(sigwrap: Sigwrap) -> None:
    outside = sigwrap.start_line(["cat"])
    assert sigwrap.run("--", "kill", "-WINCH", str(outside.pid)).returncode == 0
    (sent,) = sigwrap.sealed_events("signal_sent")
    assert sent.payload["target_type"] in ("user", "external")
    assert sent.payload["target_cmd"] == "cat"
    assert sent.payload["source_cmd"] == "kill"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("fcntl", "call(72, r, 8, child)"),
        ("fcntl", "call(72, r, 15, struct.pack('ii', 1, child))"),
        ("fcntl", "call(72, r, 15, struct.pack('ii', 0, child))"),
        ("fcntl", "call(72, r, 10, 9)"),
        ("fcntl", "call(72, r, garbage | 8, garbage | child)"),
        ("ioctl", "call(16, s, 0x8901, struct.pack('i', child))"),
        ("ioctl", "call(16, s, 0x8902, struct.pack('i', child))"),
        ("ioctl", "call(16, s, garbage | 0x8901, struct.pack('i', child))"),
    ],
)
def test_side_doors(sigwrap: Sigwrap, name: str, call: str) -> None:
    text = f"import _socket; s = _socket.socket().detach()\nreport('done', {call})"
    (sent,) = _run_calls(sigwrap, text)
    assert sent["syscall"] == name
    if "child" in call:
        assert sent["target_type"] == "children"


@pytest.mark.parametrize(
    "call", ["call(72, r, 8, -os.getpgrp())", "call(72, r, 15, struct.pack('ii', 2, os.getpgrp()))"]
)
def test_a_side_door_to_the_group_that_sigwrap_is_in(sigwrap: Sigwrap, call: str) -> None:
    """Denied: the kernel would signal sigwrap too. And it is in the log."""
    text = f"report('done', {call})\nos.kill(child, 9)\nos.wait()\n"
    done = sigwrap.run("--", *PYTHON, "-c", f"{CALLS}\n{text}")
    assert (done.returncode, done.stdout) == (0, b"done -1 1\n")
    blocked = [event.payload for event in sigwrap.sealed_events("signal_blocked")]
    assert {payload["syscall"] for payload in blocked} == {"fcntl"}


def test_a_side_door_that_kills_is_in_the_log(sigwrap: Sigwrap) -> None:
    text = """
import fcntl
victim = os.fork()
if victim == 0:
    signal.pause()
a, b = os.pipe()
fcntl.fcntl(a, fcntl.F_SETOWN, victim)
fcntl.fcntl(a, 10, 9)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
os.write(b, b"x")
print(os.waitpid(victim, 0)[1])
"""
    sent = _run_calls(sigwrap, text)
    assert [p["syscall"] for p in sent] == ["fcntl", "fcntl"]
    assert sent[1]["signal"] == 9
    assert sent[0]["target_type"] == "children"


def test_execs_by_descriptor(sigwrap: Sigwrap) -> None:
    text = """
import os, shutil
true = shutil.which("true")
def spawn(run):
    if os.fork() == 0:
        run()
        os._exit(9)
    assert os.wait()[1] == 0
fd = os.open(true, os.O_RDONLY)
spawn(lambda: os.execve(fd, ["by fd"], {}))
memory = os.memfd_create("hidden")
os.sendfile(memory, fd, 0, 1 << 30)
spawn(lambda: os.execve(memory, ["by memfd"], {}))
spawn(lambda: os.execv(f"/proc/self/fd/{fd}", ["by proc"]))
import ctypes
libc = ctypes.CDLL(None)
folder = os.open(os.path.dirname(true), os.O_RDONLY)
argv = (ctypes.c_char_p * 2)(b"by folder", None)
spawn(lambda: libc.syscall(322, folder, b"true", argv, None, 0))
empty = (ctypes.c_char_p * 1)(None)
spawn(lambda: libc.syscall(322, fd, b"", (ctypes.c_char_p * 2)(b"empty path", None), None, 0x1000))
"""
    done = sigwrap.run("--", *PYTHON, "-c", text)
    assert (done.returncode, done.stderr) == (0, b"")
    execs = sigwrap.sealed_events(*EXECS)[1:]
    names = ["by fd", "by memfd", "by proc", "by folder", "empty path"]
    assert [e.payload["argv"] for e in execs] == [[name] for name in names]


def test_an_exec_with_a_bad_pointer_does_not_run_and_harms_nobody(sigwrap: Sigwrap) -> None:
    text = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for path, argv in ((1, 0), (0, 0), (b"/bin/true", 1), (1 << 63, 0), (2**64 - 8, 2**64 - 8)):
    path = ctypes.c_ulong(path) if isinstance(path, int) else path
    libc.syscall(ctypes.c_long(59), path, ctypes.c_ulong(argv), None)
    print(ctypes.get_errno(), flush=True)
libc.syscall(ctypes.c_long(72), 0, 15, ctypes.c_ulong(8))
print(ctypes.get_errno())
"""
    native = sigwrap.native(*PYTHON, "-c", text)
    wrapped = sigwrap.run("--", *PYTHON, "-c", text)
    assert (wrapped.returncode, wrapped.stdout, wrapped.stderr) == (0, native.stdout, b"")
    sigwrap.verify(ended=True)


def test_a_long_argv_is_marked_truncated(sigwrap: Sigwrap) -> None:
    words = ["x" * 1000] * 200
    assert sigwrap.run("--", "true", *words).returncode == 0
    (event,) = sigwrap.sealed_events(*EXECS)
    assert event.payload["truncated"] is True
    assert event.payload["argv"][:3] == ["true", "x" * 1000, "x" * 1000]


def test_names_that_try_to_forge_the_log(sigwrap: Sigwrap, tmp_path: Path) -> None:
    name = 'a\t1\t2\tsession_ended\n"}\x1b[2J\u202e'
    program = script(tmp_path, name, "#!/bin/sh\nkill -WINCH $$\n")
    assert sigwrap.run("--", program, name).returncode == 0
    (event,) = (e for e in sigwrap.sealed_events(*EXECS))
    assert event.payload["argv"] == [program, name]


def test_threads_signal_under_their_process(sigwrap: Sigwrap) -> None:
    text = """
import threading
done = threading.Thread(target=lambda: os.kill(me, WINCH))
done.start()
done.join()
def by_thread():
    call(234, me, threading.get_native_id(), WINCH)
done = threading.Thread(target=by_thread)
done.start()
done.join()
"""
    sent = _run_calls(sigwrap, text)
    seen = [(p["syscall"], p["target_type"]) for p in sent]
    assert seen == [("kill", "self"), ("tgkill", "self")]
    assert all(p["source_pid"] == p["target_pid"] for p in sent)


# Other ABIs


def test_the_i386_door(sigwrap: Sigwrap, compiled: Path) -> None:
    program = str(compiled / "i386")
    native = sigwrap.native(program)
    if native.returncode in (77, 78) or native.returncode < 0:
        pytest.skip("no i386 ABI on this kernel")
    wrapped = sigwrap.run("--", program)
    assert (wrapped.returncode, wrapped.stdout) == (0, native.stdout)
    assert wrapped.stdout.count(b"by int 0x80") == 2
    sent = [e.payload for e in sigwrap.sealed_events("signal_sent")]
    calls = ["kill", "tkill", "tgkill", "fcntl", "fcntl64", "fcntl64"]
    assert [p["syscall"] for p in sent] == calls
    assert {p["target_type"] for p in sent[:5]} == {"self"}
    execs = [e.payload for e in sigwrap.events(*EXECS)][1:]
    assert [e["syscall"] for e in execs] == ["execve", "execveat"]
    assert [e["argv"] for e in execs] == [["/bin/echo", "by int 0x80"]] * 2


def test_an_x32_call_gets_enosys_and_an_event(sigwrap: Sigwrap) -> None:
    text = "report('x32', call(0x40000000 | 62, child, USR1)); report('x', call(0x40000000 | 520))"
    line = [*PYTHON, "-c", f"{CALLS}\n{text}\nos.kill(child, 9)\nos.wait()\n"]
    done = sigwrap.run("--", *line)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"x32 -1 38\nx -1 38\n", b"")
    refused = sigwrap.sealed_events("abi_refused")
    assert [event.payload["syscall_number"] for event in refused] == [62, 520]


def test_a_filter_of_the_trees_own_hides_nothing(sigwrap: Sigwrap) -> None:
    """It can allow, and it can refuse; it can't answer in our place."""
    text = """
allow = struct.pack("<HBBI", 6, 0, 0, 0x7fff0000)
code = ctypes.create_string_buffer(allow)
program = struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code))
report("no_new_privs", libc.prctl(38, 1, 0, 0, 0))
report("filter", call(317, 1, 0, program))
report("listener", call(317, 1, 8, program) if os.environ.get("SIGWRAP_SESSION") else -1)
call(62, child, USR1)
if os.fork() == 0:
    os.execv("/bin/true", ["hidden"])
os.wait()
"""
    line = [*PYTHON, "-c", f"{CALLS}\n{text}\nos.kill(child, 9)\nos.wait()\n"]
    done = sigwrap.run("--", *line)
    assert done.returncode == 0, done.stderr
    assert b"filter 0 0\nlistener -1 16\n" in done.stdout
    assert [e.payload["argv"] for e in sigwrap.sealed_events(*EXECS)][1:] == [["hidden"]]
    names = [e.payload["signal_name"] for e in sigwrap.events("signal_sent")]
    assert names == ["SIGUSR1", "SIGKILL"]


# SIGKILL of the supervisor, at any moment


def _kill_in_the_storm(sigwrap: Sigwrap, storm: Path, seed: int, victim: str) -> None:
    chance = random.Random(seed)
    effects = chance.choice((chance.randrange(1, 20), chance.randrange(20, 500)))
    process = sigwrap.start("--", str(storm))
    said = reader(process.stdout)
    for _ in range(effects):
        said.line()
    pid = getattr(Roles.of(process.pid), victim) if victim != "outer" else process.pid
    os.kill(pid, signal.SIGKILL)
    said.rest()  # up to the last one's end: nobody runs on
    status = process.wait(PATIENCE_S)
    if victim == "supervisor":
        assert status == REFUSED
        line = Reader(process.stderr.fileno()).rest().decode()  # type: ignore[union-attr]
        assert re.fullmatch(r"sigwrap: the supervisor died of signal 9[^\n]*\n", line)
        sigwrap.verify(ended=False)
    recorded_execs: Counter[tuple[int, str]] = Counter()
    recorded_signals: Counter[int] = Counter()
    for event in sigwrap.events():
        if event.type in EXECS and len(event.payload["argv"]) == 4:
            recorded_execs[event.pid, event.payload["argv"][3]] += 1
        elif event.type == "signal_sent":
            recorded_signals[event.pid] += 1
    happened = [line.split() for line in said.seen.decode().splitlines()]
    assert len(happened) >= effects
    for what, subject, number in happened:
        if what == "exec":
            assert recorded_execs[int(subject), number] == 1, f"exec {number} is not in the log"
        else:
            assert recorded_signals[int(subject)] == 1, f"signal {number} is not in the log"


@pytest.mark.parametrize("seed", range(50))
def test_killed_in_a_storm_the_log_holds_what_happened(
    sigwrap: Sigwrap, compiled: Path, seed: int
) -> None:
    _kill_in_the_storm(sigwrap, compiled / "storm", seed, "supervisor")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("victim", ["supervisor", "front"])
def test_the_same_for_any_user(as_user: Sigwrap, compiled: Path, seed: int, victim: str) -> None:
    _kill_in_the_storm(as_user, compiled / "storm", 1000 + seed, victim)
