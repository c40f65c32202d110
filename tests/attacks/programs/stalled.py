"""Executes each of its arguments in a child of its own, says what came of it ("NAME ERRNO"), and
meanwhile, as a bystander, runs /bin/true until all of them are done. Then it says "bystander" and
how often it ran. `lease:FILE` is leased by one more child, for as long as it takes."""

import errno
import fcntl
import os
import signal
import sys

WORDS = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}


def run(*words):
    child = os.fork()
    if child == 0:
        try:
            os.execve(words[0], words, WORDS)
        except OSError as refusal:
            os._exit(refusal.errno)
    return child


def lease(path):
    """Held until this program's own end."""
    told, tell = os.pipe()
    if os.fork() == 0:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(os.open(path, os.O_WRONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(tell, b"x")
        signal.pause()
    os.read(told, 1)


waiting = {}
for word in sys.argv[1:]:
    kind, _, path = word.rpartition(":")
    if kind == "lease":
        lease(path)
    if kind == "wrapped":
        os.environ["PATH"] = WORDS["PATH"] = "/nowhere:" * 14_000
        waiting[run("/usr/bin/env", "nice", "nohup", "setsid", path)] = path
    else:
        waiting[run(path)] = path
bystander, runs = run("/bin/true"), 0
while waiting or not runs:
    pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    if pid == bystander:
        runs += code == 0
        if waiting:
            bystander = run("/bin/true")
    elif pid in waiting:
        name = os.path.basename(waiting.pop(pid))
        print(name, errno.errorcode.get(code, code), flush=True)
print("bystander", runs, flush=True)
