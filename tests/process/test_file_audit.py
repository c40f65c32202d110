"""Rules that audit files: each call that writes, makes, deletes or renames is recorded with its
path, and comes out as natively."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from sigwrap import calls
from sigwrap.calls import I386, X86_64
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import HEADERS

AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_FOLLOW = -100, 0x200, 0x400
RENAME_NOREPLACE, RENAME_EXCHANGE, RESOLVE_IN_ROOT = 1, 2, 0x10
CREATES = os.O_WRONLY | os.O_CREAT
NOWHERE = 1  # a pointer
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root")

RULES = """
  - {name: devices, paths: [/dev, /proc], operations: [write, create, delete], decision: allow}
  - {name: quiet, paths: [WORK/quiet], operations: [write, create, delete], decision: allow}
  - {name: marked, paths: [/], operations: [write, create, delete], decision: audit}
"""


class Line(NamedTuple):
    call: str
    arguments: tuple[object, ...]
    records: tuple[str, ...]


def line(call: str, *arguments: object, records: tuple[str, ...] = ()) -> Line:
    return Line(call, arguments, (*records, "")[:3])


def made(path: str, to: str = "") -> tuple[str, str, str]:
    return "create", path, to


LINES = (
    line("open", "folder", os.O_RDONLY | os.O_DIRECTORY, 0),  # %0
    line("open", "new", CREATES, 0o644, records=made("new")),
    line("open", "new", CREATES, 0o644, records=("write", "new")),
    line("open", "new", CREATES | os.O_EXCL, 0o644, records=made("new")),  # EEXIST
    line("open", "new", os.O_RDONLY, 0),
    line("open", "new", os.O_RDONLY | os.O_TRUNC, 0, records=("write", "new")),
    line("open", "new", os.O_PATH | os.O_RDWR, 0),
    line("open", "nothing", os.O_RDWR, 0, records=("write", "nothing")),  # ENOENT
    line("open", "no/thing", CREATES, 0o600, records=made("no/thing")),  # ENOENT
    line("open", "circle", os.O_WRONLY, 0, records=("write", "circle")),  # ELOOP
    line("open", "y/" * 2500, CREATES, 0o600),  # ENAMETOOLONG
    line("open", "", CREATES, 0o600, records=made("")),  # ENOENT
    line("open", NOWHERE, CREATES, 0o600),  # EFAULT
    line("open", ".", os.O_WRONLY, 0, records=("write", "")),  # EISDIR
    line("open", ".", os.O_WRONLY | os.O_TMPFILE, 0o600, records=("write", "")),
    line("open", "quiet/a", CREATES, 0o600),
    line("open", "/dev/null", os.O_WRONLY, 0),
    line("open", "link", os.O_WRONLY, 0, records=("write", "folder/target")),
    line("open", "link", os.O_WRONLY | os.O_NOFOLLOW, 0, records=("write", "link")),  # ELOOP
    line("open", "away/in/../b", CREATES, 0o600, records=made("folder/b")),
    line("open", "/proc/self/cwd/c", CREATES, 0o600, records=made("c")),
    line("openat", AT_FDCWD, "d", CREATES, 0o600, records=made("d")),
    line("openat", "%0", "e", CREATES, 0o600, records=made("folder/e")),
    line("openat", 999, "f", CREATES, 0o600),  # EBADF
    line("openat", 999, "/nowhere/f", CREATES, 0o600, records=made("/nowhere/f")),  # ENOENT
    line("openat2", "%0", "g", (CREATES, 0o600, 0), 24, records=made("folder/g")),
    line("openat2", "%0", "/h", (CREATES, 0o600, RESOLVE_IN_ROOT), 24, records=made("folder/h")),
    line("openat2", "%0", "g", (os.O_RDONLY, 0, 0), 24),
    line("openat2", "%0", "g", NOWHERE, 24),  # EFAULT
    line("openat2", "%0", "g", NOWHERE, 8),  # EINVAL
    line("creat", "i", 0o600, records=made("i")),
    line("truncate", "i", 10, records=("write", "i")),
    line("truncate", "link", 3, records=("write", "folder/target")),
    line("mkdir", "made", 0o755, records=made("made")),
    line("mkdir", "made/", 0o755, records=made("made")),  # EEXIST
    line("mkdirat", "%0", "made", 0o755, records=made("folder/made")),
    line("mknod", "pipe", 0o10600, 0, records=made("pipe")),
    line("mknodat", "%0", "pipe", 0o10600, 0, records=made("folder/pipe")),
    line("symlink", "anything", "s", records=made("s")),
    line("symlinkat", "anything", "%0", "s", records=made("folder/s")),
    line("link", "i", "j", records=made("i", "j")),
    line("linkat", AT_FDCWD, "link", "%0", "k", 0, records=made("link", "folder/k")),
    line(
        "linkat", AT_FDCWD, "link", "%0", "l", AT_SYMLINK_FOLLOW,
        records=made("folder/target", "folder/l"),
    ),
    line("rename", "j", "m", records=("rename", "j", "m")),
    line("renameat", AT_FDCWD, "m", "%0", "m", records=("rename", "m", "folder/m")),
    line(
        "renameat2", "%0", "m", AT_FDCWD, "i", RENAME_NOREPLACE,
        records=("rename", "folder/m", "i"),
    ),  # EEXIST
    line(
        "renameat2", "%0", "b", AT_FDCWD, "i", RENAME_EXCHANGE,
        records=("rename", "folder/b", "i"),
    ),
    line("rename", "quiet/a", "n", records=("rename", "quiet/a", "n")),
    line("rename", "n", NOWHERE),  # EFAULT
    line("unlink", "link", records=("delete", "link")),
    line("unlink", "made", records=("delete", "made")),  # EISDIR
    line("unlinkat", "%0", "e", 0, records=("delete", "folder/e")),
    line("unlinkat", AT_FDCWD, "made", AT_REMOVEDIR, records=("delete", "made")),
    line("rmdir", "folder/made", records=("delete", "folder/made")),
    line("open", "/root/x", CREATES | os.O_EXCL, 0o600, records=made("/root/x")),
    line("unlink", "/root/x", records=("delete", "/root/x")),
)  # fmt: skip


def auditing(subject: Sigwrap, work: Path) -> str:
    return policy(subject.folder, " []\n", f"file_rules:{RULES.replace('WORK', str(work))}")


def anew(subject: Sigwrap) -> Path:
    work = subject.folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    for folder in (work, work / "folder/in", work / "quiet"):
        folder.mkdir(parents=True)
    (work / "folder/target").write_text("here")
    (work / "link").symlink_to("folder/target")
    (work / "away").symlink_to(work / "folder")
    (work / "circle").symlink_to("circle")
    if subject.user is not None:
        subprocess.run(["chown", "-R", f"{subject.user}:{subject.user}", work], check=True)
    return work


def script(arch: int) -> bytes:
    said = []
    for each in LINES:
        words = [calls.number_of(each.call, arch), *map(word, each.arguments)]
        said.append(" ".join(map(str, words)))
    return "\n".join(said).encode() + b"\n"


def word(argument: object) -> object:
    if isinstance(argument, tuple):
        return "@" + ",".join(map(str, argument))
    is_text = isinstance(argument, str) and not argument.startswith("%")
    return f'"{argument}' if is_text else argument


def changes(subject: Sigwrap, work: Path) -> list[tuple[str, ...]]:
    """As they are recorded, by their paths from the working folder."""

    def there(path: str) -> str:
        return "" if path == str(work) else path.removeprefix(f"{work}/")

    return [
        (told["operation"], there(told["path"]), there(told.get("to", "")))
        for told in (event.payload for event in subject.sealed_events("file_audited"))
        for _ in range(told.get("count", 1))
    ]


@pytest.mark.parametrize(("arch", "abi"), [(X86_64, "64"), (I386, "32")])
def test_each_call_is_recorded_and_comes_out_as_natively(
    as_user: Sigwrap, compiled: Path, arch: int, abi: str
) -> None:
    command = [str(compiled / "file_calls"), abi]
    work = anew(as_user)
    natively = as_user.native(*command, cwd=work, input=script(arch)).stdout.split()
    assert len(natively) == len(LINES)
    work = anew(as_user)
    done = as_user.run("-p", auditing(as_user, work), "--", *command, cwd=work, input=script(arch))
    assert done.stderr == b""
    audited = done.stdout.split()
    assert dict(enumerate(audited)) == dict(enumerate(natively))
    expected = Counter(each.records for each in LINES if any(each.records))
    assert Counter(changes(as_user, work)) == expected
    payloads = [each.payload for each in as_user.events("file_audited")]
    assert all(each["verified"] is False and each["rule_name"] == "marked" for each in payloads)
    assert not {each.type for each in as_user.events()} & {"mediation_failed", "call_refused"}


def test_another_thread_that_rewrites_the_path_gains_nothing(
    as_user: Sigwrap, programs: Path
) -> None:
    work = anew(as_user)
    command = [*PYTHON, str(programs / "rewrites_paths.py"), "1", "400"]
    done = as_user.run("-p", auditing(as_user, work), "--", *command, cwd=work)
    assert done.returncode == 0, done.stderr
    assert not {each.type for each in as_user.events()} & {"mediation_failed", "call_refused"}
    assert {"one", "two/three", "four"} <= {path for _, path, _ in changes(as_user, work)}


@AS_ROOT
@pytest.mark.parametrize("within", ["chroot .", "unshare -r chroot ."])
def test_in_another_root_the_path_is_the_one_outside(
    sigwrap: Sigwrap, compiled: Path, within: str
) -> None:
    work = anew(sigwrap)
    static = work / "file_calls"
    source = compiled / "file_calls.c"
    subprocess.run(["cc", *HEADERS, "-static", "-o", str(static), str(source)], check=True)
    said = f'{calls.number_of("mkdir", X86_64)} "/folder/x 493\n'.encode()
    line = [*within.split(), "/file_calls", "64"]
    done = sigwrap.run("-p", auditing(sigwrap, work), "--", *line, cwd=work, input=said)
    assert done.stdout == b"0\n", done.stderr
    assert (work / "folder/x").is_dir()
    assert ("create", "folder/x", "") in changes(sigwrap, work)


@pytest.mark.promise("file audit")
def test_what_is_written_again_and_again_is_counted(as_user: Sigwrap) -> None:
    work = anew(as_user)
    loop = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i >> log; done"
    as_user.run("-p", auditing(as_user, work), "--", "sh", "-c", loop, cwd=work)
    found = changes(as_user, work)
    assert found == [("create", "log", ""), *[("write", "log", "")] * 199]
    assert len(as_user.events("file_audited")) < 100


def test_io_uring_is_let_be_and_noted_but_under_network_rules_it_stays_refused(
    as_user: Sigwrap, compiled: Path
) -> None:
    number = calls.number_of("io_uring_setup", X86_64)
    said, command = f"{number} 1 {NOWHERE}\n".encode(), [str(compiled / "file_calls"), "64"]
    work = anew(as_user)
    natively = as_user.native(*command, cwd=work, input=said).stdout
    text = auditing(as_user, work)
    done = as_user.run("-p", text, "--", *command, cwd=work, input=said)
    assert done.stdout == natively
    (noted,) = as_user.sealed_events("file_audited")
    assert noted.payload["rule_name"] == "builtin:unseen"
    assert (noted.payload["operation"], noted.payload["path"]) == ("unseen", "")
    with open(text, "a") as file:
        file.write("network_rules:\n  - {name: n, destinations: ['*'], decision: audit}\n")
    done = as_user.run("-p", text, "--", *command, cwd=work, input=said)
    assert done.stdout == b"-1\n", done.stderr
    assert as_user.sealed_events("connection_denied") and not as_user.events("file_audited")


PIPES = """
import os, signal, time
os.mkfifo("pipe")
if not (child := os.fork()):
    with open("pipe") as pipe:
        print(pipe.read(), flush=True)
    os._exit(0)
