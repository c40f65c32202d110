"""No exec keeps the supervisor, and with it the other processes, waiting."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.installation import Installation
from tests.support.policies import policy
from tests.support.recording import RECORDED, prepared
from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S, Reader, await_that, reader

BY = ("link", "mount")
NEVER = ("never-found", "never-told", "never-opened", "never-read")
MOUNTS = ("-p", "agent-observe")  # lets everybody mount
SERVED = "#!/bin/sh\necho ran\n"


class Served:
    """A folder whose files a program serves."""

    def __init__(self, folder: Path, said: Reader) -> None:
        self.folder = folder
        self.said = said

    def paths(self, *names: str) -> list[str]:
        return [str(self.folder / name) for name in names]


def _needs_fuse() -> None:
    if os.getuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("mounting a FUSE file system needs root and /dev/fuse")


@pytest.fixture
def served(as_user: Sigwrap, programs: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """By somebody outside of the session, who mounts it as fusermount would."""
    _needs_fuse()
    folder = as_user.folder / getattr(request, "param", "served")
    folder.mkdir()
    content = as_user.folder / "content"
    content.write_text(SERVED)
    line = [sys.executable, str(programs / "fuse_server.py"), str(folder), str(content)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as server:
        said = reader(server.stdout)
        said.until(rb"ready")
        yield Served(folder, said)
        subprocess.run(["umount", "--lazy", folder], check=True)
        server.kill()


def _says_only_that_they_are_denied(err: bytes) -> None:
    assert all(
        b"sigwrap: denied: " in line and b" (rule builtin:stalled)" in line
        for line in err.splitlines()
    ), err


def _stalled(subject: Sigwrap, programs: Path, *words: str) -> list[str]:
    """What came of each; while others ran."""
    done = subject.run("--no-report", "--", *PYTHON, str(programs / "stalled.py"), *words)
    assert done.returncode == 0, done.stderr
    _says_only_that_they_are_denied(done.stderr)
    *said, bystander = done.stdout.decode().splitlines()
    assert int(bystander.removeprefix("bystander ")) > 0
    return sorted(said)


def _denials(subject: Sigwrap) -> list[str]:
    events = subject.sealed_events("exec_denied")
    assert {event.payload["rule_name"] for event in events} == {"builtin:stalled"}
    return [event.payload["reason"] for event in events]


@pytest.mark.fault(
    "served file systems",
    "a file system never answers",
    sees="the exec is denied after 1 s; others go on",
    keeps="`builtin:stalled`",
)
def test_files_of_a_server_that_never_answers(
    as_user: Sigwrap, programs: Path, served: Served
) -> None:
    """Each is denied; the run ends, though threads of the supervisor's are stuck for good."""
    for path in served.paths(*NEVER[1:]):
        os.close(os.open(path, os.O_PATH))  # the kernel looks up one name of a folder at a time
    said = _stalled(as_user, programs, *served.paths(*NEVER))
    assert said == sorted(f"{name} EACCES" for name in NEVER)
    assert all("no answer within 5 s" in reason for reason in _denials(as_user))
    waits = [served.said.until(rb"waits \S+").decode() for _ in NEVER]
    assert sorted(waits) == sorted(f"waits {name}" for name in NEVER)


def test_the_number_of_blocked_threads_is_bounded(
    as_user: Sigwrap, programs: Path, served: Served
) -> None:
    """An exec that needs a worker when all are blocked is denied as well."""
    _stalled(as_user, programs, *served.paths("never-opened") * 70)
    reasons = _denials(as_user)
    at_once = [reason for reason in reasons if "too many reads of slow files or memory" in reason]
    assert len(reasons) == 70 and len(at_once) >= 6


def test_a_server_that_answers_serves_programs(as_user: Sigwrap, served: Served) -> None:
    (path,) = served.paths("prompt")
    done = as_user.run("--", "sh", "-c", f"{path} && exec {path}")
    assert (done.returncode, done.stdout) == (0, b"ran\nran\n")


