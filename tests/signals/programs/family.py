"""COMMAND has two children: a sibling that receives, and the attacker, who has a child."""

import os
import sys

from inside import ask, block_all, box, dismiss, receive, spawn

boxes = sys.argv[1]
block_all()


def family(attack):
    box(boxes, "sibling"), box(boxes, "child")
    spawn(lambda: receive(boxes, "sibling"))

    def run():
        spawn(lambda: receive(boxes, "child"))
        names = {"child": ask(boxes, "child")[0], "sibling": ask(boxes, "sibling")[0]}
        attack(names)

    code = os.waitstatus_to_exitcode(os.waitpid(spawn(run), 0)[1])
    dismiss(boxes, "sibling"), dismiss(boxes, "child")
    raise SystemExit(code)


def arrived():
    return {name: ask(boxes, name)[1] for name in ("child", "sibling")}
