"""Execs with many words, and says by how many kilobytes its parent, the supervisor, grew:
`execs_with_many_words.py TIMES WORDS`."""

import os
import subprocess
import sys

times, words = map(int, sys.argv[1:])


def resident():
    with open(f"/proc/{os.getppid()}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def execs(count):
    for _ in range(count):
        subprocess.run(["/bin/true", *["ab"] * words], check=False)


execs(5)
before = resident()
execs(times)
print(resident() - before)
