"""Runs ./link again and again, which leads now to here/tool, now to the same file as another mount
namespace has it at there/tool, and says of each run which of the two the kernel loaded.

ROUNDS"""

import os
import signal
import subprocess
import sys
import time

here, there = os.path.abspath("here/tool"), os.path.abspath("there/tool")
script = "mount --bind here/tool there/tool && echo && exec sleep 1000"
keeper = subprocess.Popen(["unshare", "-Urm", "sh", "-c", script], stdout=subprocess.PIPE)
assert keeper.stdout is not None
keeper.stdout.readline()
places = {here: 0.0003, f"/proc/{keeper.pid}/root{there}": 0.0001}


def flip() -> None:
    while True:
        for place, stays_s in places.items():
            os.symlink(place, "new")
            os.rename("new", "link")
            time.sleep(stays_s)


os.symlink(here, "link")
flipping = os.fork()  # a thread would stand still while the other one spawns
if flipping == 0:
    flip()
rounds, done, kinds = int(sys.argv[1]), 0, set()
while done < rounds or (len(kinds) < 2 and done < 20 * rounds):  # as slow as the machine may be
    try:
        ran = subprocess.run(
            ["./link", "/proc/self/exe"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        said = ran.stdout.decode().strip() or "nothing"
    except OSError:
        said = "denied"
    print(said, flush=True)
    kinds.add(said)
    done += 1
os.kill(flipping, signal.SIGKILL)
keeper.kill()
