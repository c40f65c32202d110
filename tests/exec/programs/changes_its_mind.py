"""Asks for ./ok in a process that shares its root and folder, and for each line that it reads it
changes something, by its arguments. After the word `afterwards` it does so once the first one has
ended, and asks again."""

import ctypes
import mmap
import os
import signal
import sys

CLONE_FS, NEW_MOUNTS, NEW_USER = 0x200, 0x20000, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)
libc.execve.argtypes = [ctypes.c_void_p] * 3
shared = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(shared))


def put(path, word, variable=b"UN_PRELOAD=/no/library"):
    for start, text in ((0, path), (256, word), (512, variable)):
        shared[start : start + 256] = text.ljust(256, b"\0")


def unshare(flags):
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def same_folder_elsewhere():
    """By its path and inode, in a mount namespace of another process."""
    done, tell = os.pipe()
    holder = os.fork()
    if holder == 0:
        unshare(NEW_USER | NEW_MOUNTS)
        os.write(tell, b"!")
        signal.pause()
    os.close(tell)
    assert os.read(done, 1)
    return holder


def start():
    child = libc.syscall(56, CLONE_FS | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        if mapping is not None:
            mapping.close()  # what somebody could write to is executed by nobody
        words = (ctypes.c_void_p * 3)(at, at + 256, None)
        variables = (ctypes.c_void_p * 2)(at + 512, None)
        libc.execve(at, ctypes.addressof(words), ctypes.addressof(variables))
        os._exit(9)
    return child


def end(child):
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def change(what):
    if what == "argument":
        put(b"./ok", b"harmful")
    elif what == "variable":
        put(b"./ok", b"harmless", b"LD_PRELOAD=/no/library")
    elif what == "value":
        put(b"./ok", b"harmless", b"LD_PRELOAD=/no/other")
    elif what == "file":
        os.rename("bad", "ok")
    elif what == "content":
        with open("ok", "ab") as file:
            file.write(b"more")
    elif what == "mapping":
        mapping[-1] ^= 1
        mapping.close()
    elif what == "folder":
        os.chdir(f"/proc/{holder}/cwd")
    elif what == "root":
        os.chroot("sub")


put(b"./ok", b"harmless")
mapping, holder = None, 0
if "mapping" in sys.argv:  # a page that is dirty already: what is stored there changes no time
    with open("ok", "r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    mapping[-1] = mapping[-1]
if "root" in sys.argv and os.getuid():
    unshare(NEW_USER)  # so it may change its root
if "folder" in sys.argv:
    put(os.path.abspath("ok").encode(), b"harmless")
    holder = same_folder_elsewhere()
child = start()
for what in sys.argv[1:]:
    if what == "afterwards":
        end(child)
    elif sys.argv[1] == "afterwards":
        change(what)
        child = start()
    else:
        input()
        change(what)
        print("changed", flush=True)
end(child)
if holder:
    os.kill(holder, signal.SIGKILL)
