"""Runs a command that has the token in a variable, and says how often it is in this process as
well, and in the stub that the command may be behind. It comes backwards: it is not to be here."""

import os
import subprocess
import sys

token, has_stub = sys.argv[1][::-1].encode(), sys.argv[2] == "stub"


def found_in(pid):
    assert token not in open(f"/proc/{pid}/environ", "rb").read()
    found = 0
    for line in open(f"/proc/{pid}/maps"):
        span, mode = line.split()[:2]
        if "r" in mode and "vvar" not in line and "vsyscall" not in line:
            start, end = (int(word, 16) for word in span.split("-"))
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                memory.seek(start)
                parts = memory.read(end - start).split(b"TOKEN=")
                found += sum(part.startswith(token) for part in parts[1:])
    return found


# Unbuffered: communicate() reads the descriptor, past what a buffer has taken already.
command = subprocess.Popen(sys.argv[3:], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
os.write(1, command.stdout.readline())
found = found_in("self") + (found_in(command.pid) if has_stub else 0)
rest, _ = command.communicate()
os.write(1, rest)
print("in memory", found, "exit", command.returncode)
