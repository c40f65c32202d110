import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTERM})


def work():
    if (pid := os.fork()) == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        while True:
            signal.pause()
    return pid


worker = work()
print("serving", flush=True)
while (number := signal.sigwait({signal.SIGHUP, signal.SIGTERM})) == signal.SIGHUP:
    old, worker = worker, work()
    os.kill(old, signal.SIGTERM)
    print("reloaded", os.waitpid(old, 0)[1], flush=True)
os.kill(worker, signal.SIGTERM)
print("stopped", os.waitpid(worker, 0)[1], flush=True)
