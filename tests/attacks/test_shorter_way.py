"""What goes the shorter way is judged, recorded and compared like what goes the long one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.repeated import assert_repeated, noting_its_stack
from tests.support.waiting import await_that

WITH = {"SIGWRAP_PURE_PYTHON": ""}
WITHOUT = {"SIGWRAP_PURE_PYTHON": "1"}
BOTH_WAYS = pytest.mark.parametrize("env", [WITH, WITHOUT], ids=["with", "without"])
ROOT_SWAPS = 200
SETTLED_NS = 200_000_000

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sigwrap.exec._repeated") is None,
    reason="needs the extension: a C compiler and Python's headers at make setup",
)


def test_a_root_that_another_thread_swaps(sigwrap: Sigwrap, compiled: Path) -> None:
    """The file is the very one that was judged, but it would load its libraries from there."""
    if os.getuid() != 0:
        pytest.skip("chroot needs root")
    tool, evil = sigwrap.folder / "sees_mark", sigwrap.folder / "evil"
    shutil.copy(compiled / "sees_mark", tool)
    (evil / sigwrap.folder.relative_to("/")).mkdir(parents=True)
    os.link(tool, evil / tool.relative_to("/"))
    (evil / "mark").touch()
    # What has just been changed may be changed again within the same tick of a clock, and is looked
    # at each time.
    await_that(lambda: time.time_ns() - tool.stat().st_ctime_ns > SETTLED_NS)
    rules = f"\n  - {{name: rest, commands: [flips_root, {tool}], decision: allow}}\n"
    name = policy(sigwrap.folder, rules)
    text = Path(name).read_text().replace("{command: allow", "{command: deny")
    Path(name).write_text(text)
    line = (str(compiled / "flips_root"), str(evil), str(tool), str(ROOT_SWAPS))
    done = sigwrap.run("-p", name, "--", *line, env=WITH)
    assert (done.returncode, done.stdout) == (0, b"")
    assert_repeated(sigwrap, 1)
    reasons = {event.payload["reason"] for event in sigwrap.events("exec_verification_failed")}
    assert all(reason.startswith("its root directory changed") for reason in reasons)


@BOTH_WAYS
def test_who_ran_something_else_between_is_no_peer(as_user: Sigwrap, env: dict[str, str]) -> None:
    """Not even where it runs the same program again at once."""
    rules = "\nsignal_rules:\n  - {name: p, signals: [WINCH], target: peers, decision: allow}\n"
    name = policy(as_user.folder, " []" + rules)
    text = Path(name).read_text().replace("signal: allow", "signal: deny")
    Path(name).write_text(text)
    line = """
for i in 1 2 3 4; do /bin/bash -c 'exec /bin/dash -c "kill -WINCH '$$' && echo went"'; done
"""
    done = as_user.run("-p", name, "--", "/bin/dash", "-c", line, env=env)
    assert done.stdout == b"", done.stderr
    assert len(as_user.sealed_events("signal_blocked")) == 4


@BOTH_WAYS
def test_a_fork_of_what_its_parent_ran_before(as_user: Sigwrap, env: dict[str, str]) -> None:
    """It is as deep as a child of its parent, and not as the deepest of all."""
    text = """
dash -c 'dash -c "dash -c \\"dash -c true; true\\"; true"; true'
for i in 1 2 3 4; do
    /bin/bash -c 'exec /bin/cat < <(
        while read name < /proc/$$/comm; [ "$name" != cat ]; do :; done; exec /bin/echo)'
done
"""
    name = policy(as_user.folder, " []\n")
    done = as_user.run("-p", name, "--", "dash", "-c", text, env=env)
    assert done.stdout == b"\n" * 4, done.stderr
    events = as_user.sealed_events("exec_allowed")
    depths = [each.payload["depth"] for each in events if each.payload["path"] == "/bin/echo"]
    assert depths == [2] * 4


def test_a_loop_under_ever_other_names_is_noticed_as_it_comes(as_user: Sigwrap) -> None:
    """Each name makes other facts, but it is the same exec."""
    text = """
i=0; while [ $i -lt 500 ]; do (echo $i >/proc/self/comm; exec /bin/true); i=$((i+1)); done
"""
    more = "watch: {loop: {same_exec: 50, within: 60s, action: kill}}"
    name = policy(as_user.folder, " []\n", more)
    text = noting_its_stack(as_user, text)
    as_user.run("-p", name, "--", "dash", "-c", text, env=WITH)
    ran = [event for event in as_user.sealed_events() if event.payload.get("path") == "/bin/true"]
    assert 50 <= len(ran) <= 51
    assert_repeated(as_user, 40)


@BOTH_WAYS
def test_a_folder_of_a_thread_s_own(as_user: Sigwrap, env: dict[str, str]) -> None:
    """By /proc/self its leader's is meant."""
    for name, program in {"leaders": "/bin/echo", "own": "/usr/bin/printf"}.items():
        (as_user.folder / name).mkdir()
        shutil.copy(program, as_user.folder / name / "tool")
    text = """
import ctypes, os, threading
def run():
    assert ctypes.CDLL(None).unshare(0x200) == 0
    os.chdir("../own")
    os.execv("/proc/self/cwd/tool", ["tool", "ran"])
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
    leaders = as_user.folder / "leaders"
    name = policy(as_user.folder, " []\n")
    done = as_user.run("-p", name, "--", *PYTHON, "-c", text, cwd=leaders, env=env)
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done.stderr


def test_a_long_event_is_cut_in_the_same_way(as_user: Sigwrap) -> None:
    text = """
for i in 1 2 3; do
    for last in 60 120 180 240 300 360 420 960; do
        /usr/bin/true $1 $1 $1 $1 $1 $1 $1 $1 $(printf "%0${last}d" 0)
    done
done
"""
    name = policy(as_user.folder, " []\n")
    recorded = []
    for env in (WITH, WITHOUT):
        shutil.rmtree(as_user.store, ignore_errors=True)
        as_user.run("-p", name, "--", "dash", "-c", text, "sh", "x" * 960, env=env)
        payloads = [event.payload for event in as_user.sealed_events("exec_allowed")]
        # Where a word is cut hangs on how many digits the other figures have.
        recorded.append([(list(each), each.get("cut"), len(each["argv"])) for each in payloads])
    assert recorded[0] == recorded[1]
