import json
import os
import sys
import threading

from inside import (
    NATIVE,
    ask,
    block_all,
    box,
    dismiss,
    drain,
    has_i386,
    line_of,
    named,
    native,
    parent_of,
    receive,
    send,
    spawn,
    tell,
)

boxes, groups = sys.argv[1], json.loads(sys.argv[3])
INSIDE = ("child", "grandchild", "sibling", "middle", "cousin", "root")
block_all()


def middle():
    spawn(lambda: receive(boxes, "sibling"))
    spawn(driver)
    receive(boxes, "middle")


def child():
    spawn(lambda: receive(boxes, "grandchild"))
    receive(boxes, "child")


def driver():
    os.setpgid(0, 0)
    spawn(child)
    dead = spawn(lambda: None)
    os.waitpid(dead, 0)
    zombie = spawn(lambda: None)
    os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
    orders, answers = os.pipe(), os.pipe()

    def second():
        os.write(answers[1], b"%d\n" % threading.get_native_id())
        while os.read(orders[0], 1) == b"d":
            os.write(answers[1], json.dumps(drain()).encode() + b"\n")

    thread = threading.Thread(target=second)
    thread.start()
    pids = {"self": os.getpid(), "thread": int(line_of(answers[0])), "zombie": zombie, "gone": dead}
    pids |= {name: ask(boxes, name)[0] for name in INSIDE} | json.loads(sys.argv[2])
    pids["supervisor"] = parent_of(pids["root"])
    pids["front"] = parent_of(pids["supervisor"])
    outer = parent_of(pids["front"])  # the binary's own, which waits for the front
    if os.getpgid(outer) == os.getpgid(pids["root"]):
        pids["outer"] = outer

    def arrived(name):
        if name == "self":
            return drain()
        if name == "thread":
            os.write(orders[1], b"d")
            return json.loads(line_of(answers[0])) + drain()
        if name in ("zombie", "gone", "front", "supervisor", "outer"):
            return []
        return ask(boxes, name)[1]

    rows = []
    for name, pid in pids.items():
        number = 34 if name != "thread" else 48  # nothing sent to oneself twice: none is counted
        for abi in ("native", "i386") if has_i386() else ("native",):
            for syscall in NATIVE:
                pidfd = -1
                if syscall == "pidfd_send_signal":
                    if name == "gone":
                        continue
                    pidfd = os.pidfd_open(pid, os.O_EXCL if name == "thread" else 0)
                tgid = os.getpid() if name == "thread" else pid
                result = send(syscall, abi, pid, number, tgid=tgid, pidfd=pidfd)
                if pidfd >= 0:
                    os.close(pidfd)
                rows.append(
                    {
                        "target": name,
                        "syscall": syscall,
                        "abi": abi,
                        "signal": number,
                        "result": named(result),
                        "arrived": {name: arrived(name)},
                    }
                )
                number += 1
    numbers = {"group-0": 0, "own-group": -os.getpgrp()}
    numbers["sigwraps-group"] = -os.getpgid(pids["root"])
    for name, number in [*numbers.items(), ("everybody", -1)]:
        what = 64 if number != -1 else 23  # everybody ignores SIGURG, in case
        result = send("kill", "native", number, what)
        rows.append(
            {
                "target": name,
                "syscall": "kill",
                "abi": "native",
                "signal": what,
                "result": named(result),
                "arrived": {member: arrived(member) for member in groups.get(name, ())},
            }
        )
    mine = pids["child"]
    bad = {
        name: named(result)
        for name, result in {
            "signal 65": send("kill", "native", mine, 65),
            "signal -1": send("kill", "native", mine, -1),
            "signal 65, i386": send("kill", "i386", mine, 65),
            "signal 65, pidfd": send(
                "pidfd_send_signal", "native", 0, 65, pidfd=os.pidfd_open(mine)
            ),
            "pid": send("kill", "native", 2**31 - 7, 34),
            "group": send("kill", "native", -(2**31 - 7), 34),
            "lowest": send("kill", "native", -(2**31), 34),
            "tkill 0": send("tkill", "native", 0, 34),
            "tkill -1": send("tkill", "native", -1, 34),
            "another's thread": send("tgkill", "native", pids["thread"], 34, tgid=mine),
            "pidfd -1": send("pidfd_send_signal", "native", 0, 34, pidfd=-1),
            "pidfd 999": send("pidfd_send_signal", "native", 0, 34, pidfd=999),
            "pidfd, unknown flag": native(424, os.pidfd_open(mine), 34, 0, 8),
            "pidfd, two flags": native(424, os.pidfd_open(mine), 34, 0, 3),
            "no pidfd": send("pidfd_send_signal", "native", 0, 34, pidfd=orders[0]),
        }.items()
    }
    late = {name: arrived(name) for name in pids}
    tell({"pids": pids, "rows": rows, "bad": bad, "late": late})
    os.write(orders[1], b"q")
    thread.join()
    for name in INSIDE:
        dismiss(boxes, name)


for name in INSIDE:
    box(boxes, name)
spawn(middle)
spawn(lambda: receive(boxes, "cousin"))
receive(boxes, "root")
