"""Takes an address, has listen(2) called on it all the time, and answers like a session."""

import json
import socket
import sys
import threading

end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
end.bind(sys.argv[1].replace("@", "\0"))


def listens():
    while True:
        end.listen(64)


end.listen(64)
for _ in range(2):
    threading.Thread(target=listens, daemon=True).start()
print("taken", flush=True)
while True:
    with end.accept()[0] as caller:
        if caller.recv(1 << 16):
            print("believed", flush=True)
            for message in ({"taken": 1}, {"ended": 0, "signal": 0, "why": ""}):
                caller.send(json.dumps({"v": 1, **message}).encode())
