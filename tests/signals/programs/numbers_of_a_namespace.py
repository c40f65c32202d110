import os
import sys

from inside import ask, block_all, box, dismiss, drain, named, receive, send, spawn, tell
from namespace import into_a_namespace

boxes, outside = sys.argv[1], int(sys.argv[2])


def first():
    block_all()
    spawn(lambda: receive(boxes, "two"))
    ask(boxes, "two")

    def three():
        told = {"own": [os.getpid(), os.getppid()]}
        for name, number in (
            ("above", 1),
            ("sibling", 2),
            ("itself", 3),
            ("outside", outside),
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


box(boxes, "two")
into_a_namespace(first)
