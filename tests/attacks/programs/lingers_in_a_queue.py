"""A socket that lingers, sent to the control socket and closed here, while who is refused there has
to wait. Then /bin/true runs. It says what came of that."""

import os
import pathlib
import socket

from inside import spawn, tell
from lingering import lingering, reset

REFUSED_AT_ONCE = 10

(path,) = pathlib.Path(os.environ["SIGWRAP_STORE"], "control").glob("*.sock")


def connected():
    end = socket.socket(socket.AF_UNIX)
    end.connect(str(path))
    return end


one, other = lingering()
for _ in range(REFUSED_AT_ONCE):
    refused = connected()
    while refused.recv(4096):
        pass
end = connected()  # waits until somebody is let in again
try:
    socket.send_fds(end, [b"x"], [one.fileno()])
    one.close()
except PermissionError:
    pass  # since Linux 6.16 it takes none
end.shutdown(socket.SHUT_WR)
try:
    while end.recv(4096):
        pass
except ConnectionResetError:
    pass
end.close()
true = spawn(lambda: os.execv("/bin/true", ["true"]))
ran = os.waitpid(true, 0)[1]
reset(other)
tell(ran)