@pytest.mark.parametrize("name", ["two-faced", "prompt"])
def test_a_pin_does_not_hold_what_a_program_serves(
    as_user: Sigwrap, served: Served, name: str
) -> None:
    """What sigwrap is shown says nothing of what the kernel is shown."""
    digest = hashlib.sha256(SERVED.encode()).hexdigest()
    rules = f"""
  - {{name: pinned, commands: [{name}], sha256: ["{digest}"], decision: allow}}
  - {{name: not-pinned, commands: [{name}], decision: deny}}
"""
    as_user.policy = policy(as_user.folder, rules)
    (path,) = served.paths(name)
    copy = shutil.copy(as_user.folder / "content", as_user.folder / name)
    Path(copy).chmod(0o755)
    done = as_user.run("--", "sh", "-c", f"{path}; {copy}")
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["rule_name"] == "not-pinned"


@pytest.mark.fault(
    "served file systems",
    "a lease on the program file",
    sees="the exec is denied after 5 s",
    keeps="`builtin:stalled`",
)
def test_a_file_that_somebody_has_a_lease_on(as_user: Sigwrap, programs: Path) -> None:
    """The kernel lets who opens it wait until the lease is given up, 45 s at the most. Another one
    has a path of many folders looked along, through many wrappers."""
    path = shutil.copy("/bin/true", as_user.folder / "leased")
    if as_user.user is not None:
        os.chown(path, as_user.user, as_user.user)
    words = (f"lease:{path}", "wrapped:nowhere-to-be-found")
    assert _stalled(as_user, programs, *words) == ["leased EACCES", "nowhere-to-be-found EACCES"]
    reasons = _denials(as_user)
    assert len(reasons) == 2
    assert "no answer within 5 s: another process holds a lease on the file" in reasons
    assert any("too many paths to search" in reason for reason in reasons)


def test_a_large_file_whose_digest_a_rule_names(as_user: Sigwrap) -> None:
    """It is digested aside, before it is judged and again at the exec stop."""
    large = Path(shutil.copy("/bin/true", as_user.folder / "large"))
    with large.open("ab") as file:
        file.truncate(6 * 1024 * 1024)
    digest = hashlib.sha256(large.read_bytes()).hexdigest()
    rules = f"""
  - {{name: pinned, commands: [large], sha256: ["{digest}"], decision: allow}}
  - {{name: not-pinned, commands: [large], decision: deny}}
"""
    as_user.policy = policy(as_user.folder, rules)
    changed = f"printf x >> {large}; {large}; echo $?"
    large.chmod(0o777)
    done = as_user.run("--", "sh", "-c", f"{large}; echo $?; {changed}")
    assert done.stdout == b"0\n126\n", done.stderr
    rules_met = [
        event.payload["rule_name"]
        for event in as_user.sealed_events("exec_allowed", "exec_denied")
        if event.payload["path"] == str(large)
    ]
    assert rules_met == ["pinned", "not-pinned"]


@pytest.mark.fault(
    "served file systems",
    "arguments in memory that a file system serves",
    sees="the exec is denied after 5 s",
    keeps="`builtin:stalled`",
)
def test_arguments_in_memory_that_a_program_serves(
    as_user: Sigwrap, programs: Path, served: Served
) -> None:
    """The server of a mapped file decides how long a read of that memory takes. In a session, that
    takes a mount, after which workers read memory, also the words of a signal call."""
    as_user.policy = policy(as_user.folder, " []")
    line = [*PYTHON, str(programs / "served_memory.py"), *served.paths("never-read")]
    done = as_user.run("--no-report", "--", *line)
    assert done.returncode == 0
    _says_only_that_they_are_denied(done.stderr)
    execs, calls = "path EACCES argv EACCES word EACCES", "own EFAULT queue EFAULT"
    assert done.stdout.decode() == f"{execs} {calls} bystander True\n"
    assert all("memory that another program serves" in reason for reason in _denials(as_user))
    said = [event.payload["message"] for event in as_user.sealed_events("signal_blocked")]
    assert set(said) == {"its arguments could not be read in time"}


