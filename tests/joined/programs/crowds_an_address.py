"""Connects to an address as often as it can."""

import socket
import sys

print("ready", flush=True)
while True:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        try:
            end.connect(sys.argv[1].replace("@", "\0"))
        except OSError:
            pass
