"""A denied interpreter stays denied, by whatever detour it is reached."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script

BUSYBOX = shutil.which("busybox")
TRY = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what):
    child = os.fork()
    if child == 0:
        try:
            what()
        except OSError as error:
            os._exit(error.errno)
        os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def execveat(fd, path, flags):
    words = (ctypes.c_char_p * 3)(b"x", b"ran", None)
    libc.syscall(322, fd, path, words, None, flags)
    raise OSError(ctypes.get_errno(), "")

def in_memory(path, by):
    fd = os.memfd_create("x", 0)
    os.write(fd, open(path, "rb").read())
    if by == "number":
        reading = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        os.close(fd)
        os.execv(f"/proc/self/fd/{reading}", ["x", "ran"])
    reading = os.open(f"/proc/self/fd/{fd}", os.O_PATH)
    os.close(fd)
    execveat(reading, b"", 0x1000)
"""
DETOURS = {
    "itself": "os.execv('bad', ['x', 'ran'])",
    "a name of another": "os.execv('bad', ['ok', 'ran'])",
    "a relative path": "os.execv('./down/../bad', ['x', 'ran'])",
    "a symbolic link": "os.execv('link', ['x', 'ran'])",
    "a hard link": "os.execv('hard-link', ['x', 'ran'])",
    "a copy": "os.execv('copy', ['x', 'ran'])",
    "a copy in memory": "in_memory('bad', 'descriptor')",
    "a copy in memory by its number": "in_memory('bad', 'number')",
    "a script": "os.execv('script', ['x', 'ran'])",
    "a script of a script": "os.execv('outer', ['x', 'ran'])",
    "a script with a relative interpreter": "os.execv('relative', ['x', 'ran'])",
    "a script in memory": "in_memory('script', 'number')",
    "env": "os.execv('/usr/bin/env', ['env', './bad', 'ran'])",
    "env by PATH": "os.execve('/usr/bin/env', ['env', 'bad', 'ran'], {'PATH': os.getcwd()})",
    "env -S": "os.execv('/usr/bin/env', ['env', '-S', './bad ran'])",
    "env -S in a script": "os.execv('by-env', ['x'])",
    "env that calls it another name": "os.execv('/usr/bin/env', ['env', '-a', 'ok', './bad'])",
    "nice": "os.execv('/usr/bin/nice', ['nice', '-n', '1', './bad', 'ran'])",
    "timeout": "os.execv('/usr/bin/timeout', ['timeout', '9', './bad', 'ran'])",
    "sh -c exec": "os.execv('/bin/sh', ['sh', '-c', 'exec ./bad ran'])",
    "xargs": "os.execv('/bin/sh', ['sh', '-c', 'echo ran | xargs ./bad'])",
    "find": "os.execv('/usr/bin/find', ['find', 'bad', '-exec', './bad', 'ran', ';'])",
    "its folder's descriptor": "execveat(os.open('.', os.O_PATH), b'bad', 0)",
    "its own descriptor": "execveat(os.open('bad', os.O_PATH), b'', 0x1000)",
    "/proc/self/fd": "os.execv(f\"/proc/self/fd/{os.open('bad', os.O_PATH)}\", ['x', 'ran'])",
    "/dev/fd": "os.execv(f\"/dev/fd/{os.open('bad', os.O_PATH)}\", ['x', 'ran'])",
    "/proc/self/cwd": "os.execv('/proc/self/cwd/bad', ['x', 'ran'])",
    "/proc/self/root": "os.execv('/proc/self/root' + os.path.abspath('bad'), ['x', 'ran'])",
    "another's folder": "os.execv(f'/proc/{os.getppid()}/cwd/bad', ['x', 'ran'])",
}


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    folder = as_user.folder
    shutil.copy(compiled / "first", folder / "bad")
    shutil.copy(compiled / "first", folder / "copy")
    (folder / "link").symlink_to("bad")
    (folder / "hard-link").hardlink_to(folder / "bad")
    (folder / "down").mkdir()
    script(folder, "script", f"#!{folder}/bad\n")
    script(folder, "outer", f"#!{folder}/script\n")
    script(folder, "relative", "#!down/../bad\n")
    script(folder, "by-env", "#!/usr/bin/env -S ./bad ran\n")
    digest = hashlib.sha256((folder / "bad").read_bytes()).hexdigest()
    rules = f"""
  - {{name: by-name, commands: [bad], decision: deny}}
  - {{name: by-content, commands: ["*"], sha256: ["{digest}"], decision: deny}}
"""
    policy(folder, rules)
    return as_user


