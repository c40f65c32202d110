"""A path names a file in sigwrap's own mounts. In a caller's own it can be any other: what is there
is allowed by no path and no name. Nor does sigwrap believe a /proc that somebody mounted."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S

BY_DESCRIPTOR = ("native", "native at 9", "i386", "i386 at 9")
BY_NAME = """
  - {name: no-first, commands: [first], decision: deny}
  - {name: good, commands: [good, "%(folder)s/go*"], decision: allow}
  - {name: attack, commands: [sh, execs, covers_a_file.py, python3, "python3.*"], decision: audit}
  - {name: rest, commands: ["*"], decision: deny}
"""
NO_FIRST = "\n  - {name: no-first, commands: [first], decision: deny}\n"
REDIRECTED = """
  - {name: r, commands: [first], decision: redirect, redirect_to: {command: %(folder)s/good}}
"""


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    for name in ("good", "evil", "first"):
        script(as_user.folder, name, f"#!/bin/sh\necho {name}\n")
    good, evil = str(as_user.folder / "good"), str(as_user.folder / "evil")
    natively = as_user.native(str(compiled / "execs"), "native", good, evil)
    if natively.stdout == b"no mounts\n":
        pytest.skip("needs user namespaces")
    assert natively.stdout == b"evil\n"
    return as_user


@pytest.mark.parametrize(
    ("rules", "how", "name", "rule", "why"),
    [
        (BY_NAME, "native", "good", "rest", ""),
        (BY_NAME, "i386", "good", "rest", ""),
        (NO_FIRST, "native", "first", "no-first", ""),
        (REDIRECTED, "native", "first", "r", "another file than sigwrap's own"),
    ],
)
def test_of_a_mount_namespace_of_the_callers(
    placed: Sigwrap, compiled: Path, rules: str, how: str, name: str, rule: str, why: str
) -> None:
    """A denying rule holds there, and nothing from there is put in another's place."""
    covered, evil = str(placed.folder / name), str(placed.folder / "evil")
    path = policy(placed.folder, rules % {"folder": placed.folder})
    said = placed.run("-p", path, "--", str(compiled / "execs"), how, covered, evil).stdout
    assert said in (b"errno 13\n", b"no mounts\n")  # where the session may mount nothing at all
    for event in placed.sealed_events("exec_denied"):
        assert event.payload["elsewhere"] is True
        assert event.payload["rule_name"] == rule
        assert why in event.payload["reason"]


def test_of_a_descriptor_that_leads_there(placed: Sigwrap, compiled: Path, programs: Path) -> None:
    """The caller itself has sigwrap's own root and mounts."""
    good, evil = str(placed.folder / "good"), str(placed.folder / "evil")
    path = policy(placed.folder, BY_NAME % {"folder": placed.folder})
    execs = str(compiled / "execs")
    tries = "; ".join(f"{execs} '{how}' /proc/self/fd/9" for how in BY_DESCRIPTOR)
    line = placed.line("-p", path, "--", "sh", "-c", f"{tries}; :")
    covers = [*placed.as_user(), *PYTHON, str(programs / "covers_a_file.py"), evil, good]
    done = placed.start_line([*covers, *line])
    assert done.communicate()[0] == b"errno 13\n" * len(BY_DESCRIPTOR)
    denied = placed.sealed_events("exec_denied")
    assert len(denied) == len(BY_DESCRIPTOR)
    for event in denied:
        assert event.payload["elsewhere"] is True
        assert event.payload["programs"][0]["path"] == good


def test_a_root_of_the_callers(sigwrap: Sigwrap) -> None:
    """A program takes its libraries from there, whatever file it is itself."""
    if os.getuid() != 0:
        pytest.skip("chroot needs root")
    script(sigwrap.folder, "good", "#!/evil\n")
    script(sigwrap.folder, "evil", "\x7fELF")
    enters = (
        f"import os; os.chroot({str(sigwrap.folder)!r}); os.chdir('/'); os.execv('good', ['x'])"
    )
    path = policy(sigwrap.folder, BY_NAME % {"folder": sigwrap.folder})
    done = sigwrap.run("-p", path, "--", *PYTHON, "-c", enters)
    assert b"PermissionError" in done.stderr
    (event,) = sigwrap.sealed_events("exec_denied")
    assert event.payload["elsewhere"] is True


# By a bind mount any file has any path. What has many names of its own goes by them there too.

