import os
import signal

for name in ("SIGINT", "SIGWINCH"):
    signal.signal(getattr(signal, name), lambda number, _frame: os.write(1, b"CAUGHT %d;" % number))
print("ready", flush=True)
while True:
    signal.pause()
