"""Keeps whoever writes to the session's journal waiting for a page that its own file system never
serves: `holds_the_journal.py SERVER FOLDER FILE STORE`."""

import mmap
import os
import subprocess
import sys

server, folder, file, store = sys.argv[1:]
journal = f"{store}/sessions/{os.environ['SIGWRAP_SESSION']}.journal"
serving = subprocess.Popen([sys.executable, server, folder, file], stdout=subprocess.PIPE)
assert serving.stdout.readline() == b"ready\n"
if os.fork() == 0:
    with open(f"{folder}/never-read", "rb") as served:
        never = mmap.mmap(served.fileno(), 0, access=mmap.ACCESS_READ)
    os.pwrite(os.open(journal, os.O_WRONLY), memoryview(never)[:1], 0)
    os._exit(0)
while True:
    subprocess.run(["/bin/true"], check=False)