RULES = "\n  - {name: no-rmdir, commands: [rmdir], decision: deny}\n"
RMDIR, LS = shutil.which("rmdir"), shutil.which("ls")
OVER_A_FILE = f"mount --bind {RMDIR} {LS}"
OVER_A_FOLDER = "mount --bind . /usr/local/bin"
WAYS = [
    f"{OVER_A_FILE} && ls x",
    f"{OVER_A_FILE} && env ls x",
    f"{OVER_A_FILE} && /lib64/ld-linux-x86-64.so.2 {LS} x",
    f"{OVER_A_FILE} && ln -s {LS} link && ./link x",
    f"{OVER_A_FILE} && echo \\#!{LS} >script && chmod +x script && ./script",
    f"{OVER_A_FOLDER} && touch /usr/local/bin/zz && mount --bind {RMDIR} /usr/local/bin/zz && zz x",
    f"mkdir a && touch a/zz && mount --bind a a && mount --bind {RMDIR} a/zz && "
    "mount --move a /usr/local/bin && zz x",
    f"mkdir root && mount --rbind / root && mount --bind {RMDIR} root{LS} && "
    "cd root && pivot_root . tmp && ls x",
]


@pytest.fixture
def mounts(as_user: Sigwrap) -> Sigwrap:
    natively = as_user.native("unshare", "-Urm", "sh", "-c", f"{OVER_A_FILE} && ls /none")
    if b"failed to remove" not in natively.stderr:
        pytest.skip("needs user namespaces")
    return as_user


def test_in_a_namespace_of_the_callers(mounts: Sigwrap) -> None:
    """What can't be mounted is left out."""
    each = 'mkdir "$n" && cd "$n" && unshare -Urm sh -c "$1"; echo "$n $?"; cd ..; n=$((n + 1))'
    script = f"try() {{ {each}; }}; n=0\n" + "\n".join(f"try '{way}'" for way in WAYS)
    path = policy(mounts.folder, RULES)
    done = mounts.run("-p", path, "--", "sh", "-c", script, cwd=str(mounts.folder))
    said = dict(line.split() for line in done.stdout.splitlines())
    assert len(said) == len(WAYS)
    for number, way in enumerate(WAYS):
        assert said[b"%d" % number] in (b"126", b"32"), (way, done.stderr)
    # The first two can be mounted by every user: the fixture has tried it.
    assert (said[b"0"], said[b"1"]) == (b"126", b"126"), done.stderr


def test_in_the_namespace_of_sigwrap_itself(mounts: Sigwrap) -> None:
    inner = f"{OVER_A_FILE} || exit; ls x; echo $?; umount {LS}; ls /none; echo $?"
    line = mounts.line("-p", policy(mounts.folder, RULES), "--", "sh", "-c", inner)
    done = mounts.start_line([*mounts.as_user(), "unshare", "-Urm", *line])
    said, errors = done.communicate()
    assert said == b"126\n2\n" or (said == b"" and b"mount: " in errors), errors
    for event in mounts.sealed_events("exec_denied"):
        assert event.payload["rule_name"] == "no-rmdir"
        assert event.payload["programs"][1]["path"] == RMDIR


def test_a_program_that_no_rule_denies_is_what_it_is(mounts: Sigwrap) -> None:
    """A sandbox binds programs over their own names, and the system's folders into its root."""
    inner = (
        f"mount --bind {LS} {LS} && ls / >&2 && mount --rbind /usr /usr && ls / >&2 && "
        "mkdir root && mount --rbind / root && cd root && pivot_root . tmp && ls / >&2; echo $?"
    )
    line = ("-p", policy(mounts.folder, RULES), "--", "unshare", "-Urm", "sh", "-c", inner)
    done = mounts.run(*line, cwd=str(mounts.folder))
    assert done.stdout == b"0\n" or b"mount: " in done.stderr, done.stderr
    assert mounts.sealed_events("exec_denied") == []


def test_by_another_mount_it_is_another_file(mounts: Sigwrap, programs: Path) -> None:
    """Beside it lie other libraries. The link is flipped between the look and the load."""
    for name in ("here", "there"):
        (mounts.folder / name).mkdir(mode=0o777)
        shutil.copy("/usr/bin/readlink", mounts.folder / name / "tool")
    rules = """
  - {name: ours, commands: [./here/tool], decision: allow}
  - {name: others, commands: [tool, link], decision: deny}
"""
    path = policy(mounts.folder, rules)
    line = [*PYTHON, str(programs / "flips_mounts.py"), "150"]
    done = mounts.run("-p", path, "--", *line, cwd=str(mounts.folder))
    said = Counter(done.stdout.decode().split())
    assert set(said) <= {str(mounts.folder / "here" / "tool"), "nothing", "denied"}, said
    assert said["denied"] and len(said) > 1, said


