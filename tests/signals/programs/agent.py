"""An agent: a worker that it started anew, one that it forked, a server that one step has started,
and then one more step, a shell line. Says which of them have ended; those that are named besides
are waited for."""

import json
import os
import select
import signal
import subprocess
import sys

handled = []


def handle(number, _frame):
    handled.append(number)


def work(ready):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})  # for a while, it may be
    os.write(ready, b".")
    while True:
        signal.pause()


def step(line):
    return subprocess.run(["bash", "-c", line], check=False).returncode


if sys.argv[1] == "worker":
    work(1)

for each in (signal.SIGABRT, signal.SIGUSR1):
    signal.signal(each, handle)
again = [sys.executable, "-ISB", __file__, "worker"]
worker = subprocess.Popen(again, stdout=subprocess.PIPE)
worker.stdout.read(1)
ready = os.pipe()
fork = os.fork()
if fork == 0:
    work(ready[1])
os.read(ready[0], 1)
name = os.path.basename(__file__)
one = f"bash -c 'echo $$; exec -a server-of-{name} sleep 1000' &"
started = subprocess.Popen(["bash", "-c", one], stdout=subprocess.PIPE)
server = int(started.stdout.readline())
started.wait()
pidfds = {
    name: os.pidfd_open(pid)
    for name, pid in (("worker", worker.pid), ("fork", fork), ("server", server))
}
os.environ |= {
    "AGENT": str(os.getpid()),
    "WORKER": str(worker.pid),
    "FORK": str(fork),
    "SERVER": str(server),
}
status = step(sys.argv[1])


ended = []
for name, pidfd in pidfds.items():
    if select.select([pidfd], [], [], 60 if name in sys.argv[2:] else 0)[0]:
        ended.append(name)
print(json.dumps({"step": status, "ended": ended, "handled": handled}), flush=True)
for pid in (worker.pid, fork):
    os.kill(pid, signal.SIGKILL)
