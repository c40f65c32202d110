"""What a long session does, in rounds that are alike: execs, forks, signals, connections, files,
recorded commands, questions; each with names of its own, so that whoever keeps names keeps more.

Arguments: a folder to work in; the pid of a process outside. Each line of input is a number of
rounds to do, and a 1 where a question and a recorded command follow, else a 0; then it says how
long a plain exec and its wait took (the median, in microseconds)."""

import os
import signal
import socket
import statistics
import sys
import threading
import time

FOLDER, OUTSIDE = sys.argv[1], int(sys.argv[2])
EXECS = 10
SILENCE = os.open(os.devnull, os.O_WRONLY)
QUIET = [(os.POSIX_SPAWN_DUP2, SILENCE, 1), (os.POSIX_SPAWN_DUP2, SILENCE, 2)]
TO_OUTSIDE = signal.SIGUSR1


def ran(path, *words, streams=QUIET):
    pid = os.posix_spawn(path, [path, *words], os.environ, file_actions=streams)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def must(expected, found):
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def fails(error, action, *arguments):
    try:
        action(*arguments)
    except error:
        return
    raise AssertionError(f"{action} did not fail")


def in_child(action):
    pid = os.fork()
    if pid == 0:
        action()
        os._exit(0)
    return pid


def execs(number):
    took_us = []
    for _ in range(EXECS):
        started = time.perf_counter()
        must(0, ran("/bin/true", str(number)))
        took_us.append((time.perf_counter() - started) * 1e6)
    own = f"{FOLDER}/program-{number}"
    with open(own, "w") as file:
        file.write("#!/bin/sh\nexit 3\n")
        os.fchmod(file.fileno(), 0o755)
    must(3, ran(own))
    os.unlink(own)
    fails(FileNotFoundError, ran, own)
    fails(PermissionError, ran, f"{FOLDER}/denied", str(number))
    must(0, ran("/bin/sh", "-c", f"/bin/true {number} | /bin/cat"))
    return took_us


def forks():
    for _ in range(3):
        os.waitpid(in_child(lambda: None), 0)
    # An orphan, which falls to the supervisor.
    os.waitpid(in_child(lambda: in_child(lambda: ran("/bin/true", "orphan"))), 0)
    thread = threading.Thread(target=lambda: ran("/bin/true", "of-a-thread"))
    thread.start()
    thread.join()


def signals():
    child = in_child(signal.pause)
    os.kill(child, 0)
    os.kill(child, signal.SIGTERM)
    must(-signal.SIGTERM, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    leader = in_child(lambda: (os.setpgid(0, 0), signal.pause()))
    while os.getpgid(leader) != leader:
        time.sleep(0)
    os.killpg(leader, signal.SIGKILL)
    os.waitpid(leader, 0)
    signal.raise_signal(signal.SIGUSR2)
    fails(PermissionError, os.kill, OUTSIDE, TO_OUTSIDE)


def connections(number):
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()
    with socket.socket() as refused:
        fails(ConnectionRefusedError, refused.connect, ("127.0.0.2", 9))
    for name, opens in ((f"free-{number}", True), (f"kept-{number}", False)):
        path = f"{FOLDER}/{name}"
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(path)
            server.listen()
            if opens:
                client.connect(path)
            else:
                fails(PermissionError, client.connect, path)
        os.unlink(path)


def files(number):
    name = f"{FOLDER}/audited/{number}"
    os.mkdir(name)
    with open(f"{name}/file", "w") as file:
        file.write("x")
    os.rename(f"{name}/file", f"{name}/other")
    os.unlink(f"{name}/other")
    os.rmdir(name)
    fails(PermissionError, open, f"{FOLDER}/../secret")


def asked(number):
    # The question is on the standard error of who asks.
    must(0, ran(f"{FOLDER}/asked", str(number), streams=QUIET[:1]))
    must(5, ran(f"{FOLDER}/recorded", str(number)))


signal.signal(signal.SIGUSR2, lambda *_: None)
number = 0
print("ready", flush=True)
for line in sys.stdin:
    took_us = []
    rounds, asks = map(int, line.split())
    for _ in range(rounds):
        number += 1
        took_us += execs(number)
        forks()
        signals()
        connections(number)
        files(number)
    if asks:
        asked(number)
    print(statistics.median(took_us), flush=True)
