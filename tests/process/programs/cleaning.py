"""Its cleanup waits for a line that the test types: it ends when we say, not by time."""

import signal


def cut_short(number, frame):
    print("cut short", flush=True)


signal.signal(signal.SIGALRM, cut_short)
try:
    print("ready", flush=True)
    while True:
        signal.pause()
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    input()
    print("cleaned", flush=True)
