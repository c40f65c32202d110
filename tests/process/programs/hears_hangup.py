"""Says each SIGHUP, SIGCONT and SIGTERM, and ends at the last."""

import os
import signal

heard = {signal.SIGHUP, signal.SIGCONT, signal.SIGTERM}
for each in heard:
    signal.signal(each, lambda number, _: os.write(1, b"got %d\n" % number))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(1, b"ready\n")
while signal.SIGTERM not in signal.sigpending():
    signal.sigtimedwait({signal.SIGUSR1}, 0.01)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
os._exit(3)
