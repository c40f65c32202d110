"""Crowds the store at a path, then asks: long journals of sessions that there are not, held as by
their writers and dated to come, and sockets of theirs that never answer."""

import fcntl
import os
import re
import resource
import socket
import subprocess
import sys

SESSIONS = 120

store = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (SESSIONS * 4, SESSIONS * 4))
(own,) = [name for name in os.listdir(f"{store}/sessions") if name.endswith(".journal")]
row = open(f"{store}/sessions/{own}").read()
words = ",".join(['"word"'] * 20_000)
row = re.sub(r'"command":\[[^]]*\]', f'"command":[{words}]', row)
os.chdir(f"{store}/control")
ends = []
for number in range(SESSIONS):
    name = f"20991231-000000-{number:06}"
    journal = open(f"{store}/sessions/{name}.journal", "w")
    journal.write(row)
    journal.flush()
    fcntl.flock(journal, fcntl.LOCK_EX)
    end = socket.socket(socket.AF_UNIX)
    end.bind(f"{name}.sock")
    end.listen()
    ends += [journal, end]
subprocess.run(["uname"])