def _run(placed: Sigwrap, text: str, *words: str) -> list[str]:
    line = ("-p", str(placed.folder / "policy.yaml"), "--", *PYTHON, "-c", TRY + text, *words)
    done = placed.run(*line)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_no_detour_leads_to_it(placed: Sigwrap) -> None:
    """Its first instruction would be a line of its own."""
    text = "".join(
        f"print({name!r}, attempt(lambda: {detour}), flush=True)\n"
        for name, detour in DETOURS.items()
    )
    said = dict(line.rsplit(" ", 1) for line in _run(placed, text))
    refused_later = {"sh -c exec": "126", "xargs": "126", "find": "0"}
    assert said == {name: refused_later.get(name, "13") for name in DETOURS}
    events = placed.sealed_events("exec_denied")
    assert len(events) >= len(DETOURS)
    assert {event.payload["rule_name"] for event in events} == {"by-name", "by-content"}


def test_by_the_loader(placed: Sigwrap) -> None:
    loader = next(Path("/lib64").glob("ld-linux-x86-64.so*"))
    shutil.copy("/bin/echo", placed.folder / "bad")
    for words in (["./bad"], ["--argv0", "ok", "./bad"], ["--library-path", "/", "./bad"]):
        text = f"print(attempt(lambda: os.execv('{loader}', ['ld.so', *{words}, 'ran'])))"
        assert _run(placed, text) == ["13"], words


@pytest.mark.skipif(BUSYBOX is None, reason="needs busybox")
@pytest.mark.parametrize(
    "detour",
    [
        "[{busybox!r}, 'sh', '-c', 'echo ran']",
        "['/bin/busybox', 'busybox', 'sh', '-c', 'echo ran']",
        "['./sh', '-c', 'echo ran']",
        "['/usr/bin/env', '-S', {busybox!r} + ' sh -c ran']",
    ],
)
def test_a_shell_in_busybox(as_user: Sigwrap, detour: str) -> None:
    (as_user.folder / "sh").symlink_to(str(BUSYBOX))
    rules = "\n  - {name: no-shell, commands: [sh, ash], decision: deny}\n"
    words = detour.format(busybox=BUSYBOX)
    text = f"words = {words}\nprint(attempt(lambda: os.execv(words[0], words)))\n"
    policy(as_user.folder, rules)
    assert _run(as_user, text) == ["13"]
    assert as_user.sealed_events("exec_denied")[0].payload["rule_name"] == "no-shell"


def test_a_program_that_executes_itself(as_user: Sigwrap) -> None:
    """/proc/self/exe is the caller's, not sigwrap's."""
    python = os.path.realpath(PYTHON[0])
    name = Path(python).name
    rules = f"""
  - {{name: again, commands: ["{name}"], args_patterns: ["^print..again..$"], decision: deny}}
"""
    policy(as_user.folder, rules)
    text = """
for path in ("/proc/self/exe", "/proc/thread-self/exe", f"/proc/{os.getpid()}/exe"):
    print(attempt(lambda: os.execv(path, ["x", "-c", "print('again')"])), flush=True)
    print(attempt(lambda: os.execv(path, ["x", "-I", "-S", "-c", "print(4)"])), flush=True)
"""
    assert _run(as_user, text) == ["13", "4", "0"] * 3


def _may_unshare() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(bool(ctypes.CDLL(None).unshare(0x10000000 | 0x20000)))
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("covered", ["over an allowed one", "in another place", "of its folder"])
def test_in_a_mount_namespace(placed: Sigwrap, covered: str) -> None:
    """A bind mount gives it another name there, where sigwrap doesn't see it by that name."""
    if not _may_unshare():
        pytest.skip("needs user namespaces")
    (placed.folder / "ok").write_bytes(b"#!/bin/true\n")
    (placed.folder / "ok").chmod(0o755)
    source, target, path = {
        "over an allowed one": ("bad", "ok", "ok"),
        "in another place": ("bad", "down/ok", "down/ok"),
        "of its folder": (".", "down", "down/hard-link"),
    }[covered]
    (placed.folder / "down" / "ok").touch()
    text = f"""
def in_a_namespace():
    import ctypes
    if libc.unshare(0x10000000 | 0x20000):
        raise OSError(98, "unshare")
    if libc.mount(b"{source}", b"{target}", None, 4096 | 16384, None):
        os._exit(97)
    os.execv("{path}", ["ok", "ran"])
print(attempt(in_a_namespace))
"""
    assert _run(placed, text) == ["13"]
    (event,) = placed.sealed_events("exec_denied")
    assert event.payload["rule_name"] in ("by-name", "by-content")


def test_in_another_root(placed: Sigwrap) -> None:
    if placed.user is not None or os.getuid() != 0:
        pytest.skip("chroot needs root")
    text = """
def in_a_jail(path):
    os.chroot("."); os.chdir("/")
    os.execv(path, ["ok", "ran"])
for path in ("/bad", "copy", "/link", "../../bad", "/proc/self/exe"):
    print(attempt(lambda: in_a_jail(path)), flush=True)
def out_of_the_jail():
    folder = os.open("/", os.O_PATH)
    os.chroot("down")
    here = os.path.abspath(sys.argv[1])
    execveat(folder, os.fsencode(here[1:] + "/bad"), 0)
print(attempt(out_of_the_jail))
"""
    assert _run(placed, text, str(placed.folder)) == ["13", "13", "13", "13", "2", "13"]
