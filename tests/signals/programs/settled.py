"""One way in which what was settled about a signal must not last, by its name."""

import os
import signal
import sys
import threading

from family import boxes
from inside import ask, block_all, box, dismiss, drain, line_of, named, native, receive, spawn, tell

OFTEN = 1000
REAL_TIME = 34  # the kernel queues each of these


def kill(pid, number):
    return named(native(62, pid, number))


def results(pid, number, times=OFTEN):
    """How often kill had which result, the first and the last of them."""
    each = [kill(pid, number) for _ in range(times)]
    return {str(result): each.count(result) for result in set(each)}, each[0], each[-1]


def with_child(name="child"):
    box(boxes, name)
    spawn(lambda: receive(boxes, name))
    return ask(boxes, name)[0]


def often(*numbers):
    """A thousand times to a child, and what it got."""
    child = with_child()
    found = []
    for number in map(int, numbers):
        found.append([results(child, number), len(ask(boxes, "child")[1])])
    dismiss(boxes, "child")
    tell(found)


def waits_for_exec(line, said, go):
    """A child that blocks all, says so, and runs the program when it is told."""
    os.write(said, b"ready\n")
    os.read(go, 1)
    os.execv(line[0], line)


def target_runs(*line):
    """The child runs another program between two signals."""
    said, says = os.pipe()
    goes, go = os.pipe()
    os.set_inheritable(says, False)
    child = spawn(lambda: waits_for_exec(line, says, goes))
    os.close(says)
    assert line_of(said) == b"ready\n"
    before = results(child, 34, 20)
    os.write(go, b"g")
    assert os.read(said, 1) == b""  # the exec has closed it
    after = results(child, 34, 20)
    os.kill(child, 9)
    os.waitpid(child, 0)
    tell([before, after])


def target_names_itself(name):
    """The child takes another name, which no rule is about."""
    said, says = os.pipe()
    goes, go = os.pipe()

    def run():
        os.read(goes, 1)
        with open("/proc/self/comm", "w") as file:
            file.write(name)
        os.write(says, b"named\n")
        os.read(goes, 1)

    child = spawn(run)
    before = results(child, 34, 20)
    os.write(go, b"g")
    assert line_of(said) == b"named\n"
    after = results(child, 34, 20)
    os.kill(child, 9)
    os.waitpid(child, 0)
    tell([before, after])


def sender_runs(*line):
    """A worker of this program may signal it, but not once it has run another."""
    parent = os.getpid()

    def run():
        tell(results(parent, 34, 20))
        os.execv(line[0], [*line, str(parent)])

    os.waitpid(spawn(run), 0)
    tell(len(drain()))


def takes_the_number():
    """Another process gets the number of a child that has ended: a grandchild."""
    child = spawn(signal.pause)
    before = results(child, 34, 20)
    os.kill(child, 9)
    os.waitpid(child, 0)
    said, says = os.pipe()
    goes, go = os.pipe()

    def other():
        for _ in range(1000):
            with open("/proc/sys/kernel/ns_last_pid", "w") as file:
                file.write(str(child - 1))
            pid = os.fork()
            if pid == 0 and os.getpid() == child:
                os.write(says, b"true\n")
                os.read(goes, 1)
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            if pid == child:
                return
        os.write(says, b"false\n")

    parent = spawn(other)
    if line_of(said) == b"true\n":
        tell([before, results(child, 34, 20)])
    os.write(go, b"g")
    os.waitpid(parent, 0)


def until_refused():
    """Until the log is full."""
    child = with_child()
    sent = 0
    while (result := kill(child, REAL_TIME)) == 0:
        sent += 1
    got = len(ask(boxes, "child")[1])
    tell([sent, result, got, results(child, REAL_TIME, 10)[0], len(ask(boxes, "child")[1])])
    dismiss(boxes, "child")


def ends_meanwhile(how, rounds):
    """Senders run another program, or are killed, while two of their threads signal a child."""
    child = with_child()

    def run():
        has_sent = threading.Event()

        def floods():
            while True:
                native(62, child, REAL_TIME)
                has_sent.set()

        for _ in range(2):
            threading.Thread(target=floods, daemon=True).start()
        has_sent.wait()
        if how == "exec":
            os.execv("/bin/true", ["true"])
        os.kill(os.getpid(), 9)

    senders = []
    for _ in range(int(rounds)):
        senders.append(spawn(run))
        os.waitpid(senders[-1], 0)
    got = ask(boxes, "child")[1]
    dismiss(boxes, "child")
    tell([senders, [each["pid"] for each in got]])


block_all()
globals()[sys.argv[2]](*sys.argv[3:])