# Root inside can mount over /proc; sigwrap reads another one.

SIGWRAP = Path(__file__).parents[2] / "sigwrap"
BY_PATH = re.compile(r'(os\.(open|readlink|stat|listdir|scandir)|os\.path\.\w+|\bopen)\(b?f?"/proc')
BEFORE_COMMAND = {"kernel/descriptors.py"}
HOLDS_IT = {"kernel/procfs.py"}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_sigwrap_believes_no_proc_of_somebody_elses(lab: Lab, programs: Path) -> None:
    lab.under("name: own, signals: ['@all'], target: children, decision: allow")
    line = lab.subject.line("--", *python(programs / "covers_proc.py"))
    process = lab.subject.start_line(["unshare", "--mount", *line])
    said, error = process.communicate(b"", PATIENCE_S)
    assert process.returncode == 0, error
    covered, ran, killed, status, left = json.loads(said)
    assert (covered, ran, killed, status) == (0, 0, 0, 9), error
    assert not Path(f"/proc/{left}").exists()
    execs = {each.payload["path"]: each.payload for each in lab.subject.events("exec_audited")}
    (true,) = [payload for path, payload in execs.items() if path.endswith("/true")]
    assert true["verified"], true
    (sent,) = lab.payloads("signal_sent")
    assert sent["target_type"] == "children"


@pytest.mark.parametrize("propagation", ["private", "shared"])
def test_nor_what_is_mounted_over_a_part_of_it(
    users_lab: Lab, programs: Path, propagation: str
) -> None:
    """As root of a user namespace, who may have no /proc of his own."""
    lab = users_lab.under("name: own, signals: ['@all'], target: children, decision: allow")
    words = ("unshare", "-U", "-r", "-m", f"--propagation={propagation}")
    if lab.subject.native(*words, "true").returncode != 0:
        pytest.skip("needs user namespaces")
    outside = lab.outsider()
    limits = Path(f"/proc/{outside.pid}/limits")
    before = limits.read_text()
    line = lab.subject.line("--", *python(programs / "lies_about_outside.py", outside.pid))
    process = lab.subject.start_line([*lab.subject.as_user(), *words, *line])
    said, error = process.communicate(b"", PATIENCE_S)
    assert process.returncode == 0, error
    assert json.loads(said) == ["EPERM", 0, "EPERM"]
    assert limits.read_text() == before
    (started,) = lab.subject.events("session_started")
    assert not [each for each in started.payload["missing"] if each.startswith("proc:")]


def test_nothing_of_a_run_reads_proc_by_its_path() -> None:
    found = [
        f"{path.relative_to(SIGWRAP)}: {match.group()}"
        for part in ("linux", "run", "front")
        for path in sorted((SIGWRAP / part).rglob("*.py"))
        if str(path.relative_to(SIGWRAP)) not in BEFORE_COMMAND | HOLDS_IT
        for match in BY_PATH.finditer(path.read_text())
    ]
    assert found == []


AFTER_A_MOUNT = """
import ctypes, errno, fcntl, os, socket, struct
ctypes.CDLL(None).mount(b"x", b"/nowhere", b"x", 0, None)
os.close(os.open("written", os.O_WRONLY | os.O_CREAT))
assert socket.socket(socket.AF_UNIX).connect_ex("/nowhere") == errno.ENOENT
udp = socket.socket(type=socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
assert udp.sendto(b"x", udp.getsockname()) == 1
fcntl.fcntl(udp, 15, struct.pack("ii", 1, os.getpid()))  # F_SETOWN_EX
fcntl.ioctl(udp, 0x8901, struct.pack("i", os.getpid()))  # FIOSETOWN
"""
AUDITS_FILES = "file_rules: [{name: f, paths: [/], operations: [create], decision: audit}]"


def test_calls_whose_arguments_are_in_memory_after_something_was_mounted(as_user: Sigwrap) -> None:
    """From then on the loop itself reads no memory. That the mount fails doesn't matter."""
    path = policy(as_user.folder, NO_FIRST, "network: audit", AUDITS_FILES)
    done = as_user.run("-p", path, "--", *PYTHON, "-c", AFTER_A_MOUNT, cwd=str(as_user.folder))
    assert (done.returncode, done.stderr) == (0, b"")