def test_an_address_in_memory_that_a_program_serves(
    as_user: Sigwrap, programs: Path, served: Served
) -> None:
    as_user.policy = policy(as_user.folder, " []", ONE_HOST)
    line = [*PYTHON, str(programs / "served_address.py"), *served.paths("never-read")]
    done = as_user.run("--no-report", "--", *line)
    assert done.stdout == b"EPERM\n", done.stderr
    (denied,) = as_user.sealed_events("connection_denied")
    assert "memory that another program serves" in denied.payload["reason"]


@pytest.mark.parametrize("served", ["served", "m\frw\f-\fext4", "m\r"], indirect=True)
def test_descriptors_that_somebody_flushes_never(
    as_user: Sigwrap, programs: Path, served: Served
) -> None:
    """The supervisor takes a duplicate of what a call names, and closes it again. The folder's name
    stands in mountinfo beside the type of its file system."""
    rules = """
  - {name: no-id, commands: [id], decision: deny, message: "not here"}
"""
    as_user.policy = policy(as_user.folder, rules)
    line = [*PYTHON, str(programs / "served_descriptors.py"), *served.paths("never-flushed")]
    done = as_user.run("--", *line)
    assert done.stdout == b"13 0\n"


def test_descriptors_of_an_overlay_on_top_of_that(
    as_user: Sigwrap, programs: Path, served: Served
) -> None:
    """Its own type says nothing of what lies beneath."""
    for name in ("empty", "merged"):
        (as_user.folder / name).mkdir()
    lower, merged = f"{served.folder}:{as_user.folder / 'empty'}", as_user.folder / "merged"
    mount = ["mount", "-t", "overlay", "-o", f"lowerdir={lower}", "overlay", str(merged)]
    namespaces = ["unshare", "-m"]
    if as_user.native(*namespaces, *mount).returncode != 0:
        pytest.skip("needs root, and overlays")
    line = [*PYTHON, str(programs / "served_descriptors.py"), str(merged / "never-flushed")]
    both = ["sh", "-c", f'{" ".join(mount)} && exec "$@"', "sh", *line]
    done = as_user.run(*MOUNTS, "--", *namespaces, *both)
    assert done.stdout.endswith(b"\n0 0\n"), done.stderr


@contextmanager
def _led_astray(way: Path, served: Served, by: str) -> Iterator[None]:
    """What would be found by this way is asked of the server, which doesn't answer."""
    if by == "link":
        away = way.with_name("away")
        way.rename(away)
        way.symlink_to(served.folder)
        yield
        way.unlink()
        away.rename(way)
    else:
        subprocess.run(["mount", "--bind", served.folder, way], check=True)
        yield
        subprocess.run(["umount", "--lazy", way], check=True)  # somebody may be looking


@pytest.mark.parametrize("by", BY)
def test_a_way_to_the_log_that_leads_into_what_is_served(
    as_user: Sigwrap, served: Served, by: str
) -> None:
    way = as_user.folder / "way"
    as_user.native("mkdir", str(way))
    as_user.store = way / "never-found" / "store"
    as_user.env["SIGWRAP_STORE"] = str(as_user.store)
    process, _ = as_user.start_ready("--", "sh", "-c", "echo ready; read line; /bin/echo after")
    said = reader(process.stderr)
    with _led_astray(way, served, by):
        assert b"can't rewrite the event log" in said.line()
    said.until(rb"sigwrap wrote it again\n")
    process.say(b"\n")
    assert process.wait(PATIENCE_S) == 0
    assert as_user.sealed_events("store_tampered")


