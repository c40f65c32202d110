import os
import sys

from family import arrived, boxes
from inside import ask, dismiss, receive, spawn, tell

spawn(lambda: receive(boxes, "sibling"))


def attacker():
    spawn(lambda: receive(boxes, "child"))
    pids = [str(ask(boxes, name)[0]) for name in ("child", "sibling")]
    os.execv(sys.argv[2], [*sys.argv[2:], *pids])  # so that the child is its own


code = os.waitstatus_to_exitcode(os.waitpid(spawn(attacker), 0)[1])
late = arrived()
dismiss(boxes, "sibling"), dismiss(boxes, "child")
tell(late)
raise SystemExit(code)
