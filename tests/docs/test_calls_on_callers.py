"""security.md's table of calls on what belongs to a caller, against the sources: a call that is new
in the supervisor needs a row there, or a reason here why no caller has a part in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "sigwrap"
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TABLE = TEXT[TEXT.index("| call | made in |") :].partition("\n\n")[0]

# On what only sigwrap has: by module, and why.
OPENED_BY_SIGWRAP = "a file that it opens, by a worker where a program serves it"
PROC = "/proc, or its own pipes and pidfds"
OWN = {
    "linux/bounded.py": "its own threads and timers",
    "linux/death.py": "itself",
    "linux/descriptors.py": "itself",
    "linux/execs/content.py": OPENED_BY_SIGWRAP,
    "linux/execs/elf.py": OPENED_BY_SIGWRAP,
    "linux/execs/elsewhere.py": OPENED_BY_SIGWRAP,
    "linux/execs/image.py": OPENED_BY_SIGWRAP,
    "linux/execs/ownership.py": OPENED_BY_SIGWRAP,
    "linux/execs/twins.py": OPENED_BY_SIGWRAP,
    "linux/kept_library.py": "a file in memory of its own",
    "linux/landlock.py": "before the command runs",
    "linux/listeners.py": PROC,
    "linux/paths.py": OPENED_BY_SIGWRAP,
    "linux/pidns.py": PROC,
    "linux/pipes.py": "a pipe of its own, before anybody has it",
    "linux/plain_file.py": OPENED_BY_SIGWRAP,
    "linux/presence.py": "a lock of its own",
    "linux/proc_files.py": PROC,
    "linux/process.py": PROC,
    "linux/procfs.py": PROC,
    "linux/removal.py": OPENED_BY_SIGWRAP,
    "linux/session_cgroup.py": "its own control group",
    "linux/session_line.py": PROC,
    "linux/sigfd.py": PROC,
    "linux/sockets/rights.py": "a thread of its own",
    "linux/unfiled.py": "its own memory",
    "linux/usage.py": "only compares",
    "linux/ways.py": OPENED_BY_SIGWRAP,
    "run/joined/fork_server.py": "a process of its own, for which the loop does not wait",
    "run/joined/joins.py": "a pipe of its own",
    "run/remote_switch/poll.py": "a file of the user's, by a thread of its own",
}
NAMED = {
    "_connect": "connect",
    "_getsockname": "getsockname",
    "_getsockopt": "getsockopt",
    "_listen": "listen",
    "_pidfd_getfd": "pidfd_getfd",
    "_ptrace": "ptrace",
    "_sendmsg": "sendmsg",
    "os.fstat": "fstat",
    "os.pread": "pread",
    "os.preadv": "pread",
    "os.pwrite": "pwrite",
    "os.pwritev": "pwritev",
    "os.read": "read",
    "os.splice": "splice",
    "os.tcsetpgrp": "TIOCSPGRP",
    "os.write": "write",
    "termios.tcflow": "tcflow",
    "termios.tcgetattr": "tcgetattr",
    "termios.tcsetattr": "tcsetattr",
}
ELSEWHERE = {"seccomp", "syscall", "_SET_FLAGS"}


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


def _calls(tree: ast.AST) -> Iterator[str]:
    """As the table names them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and ast.unparse(node).endswith("/mem'"):
            yield "open mem"
        if not isinstance(node, ast.Call):
            continue
        name = _dotted(node.func)
        if name in NAMED:
            yield NAMED[name]
        elif name in ("fcntl.fcntl", "fcntl.ioctl", "ioctl"):
            kind = "fcntl" if name == "fcntl.fcntl" else "ioctl"
            number = _dotted(node.args[1]).rpartition(".")[2]
            if number not in ELSEWHERE:
                yield f"{kind} {number}"
        elif name == "syscall" and ast.unparse(node.args[0]).strip("'") not in ELSEWHERE:
            yield ast.unparse(node.args[0]).strip("'")


def _made() -> set[tuple[str, str]]:
    found = set()
    for folder in ("linux", "run"):
        for path in (SOURCES / folder).rglob("*.py"):
            module = str(path.relative_to(SOURCES))
            found |= {(call, module) for call in _calls(ast.parse(path.read_text("utf-8")))}
    return found


def _said() -> set[tuple[str, str]]:
    found = set()
    for calls, modules in re.findall(r"^\| (.+?) \| (.+?) \| .{10,} \|$", TABLE, re.MULTILINE)[1:]:
        found |= {
            (call, module)
            for call in re.findall(r"`(.+?)`", calls)
            for module in re.findall(r"`(.+?)`", modules)
        }
    return found


def test_each_call_on_what_is_a_callers_has_a_row_and_each_row_a_call() -> None:
    made = _made()
    assert {module for _, module in made} >= OWN.keys()
    assert {each for each in made if each[1] not in OWN} == _said()


def test_a_call_that_is_new_is_seen() -> None:
    """In each of the forms that the sources have."""
    source = """
fcntl.ioctl(fd, _FIONBIO, _ONE)
ioctl(fd, termios.TIOCSTI)
syscall("pidfd_getfd", _SYS_PIDFD_GETFD, pidfd, fd, 0)
_check(_connect(fd, address, len(address)))
open(f"/proc/{tid}/mem")
"""
    wanted = ["connect", "ioctl TIOCSTI", "ioctl _FIONBIO", "open mem", "pidfd_getfd"]
    assert sorted(_calls(ast.parse(source))) == wanted
