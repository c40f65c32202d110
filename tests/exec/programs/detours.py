"""Attempts to execute what is denied, each in a child that ends with its errno."""

import ctypes
import os
import sys

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


DETOURS = {
    "itself": lambda: os.execv("bad", ["x", "ran"]),
    "a name of another": lambda: os.execv("bad", ["ok", "ran"]),
    "a relative path": lambda: os.execv("./down/../bad", ["x", "ran"]),
    "a symbolic link": lambda: os.execv("link", ["x", "ran"]),
    "a hard link": lambda: os.execv("hard-link", ["x", "ran"]),
    "a copy": lambda: os.execv("copy", ["x", "ran"]),
    "a copy in memory": lambda: in_memory("bad", "descriptor"),
    "a copy in memory by its number": lambda: in_memory("bad", "number"),
    "a script": lambda: os.execv("script", ["x", "ran"]),
    "a script of a script": lambda: os.execv("outer", ["x", "ran"]),
    "a script with a relative interpreter": lambda: os.execv("relative", ["x", "ran"]),
    "a script in memory": lambda: in_memory("script", "number"),
    "env": lambda: os.execv("/usr/bin/env", ["env", "./bad", "ran"]),
    "env by PATH": lambda: os.execve("/usr/bin/env", ["env", "bad", "ran"], {"PATH": os.getcwd()}),
    "env -S": lambda: os.execv("/usr/bin/env", ["env", "-S", "./bad ran"]),
    "env -S in a script": lambda: os.execv("by-env", ["x"]),
    "env that calls it another name": lambda: os.execv(
        "/usr/bin/env", ["env", "-a", "ok", "./bad"]
    ),
    "nice": lambda: os.execv("/usr/bin/nice", ["nice", "-n", "1", "./bad", "ran"]),
    "a wrapper in a wrapper": lambda: os.execv("/usr/bin/env", ["env", "-i", "nohup", "./bad"]),
    "timeout": lambda: os.execv("/usr/bin/timeout", ["timeout", "9", "./bad", "ran"]),
    "sh -c exec": lambda: os.execv("/bin/sh", ["sh", "-c", "exec ./bad ran"]),
    "xargs": lambda: os.execv("/bin/sh", ["sh", "-c", "echo ran | xargs ./bad"]),
    "find": lambda: os.execv("/usr/bin/find", ["find", "bad", "-exec", "./bad", "ran", ";"]),
    "its folder's descriptor": lambda: execveat(os.open(".", os.O_PATH), b"bad", 0),
    "its own descriptor": lambda: execveat(os.open("bad", os.O_PATH), b"", 0x1000),
    "/proc/self/fd": lambda: os.execv(f"/proc/self/fd/{os.open('bad', os.O_PATH)}", ["x", "ran"]),
    "/dev/fd": lambda: os.execv(f"/dev/fd/{os.open('bad', os.O_PATH)}", ["x", "ran"]),
    "/proc/self/cwd": lambda: os.execv("/proc/self/cwd/bad", ["x", "ran"]),
    "/proc/self/root": lambda: os.execv("/proc/self/root" + os.path.abspath("bad"), ["x", "ran"]),
    "another's folder": lambda: os.execv(f"/proc/{os.getppid()}/cwd/bad", ["x", "ran"]),
}


def every_detour():
    for name, detour in DETOURS.items():
        print(name, attempt(detour), flush=True)


def itself():
    for path in ("/proc/self/exe", "/proc/thread-self/exe", f"/proc/{os.getpid()}/exe"):
        again = ["x", "-c", "print('again')"]
        four = ["x", "-I", "-S", "-c", "print(4)"]
        print(attempt(lambda: os.execv(path, again)), flush=True)  # noqa: B023 (called at once)
        print(attempt(lambda: os.execv(path, four)), flush=True)  # noqa: B023


def in_another_root(here):
    def in_a_jail(path):
        os.chroot(".")
        os.chdir("/")
        os.execv(path, ["ok", "ran"])

    def out_of_the_jail():
        folder = os.open("/", os.O_PATH)
        os.chroot("down")
        execveat(folder, os.fsencode(os.path.abspath(here)[1:] + "/bad"), 0)

    for path in ("/bad", "copy", "/link", "../../bad", "/proc/self/exe"):
        print(attempt(lambda: in_a_jail(path)), flush=True)  # noqa: B023
    print(attempt(out_of_the_jail))


case, *words = sys.argv[1:]
globals()[case](*words)