with open("pipe", "w") as pipe:
    pipe.write("through")
os.waitpid(child, 0)

def late(number, frame):
    raise TimeoutError

signal.signal(signal.SIGALRM, late)
try:
    signal.setitimer(signal.ITIMER_REAL, 3)
    open("pipe", "w")
except TimeoutError:
    print("broken off")
"""


def test_who_waits_for_the_other_end_of_a_pipe_keeps_nobody_else(as_user: Sigwrap) -> None:
    work = anew(as_user)
    done = as_user.run("-p", auditing(as_user, work), "--", *PYTHON, "-c", PIPES, cwd=work)
    assert done.stdout == b"through\nbroken off\n", done.stderr
    expected = [("create", "pipe", ""), ("write", "pipe", ""), ("write", "pipe", "")]
    assert changes(as_user, work) == expected


UNREADABLE = """
import ctypes
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
open("x", "w").close()
"""


def test_a_process_that_hides_its_memory_is_noted(as_user: Sigwrap) -> None:
    work = anew(as_user)
    command = [*PYTHON, "-c", UNREADABLE]
    done = as_user.run("-p", auditing(as_user, work), "--", *command, cwd=work)
    assert done.returncode == 0 and (work / "x").exists(), done.stderr
    is_read = as_user.user is None and os.getuid() == 0
    expected = ("create", "x", "") if is_read else ("unseen", "", "")
    assert changes(as_user, work) == [expected]
