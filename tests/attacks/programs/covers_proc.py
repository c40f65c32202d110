"""Root puts a /proc of its own over the true one, in which nobody lives, and leaves a daemon."""

import ctypes
import os
import signal
import subprocess

from inside import named, native, spawn, tell

ours, theirs = os.pipe()


def daemon():
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(theirs, str(os.getpid()).encode())
        os.close(0)
        os.close(1)
        os.close(2)
        signal.pause()


os.waitpid(spawn(daemon), 0)
left = int(os.read(ours, 20))
child = spawn(signal.pause)
mount = ctypes.CDLL(None, use_errno=True).mount
covered = mount(b"none", b"/proc", b"tmpfs", 0, b"mode=755")
os.mkdir(f"/proc/{child}")
with open(f"/proc/{child}/stat", "w") as file:
    file.write(f"{child} (init) S 1 1 1 0 -1 0 {'0 ' * 44}")
ran = subprocess.run(["/bin/true"], close_fds=False, check=False).returncode
tell([covered, ran, named(native(62, child, 9)), os.waitpid(child, 0)[1], left])
