"""What number 1 of a pid namespace of its own does, by its name."""

import os
import sys
import threading

from inside import ask, block_all, box, dismiss, drain, named, native, receive, send, spawn, tell


def kills_number_one():
    init = os.pidfd_open(os.getpid())

    def inside():
        os.setpgid(0, 0)
        tell([named(native(424, init, number, 0, 0)) for number in (9, 19)])

    os.waitpid(spawn(inside), 0)
    tell("lives")


def numbers_given_away(rounds):
    if os.getuid() == 0:
        native(272, 0x00020000)  # a mount namespace, for its /proc
        native(165, b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    if native(165, b"proc", b"/proc", b"proc", 0, 0) != 0:  # mount
        tell("no /proc of its own")
        return
    try:
        with open("/proc/sys/kernel/pid_max", "w") as file:
            file.write("320")
    except OSError as refusal:
        tell(f"pid_max: {refusal}")
        return
    over, overs = os.pipe()

    def victims():
        """The attacker's siblings' children: they come and go, and none may be hit."""
        hit = made = 0
        os.set_blocking(over, False)
        while True:
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            made += 1
            hit += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
            try:
                os.read(over, 1)
                break
            except BlockingIOError:
                pass
        tell([made, hit])

    def attacker():
        sent = 0
        for _ in range(int(rounds)):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            reaper = threading.Thread(target=os.waitpid, args=(pid, 0))
            reaper.start()
            for _ in range(3):
                sent += native(62, pid, 9) == 0
            reaper.join()
        tell(sent)

    one = spawn(victims)
    os.waitpid(spawn(attacker), 0)
    os.write(overs, b"x")
    os.waitpid(one, 0)


def numbers_of_a_namespace(boxes, outside):
    box(boxes, "two")
    block_all()
    spawn(lambda: receive(boxes, "two"))
    ask(boxes, "two")

    def three():
        told = {"own": [os.getpid(), os.getppid()]}
        for name, number in (
            ("above", 1),
            ("sibling", 2),
            ("itself", 3),
            ("outside", int(outside)),
            ("nobody", 300),
            ("group", 0),
        ):
            told[name] = [
                named(send(call, "native", number, 34))
                for call in (("kill", "tgkill", "rt_sigqueueinfo") if number > 0 else ("kill",))
            ]
        told["arrived"] = [len(drain()), ask(boxes, "two")[1]]
        tell(told)

    os.waitpid(spawn(three), 0)
    by_first = [
        named(send("kill", "native", 2, 35)),
        [a["signal"] for a in ask(boxes, "two")[1]],
        len(drain()),
    ]
    tell(by_first)
    dismiss(boxes, "two")


case, *words = sys.argv[1:]
flags = 0x20000000 | (0 if os.getuid() == 0 else 0x10000000)
if native(272, flags) != 0:
    tell("no pid namespaces here")
else:
    os.waitpid(spawn(lambda: globals()[case](*words)), 0)
