"""goes_deep.py WHAT: goes where a path is longer than the kernel tells, with a copy of ./ok.

`runs`: says what comes of execs there. `asks`: says what comes of `ok WORD` there for each line
that it reads. `moves`: the same for one line, in a process that shares its folder, and goes on to
another one at the next line. `opens`: sets flags of a file there, and says what came of it; then
what a `true` that is denied has on its standard error, which is that file. `commands COMMAND…`:
says what comes of each; `@/` is the root folder by relative words, and ./ls is a link to ./ok.
"""

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys

F_SETSIG, F_SETOWN_EX, OWNER_IS_A_PROCESS = 10, 15, 1


def outcome(words, **options):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False, **options)
        return done.stdout or b"%d" % done.returncode
    except OSError as failure:
        return errno.errorcode[failure.errno].encode()


def tell(text):
    os.write(1, text + b"\n" * (not text.endswith(b"\n")))


program = os.path.abspath("ok")
levels = 30 + len(os.getcwd().split("/"))
for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
shutil.copy(program, "ok")
os.mkdir("another")
shutil.copy(program, "another/ok")

match sys.argv[1]:
    case "runs":
        os.symlink("ok", "link")
        for name, line in (("script", "#!./ok shebang"), ("by_env", "#!/usr/bin/env ./ok")):
            with open(name, "w") as file:
                file.write(line + "\n")
            os.chmod(name, 0o755)
        tell(outcome(["./ok", "file"]))
        tell(outcome(["./link", "link"]))
        tell(outcome(["another/../another/ok", "around"]))
        tell(outcome(["./script"]))
        tell(outcome(["./by_env"]))
        tell(outcome(["./nothing"]))
        tell(outcome(["./another"]))
        tell(outcome(["ok", "found"], env={"PATH": "another"}))
        tell(outcome(["sh", "-c", "./nothing 2>/dev/null; echo $?; ./ok shell"]))
        fd = os.open("ok", os.O_RDONLY)
        tell(outcome([f"/proc/self/fd/{fd}", "descriptor"], pass_fds=[fd]))
    case "asks":
        for line in sys.stdin:
            tell(outcome(["./ok", line.strip()]))
    case "opens":
        with open("file", "w+") as file:
            for command, value in (
                (fcntl.F_SETFL, os.O_ASYNC),
                (F_SETSIG, 10),
                (F_SETOWN_EX, struct.pack("ii", OWNER_IS_A_PROCESS, os.getpid())),
                (fcntl.F_SETFL, 0),
            ):
                fcntl.fcntl(file, command, value)
                tell(b"done")
            outcome(["/bin/true"], stderr=file)
            file.seek(0)
            tell(file.read().encode())
    case "commands":
        os.makedirs("build/x")
        os.symlink("ok", "ls")
        for command in sys.argv[2:]:
            try:
                done = subprocess.run(command.replace("@/", "../" * levels).split(), check=False)
                tell(b"%d" % done.returncode)
            except OSError as failure:
                tell(errno.errorcode[failure.errno].encode())
    case "moves":
        word = input()
        share_folder = 0x200
        child = ctypes.CDLL(None).syscall(56, share_folder | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            try:
                os.execv(program, ["ok", word])
            finally:
                os._exit(9)
        input()
        os.chdir("another")
        tell(b"changed")
        tell(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
