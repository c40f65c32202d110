import json
import os
import sys
import threading

from inside import ask, block_all, box, dismiss, named, native, receive, spawn, tell

boxes = sys.argv[1]
block_all()
box(boxes, "sibling"), box(boxes, "child")
victim = spawn(lambda: [os.setpgid(0, 0), receive(boxes, "sibling")])


def obey():
    """Does what a line says, and says how that went; `later` does it in a thread."""
    spawn(lambda: receive(boxes, "child"))
    pids = {"child": ask(boxes, "child")[0], "sibling": ask(boxes, "sibling")[0]}
    tell(pids)
    for line in sys.stdin:
        word, *rest = json.loads(line)
        if word == "quit":
            break
        if word == "send":
            who, number = rest
            tell(["sent", who, number, named(native(62, pids[who], number))])
        if word == "later":
            who, number = rest

            def later(who=who, number=number):
                tell(["later", who, number, named(native(62, pids[who], number))])

            threading.Thread(target=later, daemon=True).start()
        if word == "exec":
            threading.Thread(target=lambda: os.execv("/bin/echo", ["echo", '"execed"'])).start()
            threading.Event().wait()
    tell("end")
    os._exit(0)


agent = spawn(obey)
_, status = os.waitpid(agent, 0)
tell([os.waitstatus_to_exitcode(status), ask(boxes, "sibling")[1]])
dismiss(boxes, "sibling"), dismiss(boxes, "child")
