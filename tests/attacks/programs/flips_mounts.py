"""Runs ./link again and again, which leads now to here/tool, now to the same file as another mount
namespace has it at there/tool, and says of each run which of the two the kernel loaded.

ROUNDS"""

import os
import subprocess
import sys
import threading

here, there = os.path.abspath("here/tool"), os.path.abspath("there/tool")
script = "mount --bind here/tool there/tool && echo && exec sleep 1000"
keeper = subprocess.Popen(["unshare", "-Urm", "sh", "-c", script], stdout=subprocess.PIPE)
assert keeper.stdout is not None
keeper.stdout.readline()
places = [here, f"/proc/{keeper.pid}/root{there}"]
running = True


def flip() -> None:
    while running:
        for place in places:
            os.symlink(place, "new")
            os.rename("new", "link")


os.symlink(here, "link")
flipping = threading.Thread(target=flip)
flipping.start()
for _ in range(int(sys.argv[1])):
    try:
        done = subprocess.run(
            ["./link", "/proc/self/exe"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        print(done.stdout.decode().strip() or "nothing", flush=True)
    except OSError:
        print("denied", flush=True)
running = False
flipping.join()
keeper.kill()