def test_a_way_to_the_stub_that_leads_into_what_is_served(as_user: Sigwrap, served: Served) -> None:
    way = as_user.folder / "way"
    moved = way / "never-found" / "site-packages"
    moved.parent.mkdir(parents=True)
    Installation.copy_to(as_user).folder.rename(moved)
    prepared(as_user, "#!/bin/sh\necho recorded\n")
    rules = policy(as_user.folder, RECORDED % {"folder": as_user.folder})
    script = "echo ready; while read x; do ./tool; echo $?; done"
    line = Installation(moved, as_user).line("-p", rules, "--", "sh", "-c", script)
    process = as_user.start_line(line)
    said = reader(process.stdout)
    assert said.line() == b"ready"
    for by in BY:
        with _led_astray(way, served, by):
            process.say(b"\n")
            assert said.line() == b"126", by
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    reasons = [each.payload["reason"] for each in as_user.sealed_events("exec_denied")]
    assert len(reasons) == len(BY)
    assert all("sigwrap's own file has changed" in reason for reason in reasons)


def test_the_wall_time_holds_meanwhile(as_user: Sigwrap, programs: Path, served: Served) -> None:
    as_user.policy = policy(as_user.folder, " []", "limits: {wall_time: 1s}")
    line = [*PYTHON, str(programs / "stalled.py"), *served.paths("never-read")]
    done = as_user.run("--", "sh", "-c", 'while :; do "$@"; done', "sh", *line)
    assert b"wall_time" in done.stderr
    assert as_user.sealed_events("limit_exceeded")


@pytest.fixture
def serves_itself(sigwrap: Sigwrap, programs: Path) -> Iterator[Callable[[str], list[str]]]:
    _needs_fuse()
    folder, content = sigwrap.folder / "served", sigwrap.folder / "content"
    folder.mkdir()
    content.write_text(SERVED)
    words = (programs / "fuse_server.py", folder, content, sigwrap.store)
    yield lambda how: [*PYTHON, str(programs / "serves_itself.py"), how, *map(str, words)]
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.fault(
    "served file systems",
    "a file system of the session blocks all worker threads",
    sees="execs are denied after 5 s, until its server ends; Ctrl+C ends the run",
    keeps="`builtin:stalled`",
)
def test_where_all_threads_are_blocked_execs_are_denied_until_the_server_ends(
    sigwrap: Sigwrap, serves_itself: Callable[[str], list[str]]
) -> None:
    """After a mount in the session, workers read the arguments of every exec."""
    done = sigwrap.run(*MOUNTS, "--", *serves_itself("killed"), within_s=2 * PATIENCE_S)
    assert done.stdout == b"denied 70\nbystander denied\nbystander 10\n", done.stderr
    events = sigwrap.sealed_events("exec_denied")
    assert {event.payload["rule_name"] for event in events} == {"builtin:stalled"}


def test_where_all_threads_are_blocked_an_interrupt_ends_the_run(
    sigwrap: Sigwrap, serves_itself: Callable[[str], list[str]]
) -> None:
    process = sigwrap.start(*MOUNTS, "--", *serves_itself("waits"))
    reader(process.stdout).until(rb"bystander denied\n")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGINT
    assert sigwrap.sealed_events("session_ended")


def test_whoever_keeps_the_supervisor_itself_waiting_ends(
    sigwrap: Sigwrap, serves_itself: Callable[[str], list[str]]
) -> None:
    """The journal's own lock: no deadline helps there, so somebody else looks at the supervisor."""
    done = sigwrap.run(*MOUNTS, "--", *serves_itself("journal"), within_s=2 * PATIENCE_S)
    assert b"the supervisor was blocked" in done.stderr
    assert done.returncode == 128 + signal.SIGKILL
    assert sigwrap.sealed_events("session_ended")


# The flags of an open file, and locks in the kernel, can be the tree's.

NO_ID = """
  - {name: no-id, commands: [id], decision: deny, message: "not here"}
"""
ONE_HOST = "network_rules: [{name: one, destinations: [192.0.2.1], protocol: tcp, decision: deny}]"


def test_a_socket_whose_nonblocking_flag_another_process_clears(
    as_user: Sigwrap, programs: Path
) -> None:
    as_user.policy = policy(as_user.folder, NO_ID, ONE_HOST)
    line = [*PYTHON, str(programs / "clears_nonblocking.py"), "100"]
    done = as_user.run("--", *line)
    assert (done.returncode, done.stdout) == (0, b"bystander 100\n"), done.stderr


