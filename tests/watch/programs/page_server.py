"""The page over a source that does what it is told on standard input, a JSON object a line, and
says on standard output what is asked of the sessions."""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from contextlib import suppress

from sigwrap.control.killswitch import State
from sigwrap.errors import SessionError
from sigwrap.watch.board import Approve, Deny, EventLine, Interrupt, KillAll, Lift
from sigwrap.watch.page import peers
from sigwrap.watch.page.connection import Bounds
from sigwrap.watch.page.server import at_port, serve
from tests.watch.boards import SECOND, board, request, seen

peers._SEARCH_AT_MOST_S = 30.0  # however slow the machine is
if "SEARCHES_FOREVER" in os.environ:
    peers.search = lambda owners, pids: signal.pause()
store, bounds = sys.argv[1], json.loads(sys.argv[2])
_NAMES = {
    Approve: "approve",
    Deny: "deny",
    Interrupt: "interrupt",
    KillAll: "kill_all",
    Lift: "lift",
}


def say(**words):
    os.write(1, json.dumps(words).encode() + b"\n")


class Told:
    def __init__(self):
        self.kept = {}
        self.next = {}
        self.now = board()

    def board(self):
        return self.now._replace(now_ns=time.time_ns())

    def lines(self, session_id, after_seq, most):
        kept = self.kept.get(session_id, ())
        later = [each for each in list(kept) if each.seq > after_seq]
        last = later[-1].seq if later else after_seq
        return later[-most:], max(0, last - after_seq - len(later[-most:]))

    def attend(self, is_watched):
        say(attended=is_watched)

    def add(self, session_id, lines):
        kept = self.kept.setdefault(session_id, deque(maxlen=5000))
        for outcome, text in lines:
            seq = self.next[session_id] = self.next.get(session_id, 0) + 1
            kept.append(
                EventLine(seq, time.time_ns(), 4000 + seq % 7, "exec_allowed", outcome, text)
            )

    def show(self, order):
        now_ns = time.time_ns()
        sessions = [
            seen(each.pop("id"), **{"started_ns": now_ns, "last_ns": now_ns, **each})
            for each in order.get("sessions", ())
        ]
        waiting = tuple(
            request(
                each.pop("id"),
                asked_ns=now_ns,
                deadline_ns=now_ns + each.pop("left_s", 290) * SECOND,
                **each,
            )
            for each in order.get("waiting", ())
        )
        switch = order.get("killswitch")
        state = State(now_ns, switch["reason"], switch["by"]) if switch else None
        problems = tuple(order.get("problems", ()))
        self.now = board(*sessions, waiting=waiting, killswitch=state, problems=problems)


def carry_out(order):
    """A refusal where the id says so."""
    what = [_NAMES[type(order)], *order]
    say(did=what)
    if "slow" in what:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
    if "refused" in what:
        raise SessionError("nothing of that id waits", "it may be over")
    return f"{what[0]}: done"


def cut():
    for fd in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError), socket.socket(fileno=os.dup(fd)) as end:
            end.getpeername()  # it is no listener
            end.shutdown(socket.SHUT_RDWR)


def obey():
    for line in sys.stdin:
        order = json.loads(line)
        match order:
            case {"lines": [session_id, lines]}:
                source.add(session_id, lines)
            case {"cut": True}:
                cut()
            case _:
                source.show(order)
        say(obeyed=True)


source = Told()
listener = at_port(0)
threading.Thread(target=obey, daemon=True).start()
serve(
    listener,
    store,
    source,
    carry_out,
    report_line=[sys.executable, "-c", os.environ.get("REPORT", "print('none')")],
    tell=lambda line: os.write(2, line.encode() + b"\n"),
    ready=lambda path: say(path=path, port=listener.getsockname()[1]),
    bounds=Bounds(**bounds),
)
os._exit(0)  # Python's own end would take the modules from the threads that still run
