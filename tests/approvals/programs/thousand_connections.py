import socket
import sys

ends = []
for _ in range(1000):
    end = socket.socket(socket.AF_UNIX)
    end.setblocking(False)
    try:
        end.connect(sys.argv[1])
        end.send(b'{"v": 1, "do": "list"}')
    except OSError:
        pass
    ends.append(end)
print("ready", flush=True)
sys.stdin.read()
