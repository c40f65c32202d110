"""moves_it.py WHAT WHEN PROGRAM: has PROGRAM run by a process that shares its root and folder, and
moves these: at a line that it reads while that one waits, or afterwards, and then it asks again."""

import ctypes
import os
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE_FS, NEW_MOUNTS, NEW_USER = 0x200, 0x20000, 0x10000000


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
        try:
            os.execv(program, ["ok", "harmless"])
        finally:
            os._exit(9)
    return child


def end(child):
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


what, when, program = sys.argv[1:]
if what == "root" and os.getuid():
    unshare(NEW_USER)  # so it may change its root
holder = same_folder_elsewhere() if what == "folder" else 0
first = start()
if when == "afterwards":
    end(first)
else:
    input()
if what == "folder":
    os.chdir(f"/proc/{holder}/cwd")
else:
    os.chroot("sub")
if when == "afterwards":
    first = start()
else:
    print("moved", flush=True)
end(first)
if holder:
    os.kill(holder, signal.SIGKILL)
