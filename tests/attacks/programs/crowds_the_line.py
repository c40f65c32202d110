"""Addresses that look like those of sessions: of listeners that have ended, in the names of coming
processes; and connections to those that there are, without end."""

import os
import re
import socket
import sys
from pathlib import Path

KIND = socket.SOCK_SEQPACKET
uid = os.geteuid()
kept = []
for number in range(int(sys.argv[1])):
    end = socket.socket(socket.AF_UNIX, KIND)
    end.bind(f"\0sigwrap-session/{uid}/{os.getpid() + number}/1/000000000000")
    if os.fork() == 0:
        end.listen(1)
        os._exit(0)
    os.wait()
    kept.append(end)
print("ready", flush=True)
while sys.argv[2:] == ["crowd"]:
    unix = Path("/proc/net/unix").read_text()
    for address in re.findall(rf"@(sigwrap-session/{uid}/\S+)", unix):
        if not address.endswith("/1/000000000000"):
            for _ in range(200):
                end = socket.socket(socket.AF_UNIX, KIND | socket.SOCK_NONBLOCK)
                try:
                    end.connect(f"\0{address}")
                except OSError:
                    pass
                end.close()
sys.stdin.read()
