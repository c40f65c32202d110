"""What programs do to each other that a container's filter concerns: a pidfd, a connection."""

import os
import signal
import socket
import subprocess
import threading

child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
pidfd = os.pidfd_open(child.pid)
signal.pidfd_send_signal(pidfd, signal.SIGTERM)
print("pidfd", child.wait())
try:
    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
except ProcessLookupError:
    print("gone")
server = socket.create_server(("127.0.0.1", 0))
answering = threading.Thread(target=lambda: server.accept()[0].sendall(b"talked\n"))
answering.start()
with socket.create_connection(server.getsockname()) as connection:
    print(connection.recv(10).decode(), end="")
answering.join()