def test_connections_that_wait_for_room_in_a_servers_queue(
    as_user: Sigwrap, programs: Path
) -> None:
    as_user.policy = policy(as_user.folder, NO_ID, ONE_HOST)
    done = as_user.run("--", *PYTHON, str(programs / "waits_for_room.py"), "100")
    assert (done.returncode, done.stdout) == (0, b"bystander 100\n"), done.stderr


@pytest.mark.fault(
    "served file systems",
    "a process holds the lock of a socket or of standard error",
    sees="others go on; a call that needs the lock fails with EAGAIN after 5 s",
    keeps="complete",
)
@pytest.mark.parametrize("how", ["socket", "pipe", "file", "own", "async"])
def test_a_lock_that_a_process_holds_while_it_copies_from_served_memory(
    as_user: Sigwrap, programs: Path, how: str
) -> None:
    """In a user namespace, any user can mount what a program serves."""
    _needs_fuse()
    folder, content, device = (as_user.folder / name for name in ("served", "content", "fuse"))
    as_user.native("mkdir", str(folder))
    content.write_text(SERVED)
    os.mknod(device, stat.S_IFCHR, os.makedev(10, 229))
    device.chmod(0o666)
    as_user.env["FUSE"] = str(device)
    as_user.policy = policy(as_user.folder, NO_ID, ONE_HOST)
    line = [*PYTHON, str(programs / "holds_locks.py"), how, str(programs / "fuse_server.py")]
    done = as_user.run("--", "unshare", "-Urm", *line, str(folder), str(content))
    assert (done.returncode, done.stdout) == (0, b"bystander 100\n"), done.stderr


@pytest.mark.skipif(
    not os.access("/dev/userfaultfd", os.W_OK), reason="needs /dev/userfaultfd, which is root's"
)
def test_nobody_serves_memory_by_a_device(sigwrap: Sigwrap) -> None:
    """Whoever reads it would wait, and the supervisor reads what an exec is about."""
    script = (
        "import fcntl, os\n"
        "device = os.open('/dev/userfaultfd', os.O_RDWR)\n"
        "try: print(fcntl.ioctl(device, 0xAA00, 0))\n"
        "except PermissionError as refusal: print('refused', refusal.errno)\n"
    )
    done = sigwrap.run("-p", "agent-observe", "--", *PYTHON, "-c", script)
    assert done.stdout == b"refused 1\n", done.stderr


# Whoever closes a socket last may have to wait; the supervisor takes sockets, and doesn't.

ASK = "name: ask, signals: ['@all'], target: children, decision: approve"


@pytest.mark.parametrize(("verdict", "result"), [("approve", 0), ("deny", "EPERM")])
def test_a_socket_that_is_closed_while_somebody_is_asked(
    users_lab: Lab, programs: Path, verdict: str, result: object
) -> None:
    lab = users_lab.under(ASK)
    subject = lab.subject
    line = python(programs / "lingers.py", "asked")
    process = subject.start("--approvals", "control", "--no-report", "--", *line)
    said = reader(process.stdout)

    def answer(number: int, word: str) -> None:
        def asked() -> list[str]:
            events = subject.events("approval_requested")
            return [event.payload["approval_id"] for event in events]

        await_that(lambda: len(asked()) == number)
        done = subject.native(UNDER_TEST, word, asked()[-1])
        assert done.returncode == 0, done.stderr

    subject.await_event("session_started")
    answer(1, "approve")
    await_that(lambda: len(subject.events("approval_requested")) == 2)
    process.say(b"close it\n")
    assert json.loads(said.line()) == "closed"
    answer(2, verdict)
    process.say(b"run\n")
    assert json.loads(said.line()) == [result, 0]
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0


def test_a_socket_in_the_queue_of_one_that_is_refused(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(ASK)
    line = python(programs / "lingers.py", "queue")
    done = lab.subject.run("--approvals", "control", "--no-report", "--", *line)
    assert (done.returncode, done.stdout) == (0, b"0\n"), done.stderr
