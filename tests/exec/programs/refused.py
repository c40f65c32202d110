import ctypes
import errno
import mmap
import os
import resource
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 5
EMPTY_PATH, NOFOLLOW, CHECK = 0x1000, 0x100, 0x10000
static, top = sys.argv[1], os.getcwd()
MIB = 1 << 20


def strings(words):
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def execve(path, argv=(b"x", b"ran"), env=()):
    given = [
        each if each is None or isinstance(each, int) else ctypes.addressof(keep(each))
        for each in (path, argv, env)
    ]
    libc.syscall(59, *given, None, None)
    return ctypes.get_errno()


def execveat(fd, path, flags, argv=(b"x", b"ran")):
    result = libc.syscall(
        322,
        fd,
        ctypes.addressof(keep(path)),
        ctypes.addressof(keep(argv)),
        ctypes.addressof(keep(())),
        flags,
    )
    return ctypes.get_errno() if result else 0


kept = []


def keep(value):
    kept.append(ctypes.create_string_buffer(value) if isinstance(value, bytes) else strings(value))
    return kept[-1]


def put(name, data, mode=0o755):
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, mode)
    return os.fsencode(os.path.join(top, name))


def in_use(path):
    fd = os.open(path, os.O_RDWR)
    try:
        return execve(path)
    finally:
        os.close(fd)


def bad_arguments_to(path):
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 8):
        return "an older kernel reads them first"
    return execve(path, 1)


code = open(static, "rb").read()
true = open("/bin/true", "rb").read()
os.symlink("loop", "loop")
os.symlink(static, "link")
program = os.fsencode(static)
put("script0", b"#!/bin/true\n")
for number in range(1, 6):
    put(f"script{number}", b"#!%b/script%d\n" % (os.fsencode(top), number - 1))
put("pages", bytes(2 * mmap.PAGESIZE))
pages = os.open("pages", os.O_RDWR)
page = mmap.mmap(pages, 2 * mmap.PAGESIZE)
os.truncate(pages, mmap.PAGESIZE)  # what lies beyond can't be read by anybody
page_at = ctypes.addressof(ctypes.c_char.from_buffer(page))
page[mmap.PAGESIZE - 4 : mmap.PAGESIZE] = b"/bin"
unterminated = page_at + mmap.PAGESIZE - 4
folder = os.open(".", os.O_PATH)
file = os.open(static, os.O_PATH)
closing_script = os.open("script0", os.O_RDONLY | os.O_CLOEXEC)

CASES = {
    "text": lambda: execve(put("text", b"no program")),
    "empty file": lambda: execve(put("nothing", b"")),
    "cut short": lambda: execve(put("short", true[:40])),
    "missing loader": lambda: execve(put("lost", true.replace(b"/lib64/ld-", b"/lib65/ld-"))),
    "script without interpreter": lambda: execve(put("blank", b"#!\n")),
    "missing interpreter": lambda: execve(put("gone", b"#!/nope/sh\n")),
    "interpreter is a folder": lambda: execve(put("folder", b"#!/usr\n")),
    "interpreter is text": lambda: execve(put("by-text", b"#!%b\n" % put("text", b"no program"))),
    "interpreter without x": lambda: execve(put("by-data", b"#!/etc/passwd\n")),
    "five scripts deep": lambda: execve(b"script4"),
    "six scripts deep": lambda: execve(b"script5"),
    "one argument too long": lambda: execve(program, (b"x", b"y" * (MIB // 8))),
    "arguments too long": lambda: execve(program, (b"x", *[b"y" * 100_000] * 100)),
    "open for writing": lambda: in_use(put("busy", code)),
    "loop": lambda: execve(b"loop"),
    "name too long": lambda: execve(b"y" * 256),
    "path too long": lambda: execve(b"./" * 2050 + b"x"),
    "path of the greatest length": lambda: execve(b"./" * 2040 + b"script0"),
    "below a file": lambda: execve(program + b"/x"),
    "folder": lambda: execve(b"/usr"),
    "folder without x": lambda: execve(b"/root/x/y"),
    "no x": lambda: execve(put("data", code, 0o644)),
    "x for somebody else": lambda: execve(put("others", code, 0o001)),
    "device": lambda: execve(b"/dev/null"),
    "not there": lambda: execve(b"nope"),
    "no path": lambda: execve(b""),
    "bad path": lambda: execve(1),
    "null path": lambda: execve(None),
    "path in the kernel": lambda: execve(1 << 63),
    "path at the end of memory": lambda: execve(2**64 - 8),
    "path without end": lambda: execve(unterminated),
    "bad arguments": lambda: execve(program, 1),
    "arguments at the end of memory": lambda: execve(program, 2**64 - 8),
    "bad environment": lambda: execve(program, (b"x", b"ran"), 1),
    "bad arguments to what is not there": lambda: bad_arguments_to(b"nope"),
    "bad arguments to what has no x": lambda: bad_arguments_to(put("data", code, 0o644)),
    "arguments without end": lambda: execve(program, unterminated - 4),
    "no arguments": lambda: execve(program, None),
    "bad folder": lambda: execveat(999, b"x", 0),
    "folder is a file": lambda: execveat(file, b"x", 0),
    "empty path": lambda: execveat(file, b"", 0),
    "empty path of a folder": lambda: execveat(folder, b"", EMPTY_PATH),
    "closing script": lambda: execveat(closing_script, b"", EMPTY_PATH),
    "link not followed": lambda: execveat(folder, b"link", NOFOLLOW),
    "unknown flags": lambda: execveat(folder, b"link", 1 << 25),
    "check": lambda: execveat(file, b"", EMPTY_PATH | CHECK),
    "check of what is none": lambda: execveat(folder, b"text", CHECK),
    "it still works": lambda: execve(program),
}
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for name, case in CASES.items():
    child = os.fork()
    if child == 0:
        error = case()
        error = errno.errorcode.get(error, error)
        os.write(1, f"{name}: {error}\n".encode())
        os._exit(7)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(1, f"{name}: {status}\n".encode())
