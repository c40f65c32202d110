import os
import sys
import threading

from inside import native, spawn, tell
from namespace import into_a_namespace

rounds = int(sys.argv[1])


def first():
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
        for _ in range(rounds):
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


if os.getuid() == 0:
    native(272, 0x00020000)  # a mount namespace, for its /proc
    native(165, b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
into_a_namespace(first)
