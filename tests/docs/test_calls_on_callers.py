"""Calls of the supervisor on files, sockets and memory of callers, against the sources.

A new call needs a reason in CALLS why it cannot block the supervisor's loop, or a module in OWN
whose objects no caller shares. docs/security.md lists the calls by reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "sigwrap"
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("| why | calls |") :].partition("\n\n")[0]

# Why a call cannot block the loop, in the words of the page.
WORKER = "a worker thread makes it, and the request waits for 5 seconds at most"
FIELDS = "it only reads or sets fields in the kernel"
NONBLOCKING = "it works on sigwrap's own open file, with O_NONBLOCK"
TERMINAL = "it is made only while sigwrap asks on its own terminal"
LOCK = "it takes a lock that the front process bounds: after 15 to 20 seconds it kills the tree"

CALLS: dict[str, dict[str, tuple[str, ...]]] = {
    # A worker for a file that is not local, and for all of these once a process in the session has
    # mounted something. Until then, a signal ends connect after 5 ms, and workers make the next
    # ones for a while; sendmsg has MSG_DONTWAIT.
    "network/call.py": {
        WORKER: ("connect", "sendmsg", "listen", "read", "write", "getsockname"),
        FIELDS: ("getsockopt", "fcntl F_GETFL"),
    },
    "kernel/peer.py": {FIELDS: ("fstat",)},  # of a socket
    "kernel/terminals.py": {
        WORKER: ("write", "tcgetattr"),
        NONBLOCKING: ("write", "tcflow", "fstat", "fcntl F_DUPFD_CLOEXEC"),
    },
    "front/terminal.py": {TERMINAL: ("tcgetattr", "tcsetattr")},
    "approve/terminal_prompt.py": {
        TERMINAL: ("TIOCSPGRP", "ioctl FIONREAD", "ioctl TIOCGWINSZ", "read")
    },
    "signal/owners.py": {
        WORKER: ("fcntl F_SETFL", "ioctl FIOASYNC", "fcntl F_SETSIG"),  # locks of O_ASYNC
        FIELDS: (
            *("fcntl F_SETOWN_EX", "fcntl _F_GETOWN_EX"),
            *("ioctl _TIOCGDEV", "ioctl _TIOCGPTN"),
        ),
    },
    "signal/handler.py": {FIELDS: ("TIOCSPGRP",)},  # SIGTTOU is blocked
    "kernel/signals.py": {FIELDS: ("pidfd_send_signal",)},
    "kernel/descriptors.py": {
        LOCK: ("pidfd_getfd",),  # held by the process until its exec ends
    },
    # Of a thread that stands at its exec stop; a worker reads mapped files.
    "kernel/ptrace.py": {LOCK: ("open mem", "pwrite", "ptrace")},
    # A worker once a process in the session has mounted something; before that, few pages.
    "kernel/memory.py": {WORKER: ("open mem", "pread", "process_vm_writev")},
    "join/joins.py": {
        FIELDS: ("fcntl F_GET_SEALS", "fstat", "pread"),  # a sealed memory file
        NONBLOCKING: ("write",),
    },
    "record/recordings.py": {NONBLOCKING: ("read", "write", "ioctl FIONREAD")},
    "kernel/seccomp.py": {
        FIELDS: ("ioctl _RECV", "ioctl _SEND", "ioctl _ID_VALID", "ioctl _ADD_DESCRIPTOR")
    },
}

# Modules whose calls work on sigwrap's own objects only.
OPENED_BY_SIGWRAP = "a file that it opens, by a worker if a program serves it"
PROC = "/proc, or its own pipes and pidfds"
OWN = {
    "kernel/process.py": "itself, /proc, and its own pidfds",
    "exec/host.py": OPENED_BY_SIGWRAP,
    "exec/content.py": OPENED_BY_SIGWRAP,
    "exec/verify.py": OPENED_BY_SIGWRAP,
    "exec/replacements.py": "a file in memory of its own",
    "kernel/landlock.py": "before the command runs",
    "start/own_code.py": "a memory file of its own",
    "start/own_files.py": "its own files",
    "start/policy_files.py": "before the command runs",
    "control/killswitch.py": "files of the store, and a sealed memory file",
    "record/stand_in.py": "a process of its own",
    "join/joining.py": "a process of its own",
    "join/relay.py": "a process of its own",
    "kernel/paths.py": OPENED_BY_SIGWRAP,
    "approve/control_socket.py": "its own sockets, and a lock of its own",
    "kernel/procfs.py": PROC,
    "start/onefile.py": OPENED_BY_SIGWRAP,
    "kernel/libc.py": "its own threads and timers",
    "control/usage.py": "its own control group, and a comparison of two processes",
    "join/fork_server.py": "a process of its own",
}
OWN_CALLS = {  # in modules that also call callers' objects
    *((call, "network/handler.py") for call in ("prctl", "capset", "setgroups")),
    *((call, "network/handler.py") for call in ("setresgid", "setresuid")),
    ("TIOCSPGRP", "front/terminal.py"),  # in the front process, as the next two
    ("ioctl _TIOCGEXCL", "front/terminal.py"),
    ("ioctl TIOCNXCL", "front/terminal.py"),
    ("read", "kernel/signals.py"),
    ("fstat", "kernel/descriptors.py"),
    ("fstat", "network/call.py"),  # of a pidfd
    ("close_range", "kernel/descriptors.py"),
    ("fcntl F_SETPIPE_SZ", "kernel/descriptors.py"),
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
    "os.read": "read",
    "os.tcsetpgrp": "TIOCSPGRP",
    "os.write": "write",
    "termios.tcflow": "tcflow",
    "termios.tcgetattr": "tcgetattr",
    "termios.tcsetattr": "tcsetattr",
}
FOLDERS = (
    *("kernel", "exec", "signal", "network", "files", "record", "approve", "control", "session"),
    *("join", "start"),
)
ELSEWHERE = {"seccomp", "syscall", "_SET_FLAGS"}


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


def _calls(tree: ast.AST) -> Iterator[str]:
    """Yield the calls as CALLS names them."""
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
    paths = [path for folder in FOLDERS for path in (SOURCES / folder).rglob("*.py")]
    for path in (*paths, SOURCES / "front" / "terminal.py"):
        module = str(path.relative_to(SOURCES))
        found |= {(call, module) for call in _calls(ast.parse(path.read_text("utf-8")))}
    return found


def _listed() -> set[tuple[str, str]]:
    return {
        (call, module)
        for module, reasons in CALLS.items()
        for calls in reasons.values()
        for call in calls
    }


def test_each_call_on_a_callers_object_has_a_reason_and_each_reason_a_call() -> None:
    made = _made()
    assert {module for _, module in made} >= OWN.keys()
    assert {each for each in made - OWN_CALLS if each[1] not in OWN} == _listed()
    assert made >= OWN_CALLS


def test_the_page_lists_the_calls_by_reason() -> None:
    wanted: dict[str, set[str]] = {}
    for reasons in CALLS.values():
        for why, calls in reasons.items():
            names = (re.sub(r"^(fcntl|ioctl) _?", "", call) for call in calls)
            wanted.setdefault(why, set()).update(names)
    rows = re.findall(r"^\| (.+?) \| (`.+?) \|$", TABLE, re.MULTILINE)
    assert {why: set(re.findall(r"`(.+?)`", calls)) for why, calls in rows} == wanted


def test_a_call_that_is_new_is_seen() -> None:
    """Each form that the sources use is recognized."""
    source = """
fcntl.ioctl(fd, _FIONBIO, _ONE)
ioctl(fd, termios.TIOCSTI)
syscall("pidfd_getfd", _SYS_PIDFD_GETFD, pidfd, fd, 0)
_check(_connect(fd, address, len(address)))
open(f"/proc/{tid}/mem")
"""
    wanted = ["connect", "ioctl TIOCSTI", "ioctl _FIONBIO", "open mem", "pidfd_getfd"]
    assert sorted(_calls(ast.parse(source))) == wanted
